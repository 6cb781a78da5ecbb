import { AIMessage, type BaseMessage, HumanMessage } from '@langchain/core/messages'
import {
  Annotation,
  type BaseCheckpointSaver,
  Command,
  interrupt,
  MessagesAnnotation,
  START,
  StateGraph,
} from '@langchain/langgraph'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import { type Holdfast, openHoldfast } from 'holdfast'
import { HoldfastSaver } from 'holdfast/langgraph'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { postgresUrl } from '../../support/servers.js'
import { backends, cleanUp } from './support.js'

/** Two answers to one question, each on a branch of its own; what either branch holds in the end. */
async function forkTwice(checkpointer: BaseCheckpointSaver): Promise<string[][]> {
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('answer', ({ messages }) => ({ messages: [new AIMessage(`to ${String(messages.at(-1)?.content)}`)] }))
    .addEdge(START, 'answer')
    .compile({ checkpointer })
  const config = { configurable: { thread_id: `fork-${Date.now()}` } }
  await graph.invoke({ messages: [new HumanMessage('question')] }, config)
  const { config: origin } = await graph.getState(config)
  const branches: string[][] = []
  for (const text of ['left', 'right']) {
    const fork = await graph.updateState(origin, { messages: [new HumanMessage(text)] })
    const { values } = await graph.getState(fork)
    branches.push((values as { messages: BaseMessage[] }).messages.map(({ content }) => String(content)))
  }
  return branches
}

const FORKED = ['left', 'right'].map((text) => ['question', 'to question', text])

for (const backend of backends) {
  describe.skipIf(backend.missing)(`what fails on official savers, on ${backend.name}`, () => {
    let hf: Holdfast
    beforeAll(async () => {
      hf = await openHoldfast(await backend.fresh())
    })
    afterAll(() => hf.close())

    it('a fork reads its own messages, not those of its sibling', async () => {
      expect(await forkTwice(new HoldfastSaver(hf))).toEqual(FORKED)
    })

    it('bytes that wait for a human come back as bytes', async () => {
      const image = new Uint8Array(1000).map((_, i) => i % 256)
      const State = Annotation.Root({ image: Annotation<Uint8Array>(), approved: Annotation<boolean>() })
      const graph = new StateGraph(State)
        .addNode('draw', () => ({ image }))
        .addNode('ask', () => ({ approved: interrupt('fine?') as boolean }))
        .addEdge(START, 'draw')
        .addEdge(START, 'ask')
        .compile({ checkpointer: new HoldfastSaver(hf) })
      const config = { configurable: { thread_id: 'bytes' } }
      await graph.invoke({}, config)
      // Another process resumes: nothing but what is stored tells it what was drawn.
      graph.checkpointer = new HoldfastSaver(hf)
      expect(await graph.invoke(new Command({ resume: true }), config)).toStrictEqual({ image, approved: true })
    })
  })
}

const postgres = await postgresUrl()
describe.skipIf(postgres === undefined)('the official saver on Postgres', () => {
  it('reads the messages of the sibling: the case above is the real one', async () => {
    const official = PostgresSaver.fromConnString(postgres as string, { schema: `official_${process.pid}` })
    await official.setup()
    const branches = await forkTwice(official).finally(() => official.end())
    expect(branches).not.toEqual(FORKED)
  })
})

afterAll(cleanUp)
