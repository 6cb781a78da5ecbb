import { type Holdfast, openHoldfast } from 'holdfast'
import { HoldfastSaver } from 'holdfast/langgraph'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { agentWithApproval, agentWithTools, calledOff, fanOut, interrupts, subgraphs } from './agent-scenarios.js'
import { backends, cleanUp, KeepingMemorySaver } from './support.js'

const SCENARIOS = { agentWithTools, agentWithApproval, interrupts, subgraphs, fanOut, calledOff }
/** How LangGraph saves, `async` unless told otherwise. That is up to LangGraph, so two backends are enough for all. */
const DURABILITIES = ['async', 'sync', 'exit'] as const

/** What happens with MemorySaver, by scenario and durability. */
const expected = new Map<string, unknown>()

for (const backend of backends) {
  describe.skipIf(backend.missing)(`a graph with HoldfastSaver on ${backend.name}`, () => {
    let hf: Holdfast
    beforeAll(async () => {
      hf = await openHoldfast(await backend.fresh())
    })
    afterAll(() => hf.close())

    const modes = ['memory', 'SQLite'].includes(backend.name) ? DURABILITIES : DURABILITIES.slice(0, 1)
    for (const [name, scenario] of Object.entries(SCENARIOS)) {
      it.each(modes)(`behaves as with MemorySaver: ${name}, durability %s`, async (durability) => {
        const key = `${name} ${durability}`
        if (!expected.has(key)) expected.set(key, await scenario(new KeepingMemorySaver(), durability))
        const saver = new HoldfastSaver(hf, { tenant: `${name}-${durability}` })
        expect(await scenario(saver, durability)).toEqual(expected.get(key))
      })
    }
  })
}

afterAll(cleanUp)
