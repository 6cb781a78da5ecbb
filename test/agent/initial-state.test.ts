import { append, flow, graph, last, openHoldfast, START } from 'holdfast'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { setUp } from './agent-setup.js'

const { talk } = setUp()

it('an agent begins with the memory and the state that its first run brings', async () => {
  const { thread, server } = await talk(() => ({ text: 'Hello Ada.' }), {
    state: { tier: last(z.enum(['free', 'gold']), { initial: 'free' }), notes: append<string>() },
  })
  const initial = { memory: { name: 'Ada' }, tier: 'gold', notes: ['vip'] }
  const outcome = await thread.run({ input: 'Hi', initial, key: 'first' })
  expect(outcome).toMatchObject({
    status: 'completed',
    state: { memory: { name: 'Ada' }, tier: 'gold', notes: ['vip'], turn: 1 },
  })
  expect(JSON.stringify(server.requests[0]?.messages)).toContain('Ada')
  expect(await thread.replay()).toMatchObject({ status: 'identical' })
  // A request that is sent again is no second beginning; another input is.
  expect(await thread.run({ input: 'Hi', initial, key: 'first' })).toMatchObject({ status: 'completed' })
  await expect(thread.run({ input: 'More', initial })).rejects.toMatchObject({
    code: 'invalid-option',
    data: { field: 'initial' },
  })
  await expect(thread.enqueue('More', { initial })).rejects.toThrow(/this one exists already/)
  expect((await thread.state())?.messages).toHaveLength(2)
})

it('what a thread begins with is checked before anything is written', async () => {
  const { thread } = await talk([], { state: { tier: last(z.enum(['free', 'gold'])) } })
  const refusals = [
    [{ tier: 'silver' }, /initial\.tier does not fit/],
    [{ messages: [] }, /initial\.messages is not a key to begin with.*memory, tier/],
    [{ nothing: 1 }, /initial\.nothing/],
  ] as const
  for (const [initial, problem] of refusals) await expect(thread.run({ input: 'Hi', initial })).rejects.toThrow(problem)
  await expect(thread.run({ initial: { tier: 'gold' } })).rejects.toThrow(/Pass the first input/)
  expect(await thread.state()).toBeUndefined()
})

it('a graph begins with it, also by a worker, and a flow has no state', async () => {
  await using hf = await openHoldfast('memory:')
  const sum = graph({ name: 'sum', version: '1.0.0', state: { log: append<string>(), start: last<number>() } })
    .node('one', ({ start }) => ({ log: `from ${start}` }))
    .edge(START, 'one')
  const thread = hf.thread(sum, 't')
  await thread.enqueue({ log: 'input' }, { initial: { start: 5, log: 'initial' } })
  await using _ = hf.worker({ programs: [sum], pollMs: 5, handleSignals: false })
  expect(await thread.waitFor()).toMatchObject({ state: { log: ['initial', 'input', 'from 5'], start: 5 } })
  const plain = flow({ name: 'plain', version: '1.0.0' }, () => 1)
  await expect(hf.thread(plain, 'f').run({ input: 1, initial: {} })).rejects.toThrow(/no meaning for a flow/)
})
