import { flow, openHoldfast } from 'holdfast'
import { describe, expect, it } from 'vitest'

const asks = flow<string, unknown>({ name: 'asks', version: '1.0.0' }, (ctx) =>
  Promise.all(['a', 'b', 'c'].map((key) => ctx.pause({ key }, { key }))),
)

async function asked() {
  const hf = await openHoldfast('memory:')
  const thread = hf.thread(asks, 't')
  const outcome = await thread.run({ input: 'go' })
  if (outcome.status !== 'paused') throw new Error(outcome.status)
  return { hf, thread, pauses: outcome.pauses.map(({ id }) => id) }
}

describe('several answers', () => {
  it('of one thread land together: whoever runs it sees all of them or none', async () => {
    const { hf, thread, pauses } = await asked()
    const starts: number[] = []
    // It is there before the first answer, and hears of each append at once.
    const worker = hf.worker({
      programs: [asks],
      handleSignals: false,
      onEvent: (event) => event.type === 'taken' && starts.push(1),
    })
    expect(await hf.answer(pauses.map((pause, i) => ({ thread: 't', pause, value: i })))).toEqual(
      pauses.map((pause) => ({ pause })),
    )
    expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: [0, 1, 2] })
    await worker.stop()
    expect(starts).toHaveLength(1)
    await hf.close()
  })

  it('are taken or refused each by itself', async () => {
    const { hf, thread, pauses } = await asked()
    const [a = '', b = '', c = ''] = pauses
    await thread.answer(b, 'first')
    const refused = await thread.answerSeveral([
      { pause: b, value: 'second' },
      { pause: a, value: 'one' },
      { pause: a, value: 'two' },
      { pause: 'none', value: 1 },
      { pause: c, value: 'three' },
    ])
    expect(refused.map(({ index, pause }) => [index, pause])).toEqual([
      [0, b],
      [2, a],
      [3, 'none'],
    ])
    expect(refused.map(({ error }) => (error as { code: string }).code)).toEqual([
      'pause-closed',
      'pause-closed',
      'not-found',
    ])
    expect(await thread.run()).toMatchObject({ status: 'completed', output: ['one', 'first', 'three'] })
    await hf.close()
  })
})
