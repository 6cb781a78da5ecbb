import { append, graph, openHoldfast, START } from 'holdfast'
import { describe, expect, it } from 'vitest'

describe('two nodes side by side that pause after they finished', () => {
  it('ask once each, however their answers come', async () => {
    await using hf = await openHoldfast('memory:')
    const gated = graph({ name: 'gated', version: '1.0.0', state: { log: append<string>() } })
      .node('a', () => ({ log: ['a'] }))
      .node('b', () => ({ log: ['b'] }))
      .edge(START, 'a')
      .edge(START, 'b')
      .pauseAfter('a', 'b')
    const thread = hf.thread(gated, 't')
    let outcome = await thread.run({ input: {} })
    const asked: string[] = []
    for (let i = 0; outcome.status === 'paused' && i < 5; i++) {
      const [first] = outcome.pauses
      asked.push(first.step)
      await thread.answer(first.id, { approved: true })
      outcome = await thread.run()
    }
    expect(outcome).toMatchObject({ status: 'completed', state: { log: ['a', 'b'] } })
    expect(asked.sort()).toStrictEqual(['0:a after', '0:b after'])
  })
})
