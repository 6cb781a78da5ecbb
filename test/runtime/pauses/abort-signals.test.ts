import { getEventListeners } from 'node:events'
import { END, flow, graph, last, openHoldfast, START } from 'holdfast'
import { describe, expect, it } from 'vitest'

const forever = () => new Promise<never>(() => {})

describe('a signal that outlives runs', () => {
  const short = flow({ name: 'short', version: '1.0.0' }, (ctx) => ctx.step('one', { timeoutMs: 60_000 }, () => 1))

  it('keeps nothing of them', async () => {
    await using hf = await openHoldfast('memory:')
    const { signal } = new AbortController()
    const thread = hf.thread(short, 'x')
    for (let input = 0; input < 3; input++) {
      await thread.run({ input, signal })
      await thread.run({ input, signal, frequency: 'none' })
      await thread.stream({ input: `${input}`, signal }).outcome
    }
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('has one listener for all runs that share it: Node warns of a leak from the eleventh on', async () => {
    await using hf = await openHoldfast('memory:')
    const { signal } = new AbortController()
    const begun: (() => void)[] = []
    const allBegun = Promise.all(
      Array.from({ length: 12 }, (_, i) => new Promise<void>((resolve) => (begun[i] = resolve))),
    )
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const holding = flow<number, void>({ name: 'holding', version: '1.0.0' }, (ctx, i) =>
      ctx.step('hold', { timeoutMs: 60_000 }, async () => {
        begun[i]?.()
        await held
      }),
    )
    const outcomes = begun.map((_, input) => hf.thread(holding, `shared-${input}`).run({ input, signal }))
    await allBegun
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    release()
    for (const outcome of await Promise.all(outcomes)) expect(outcome.status).toBe('completed')
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })

  it('stops a run without a record also while the thread is opened', async () => {
    await using hf = await openHoldfast('memory:')
    const stop = new AbortController()
    const hanging = flow({ name: 'hanging', version: '1.0.0' }, (ctx) => ctx.step('hang', forever))
    const outcome = hf.thread(hanging, 'x').run({ input: 1, frequency: 'none', signal: stop.signal })
    stop.abort()
    await expect(outcome).rejects.toMatchObject({ name: 'AbortError' })
  })
})

it('a branch that hangs is left when the run is stopped, and what came before it is kept', async () => {
  let runs = 0
  let hangs = true
  let asked = () => {}
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve
  })
  const program = graph({ name: 'branching', version: '1.0.0', state: { n: last<number>() } })
    .node('work', { effect: 'once', run: () => ({ n: ++runs }) })
    .edge(START, 'work')
    .branch('work', () => {
      asked()
      return hangs ? forever() : END
    }, [END])
  await using hf = await openHoldfast('memory:')
  const thread = hf.thread(program, 'x')
  const stop = new AbortController()
  const outcome = thread.run({ input: {}, signal: stop.signal })
  await isAsked
  stop.abort()
  await expect(outcome).rejects.toThrow('stopped')
  hangs = false
  expect(await thread.run()).toMatchObject({ status: 'completed', state: { n: 1 } })
})

it('a request that is sent again with `interrupt` follows its own run and does not stop it', async () => {
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  let calls = 0
  const program = flow({ name: 'paying', version: '1.0.0' }, (ctx) =>
    ctx.step('pay', async () => {
      calls++
      await held
      return 'paid'
    }),
  )
  await using hf = await openHoldfast('memory:')
  const first = hf.thread(program, 'x').run({ input: 1, key: 'request' })
  while (calls === 0) await new Promise(setImmediate)
  const again = hf.thread(program, 'x').run({ input: 1, key: 'request', busy: 'interrupt' })
  // Long enough for it to have found the thread busy, and to have asked for an end if it did.
  await new Promise((resolve) => setTimeout(resolve, 300))
  release()
  expect(await first).toMatchObject({ status: 'completed', output: 'paid' })
  expect(await again).toMatchObject({ status: 'completed', output: 'paid' })
  expect(calls).toBe(1)
})

describe('many workers in one process', () => {
  const program = flow({ name: 'short', version: '1.0.0' }, (ctx) => ctx.step('one', () => 1))
  const listeners = () => (['SIGTERM', 'SIGINT'] as const).map((name) => process.listenerCount(name))

  it('listen to the signals of the process together, and leave nothing behind', async () => {
    const before = listeners()
    const warnings: Error[] = []
    const onWarning = (warning: Error) => warnings.push(warning)
    process.on('warning', onWarning)
    {
      await using hf = await openHoldfast('memory:')
      const workers = Array.from({ length: 20 }, () => hf.worker({ programs: [program], pollMs: 10_000 }))
      expect(listeners()).toEqual(before.map((count) => count + 1))
      await workers[0]?.stop()
      expect(listeners()).toEqual(before.map((count) => count + 1))
    }
    expect(listeners()).toEqual(before)
    process.off('warning', onWarning)
    expect(warnings.filter(({ name }) => name === 'MaxListenersExceededWarning')).toEqual([])
  })
})
