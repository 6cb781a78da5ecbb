import { flow, openHoldfast } from 'holdfast'
import { describe, expect, it } from 'vitest'

const forever = () => new Promise<never>(() => {})

describe('a program that hangs in code of its own, outside of any step', () => {
  const hang = flow({ name: 'hang', version: '1.0.0' }, async (ctx) => {
    await ctx.step('begin', () => 'begun')
    await forever()
  })

  it('is left when its run is stopped', async () => {
    await using hf = await openHoldfast('memory:')
    const stop = new AbortController()
    const stream = hf.thread(hang, 'hanging').stream({ input: 'go', signal: stop.signal })
    const outcome = stream.outcome.catch((error: unknown) => error)
    for await (const event of stream) {
      if (event.type === 'step') break
    }
    stop.abort()
    expect(await outcome).toMatchObject({ name: 'AbortError' })
    expect((await hf.threads()).threads).toMatchObject([{ status: 'active', claimedBy: null }])
  })

  it('is left when it is cancelled', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(hang, 'hanging')
    const outcome = thread.run({ input: 'go', lease: 3000 })
    while (((await thread.state()) ?? undefined) === undefined) await new Promise(setImmediate)
    await thread.cancel({ reason: 'enough' })
    expect(await outcome).toMatchObject({ status: 'failed', canResume: false })
  })

  it('does not keep a worker from stopping after the grace', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(hang, 'hanging')
    const stop = new AbortController()
    setTimeout(() => stop.abort(), 20)
    await expect(thread.run({ input: 'go', signal: stop.signal })).rejects.toThrow('stopped')
    let taken = false
    const worker = hf.worker({
      programs: [hang],
      graceMs: 20,
      handleSignals: false,
      onEvent: (event) => {
        taken ||= event.type === 'taken'
      },
    })
    while (!taken) await new Promise(setImmediate)
    await worker.stop()
    expect((await hf.threads()).threads).toMatchObject([{ status: 'active', claimedBy: null }])
  })
})
