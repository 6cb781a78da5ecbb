import { buildAgent } from './build-agent.js'
import { buildFlow } from './build-flow.js'
import { buildGraph } from './build-graph.js'
import type { Mortal } from './mortal.js'
import type { ProgramSpec } from './spec.js'
import { NAME, type Program } from './surroundings.js'
import type { World } from './world.js'

/** A program of a spec, as one process has loaded it. Its calls of the outside go to the world. */
export function buildProgram(spec: ProgramSpec, version: string, world: World, process: Mortal): Program {
  const around = { world, process }
  if (spec.kind === 'graph') return buildGraph(spec.block, around, { name: NAME, version })
  if (spec.kind === 'agent') return buildAgent(spec.turns, around, version)
  return buildFlow(spec.body, around, version)
}

/** The input of this number, as the program takes it. */
export function inputFor(spec: ProgramSpec, n: number): unknown {
  return spec.kind === 'agent' ? `request ${n}` : { n }
}
