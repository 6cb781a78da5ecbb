import type { BlockSpec, NodeSpec, ProgramSpec, StatementSpec } from './spec.js'

/**
 * A program whose parts have names of their own. They stay the same in every later version, so that the world knows
 * which effect is meant, whatever the program calls it and wherever it stands by then.
 */
export function numbered(spec: ProgramSpec): ProgramSpec {
  if (spec.kind === 'flow') return { ...spec, body: statements(spec.body, 'f') }
  if (spec.kind === 'graph') return { ...spec, block: block(spec.block, '0') }
  const turns = spec.turns.map((calls, turn) => calls.map((call, i) => ({ ...call, id: `t${turn}_${i}` })))
  return { ...spec, turns }
}

function statements(body: readonly StatementSpec[], at: string): readonly StatementSpec[] {
  return body.map((one, i) => statement(one, `${at}.${i}`))
}

function statement(one: StatementSpec, id: string): StatementSpec {
  if (one.kind === 'all') return { ...one, id, parts: statements(one.parts, id) }
  if (one.kind === 'loop') return { ...one, id, body: statements(one.body, id) }
  return { ...one, id }
}

function block(one: BlockSpec, id: string): BlockSpec {
  switch (one.kind) {
    case 'node':
      return node(one, id)
    case 'sequence':
    case 'condition':
    case 'parallel':
      return { ...one, id, blocks: one.blocks.map((part, i) => block(part, `${id}${i}`)) }
    case 'fan':
      return { ...one, id, each: block(one.each, `${id}0`) as typeof one.each }
    default:
      return { ...one, id, block: block(one.block, `${id}0`) }
  }
}

function node(one: NodeSpec, id: string): NodeSpec {
  return { ...one, id: `n${id}`, body: statements(one.body, `n${id}`) }
}
