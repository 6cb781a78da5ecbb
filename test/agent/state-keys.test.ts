import { append, END, graph, last, merge, openHoldfast, START, tool } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, setUp } from './agent-setup.js'

const { talk } = setUp()

/** Opened by the test when it has looked. */
function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

describe('the state of an agent that is in its first turn', () => {
  const asked = gate()
  const looked = gate()
  afterEach(() => looked.open())

  it('has all keys that its type promises: busy, read by another, and at the checkpoint of the input', async () => {
    const { thread } = await talk(
      async () => {
        asked.open()
        await looked.opened
        return { text: 'Hello' }
      },
      { state: { topic: last<string>(undefined, { initial: 'none' }) } },
    )
    const running = thread.run({ input: 'Hi' })
    await asked.opened
    const busy = await thread.run()
    const state = await thread.state()
    const [input] = (await thread.history()).filter(({ kind }) => kind === 'input')
    const there = await thread.at(input?.id ?? '').state()
    looked.open()
    expect(busy.status).toBe('busy')
    for (const one of [busy.state, state, there]) {
      expect(one).toMatchObject({ messages: [], memory: {}, turn: 0, ended: null, topic: 'none' })
    }
    expect((await running).status).toBe('completed')
  })
})

describe('a state key that a new version declares', () => {
  const older = graph({ name: 'p', version: '1.0.0', state: { log: append<string>() } })
    .node('ask', async (_, ctx) => ({ log: await ctx.pause<string>('Well?') }))
    .node('end', () => ({ log: 'end' }))
    .edge(START, 'ask')
    .edge('ask', 'end')
    .edge('end', END)
  const newer = graph({
    name: 'p',
    version: '1.1.0',
    state: {
      log: append<string>(),
      marks: append<string>(),
      topic: last<string>(undefined, { initial: 'none' }),
      notes: merge<Record<string, string>>(undefined, { initial: { by: 'nobody' } }),
    },
  })
    .node('ask', async (_, ctx) => ({ log: await ctx.pause<string>('Well?') }))
    .node('end', ({ marks, topic, notes }) => ({ log: `${marks.length} ${topic} ${notes['by']}` }))
    .edge(START, 'ask')
    .edge('ask', 'end')
    .edge('end', END)

  it('has its initial value in a run that is under way', async () => {
    await using hf = await openHoldfast('memory:')
    const paused = await hf.thread(older, 't').run({ input: {} })
    if (paused.status !== 'paused') throw new Error(paused.status)
    await hf.inspect('t').answer(paused.pauses[0]?.id ?? '', 'fine')
    const thread = hf.thread(newer, 't')
    expect(await thread.state()).toMatchObject({ marks: [], topic: 'none', notes: { by: 'nobody' } })
    const outcome = await thread.run()
    expect(outcome).toMatchObject({
      status: 'completed',
      state: { log: ['fine', '0 none nobody'], marks: [], topic: 'none', notes: { by: 'nobody' } },
    })
    expect(await thread.replay()).toMatchObject({ status: 'identical' })
  })

  it('has it in a subgraph that is under way', async () => {
    const outer = (inner: typeof older | typeof newer, version: string) =>
      graph({ name: 'outer', version, state: { log: append<string>() } })
        .node('inner', inner as typeof older)
        .edge(START, 'inner')
        .edge('inner', END)
    await using hf = await openHoldfast('memory:')
    const paused = await hf.thread(outer(older, '1.0.0'), 't').run({ input: {} })
    if (paused.status !== 'paused') throw new Error(paused.status)
    await hf.inspect('t').answer(paused.pauses[0]?.id ?? '', 'fine')
    expect(await hf.thread(outer(newer, '1.1.0'), 't').run()).toMatchObject({
      status: 'completed',
      state: { log: ['fine', '0 none nobody'] },
    })
  })
})

it('onResume may say nothing of a key', async () => {
  const { thread } = await talk(({ messages }) => (messages.length < 3 ? calls(['ask']) : { text: 'Done' }), {
    tools: { ask: tool({ inputSchema: z.object({}) }) },
    onResume: () => ({ seen: 1, gone: undefined }),
  })
  const paused = await thread.run({ input: 'Hi' })
  if (paused.status !== 'paused') throw new Error(paused.status)
  await thread.answer(paused.pauses[0]?.id ?? '', { result: 'yes' })
  expect(await thread.run()).toMatchObject({ status: 'completed', state: { memory: { seen: 1 } } })
})
