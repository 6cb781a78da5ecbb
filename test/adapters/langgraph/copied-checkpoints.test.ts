import { Annotation, type BaseCheckpointSaver, MemorySaver, START, StateGraph } from '@langchain/langgraph'
import { type Holdfast, openHoldfast } from 'holdfast'
import { HoldfastSaver } from 'holdfast/langgraph'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { backends, cleanUp } from './support.js'

const State = Annotation.Root({
  words: Annotation<string[]>({ reducer: (a, b) => [...a, ...b], default: () => [] }),
  topic: Annotation<string>(),
})

/** Copies every checkpoint of a run, the first one included, and goes on from each copy. */
async function copyAll(checkpointer: BaseCheckpointSaver, another: () => BaseCheckpointSaver): Promise<unknown[]> {
  const graph = new StateGraph(State)
    .addNode('first', ({ topic }) => ({ words: [`first ${topic}`] }))
    .addNode('second', ({ words }) => ({ words: [`second ${words.length}`], topic: 'done' }))
    .addEdge(START, 'first')
    .addEdge('first', 'second')
    .compile({ checkpointer })
  const config = { configurable: { thread_id: 'copies' } }
  await graph.invoke({ words: ['begin'], topic: 'forks' }, config)
  const past: { readonly config: object }[] = []
  for await (const state of graph.getStateHistory(config)) past.push(state)
  const seen: unknown[] = []
  for (const { config: origin } of past.reverse()) {
    const copy = await graph.updateState(origin, null, '__copy__')
    // Another process reads it: nothing but what is stored tells it what was copied.
    graph.checkpointer = another()
    const { values, next, metadata } = await graph.getState(copy)
    seen.push({ values, next, source: metadata?.source, goesOn: await graph.invoke(null, copy) })
  }
  return seen
}

for (const backend of backends) {
  describe.skipIf(backend.missing)(`copies of checkpoints on ${backend.name}`, () => {
    let hf: Holdfast
    beforeAll(async () => {
      hf = await openHoldfast(await backend.fresh())
    })
    afterAll(() => hf.close())

    it('hold what the original held, also of the first one, and go on like it', async () => {
      const memory = new MemorySaver()
      const expected = await copyAll(memory, () => memory)
      expect(expected).toHaveLength(4)
      expect(expected[0]).toMatchObject({ next: ['__start__'], goesOn: { topic: 'done' } })
      expect(await copyAll(new HoldfastSaver(hf), () => new HoldfastSaver(hf))).toEqual(expected)
    })
  })
}

afterAll(cleanUp)
