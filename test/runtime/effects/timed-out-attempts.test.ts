import { setImmediate as turn } from 'node:timers/promises'
import { flow, graph, Holdfast, last, NotExecutedError, type Reconciled, START } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'

const named = { name: 'pays', version: '1.0.0' }

/** A service that takes its time: a request is done when it is let through, and it is asked only about what it did. */
function service() {
  const requests: { readonly key: string; land(): void; refuse(error: unknown): void }[] = []
  const done = new Set<string>()
  const asked: string[] = []
  return {
    requests,
    done,
    asked,
    charge: (key: string) =>
      new Promise<string>((resolve, reject) => {
        requests.push({
          key,
          land() {
            done.add(key)
            resolve(`charged as request ${requests.length}`)
          },
          refuse: reject,
        })
      }),
    reconcile: (key: string): Reconciled<string> => {
      asked.push(key)
      return done.has(key) ? { outcome: 'executed', result: 'found' } : { outcome: 'not-executed' }
    },
  }
}

async function setUp() {
  const clock = virtualClock()
  const hf = new Holdfast(new LogStore(await openDriver('memory:', { clock }), { clock }))
  return { clock, hf, other: service() }
}

type Service = ReturnType<typeof service>
const policy = (other: Service, settleMs?: number) => ({
  effect: 'reconcilable' as const,
  timeoutMs: 1000,
  retry: { attempts: 2, initialMs: 1, jitter: 0 },
  reconcile: other.reconcile,
  ...(settleMs === undefined ? {} : { settleMs }),
})

const asStep = (other: Service, settleMs?: number) =>
  flow<number, string>(named, (ctx) =>
    ctx.step('charge', policy(other, settleMs), ({ idempotencyKey }) => other.charge(idempotencyKey)),
  )

/** The step does not run out of time itself: the node around it does, and tries again. */
const insideNode = (other: Service, settleMs?: number) =>
  graph({ ...named, state: { out: last<string>() } })
    .node('pay', {
      timeoutMs: 1000,
      retry: { attempts: 2, initialMs: 1, jitter: 0 },
      run: async (_, ctx) => {
        const { timeoutMs: _limit, ...rest } = policy(other, settleMs)
        return { out: await ctx.step('charge', rest, ({ idempotencyKey }) => other.charge(idempotencyKey)) }
      },
    })
    .edge(START, 'pay')

async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await turn()
}

describe('an attempt that ran out of time', () => {
  it.each([
    { where: 'a step', program: asStep, output: { output: 'charged as request 1' } },
    { where: 'a step of a node', program: insideNode, output: { state: { out: 'charged as request 1' } } },
  ])('is not asked about while it runs, and counts when it lands: $where', async ({ program, output }) => {
    const { clock, hf, other } = await setUp()
    const running = hf.thread(program(other) as ReturnType<typeof asStep>, 't').run({ input: {} as never })
    await turns()
    await clock.advance(1500)
    expect([other.requests.length, other.asked]).toStrictEqual([1, []])
    other.requests[0]?.land()
    await turns()
    await clock.advance(100)
    expect(await running).toMatchObject({ status: 'completed', ...output })
    expect([other.requests.length, other.asked]).toStrictEqual([1, []])
  })

  it('is asked about once it has ended without saying', async () => {
    const { clock, hf, other } = await setUp()
    const running = hf.thread(asStep(other), 't').run({ input: 1 })
    await turns()
    await clock.advance(1500)
    const [first] = other.requests
    other.done.add(first?.key ?? '')
    first?.refuse(new Error('connection reset'))
    expect(await running).toMatchObject({ status: 'completed', output: 'found' })
    expect(other.asked).toStrictEqual([first?.key])
  })

  it('is simply tried again when it ends by saying that nothing was done', async () => {
    const { clock, hf, other } = await setUp()
    const running = hf.thread(asStep(other), 't').run({ input: 1 })
    await turns()
    await clock.advance(1500)
    other.requests[0]?.refuse(new NotExecutedError('aborted before it was sent', { retryable: true }))
    await turns()
    await clock.advance(10)
    other.requests[1]?.land()
    expect(await running).toMatchObject({ status: 'completed', output: 'charged as request 2' })
    expect(other.asked).toStrictEqual([])
    expect(new Set(other.requests.map(({ key }) => key)).size).toBe(2)
  })

  it.each([
    { onUnknown: 'pause' as const, expected: { status: 'paused', pauses: [{ kind: 'unknown-effect' }] } },
    { onUnknown: 'fail' as const, expected: { status: 'failed', error: { code: 'effect-unknown' } } },
  ])('that never ends leaves its outcome unknown after settleMs: $onUnknown', async ({ onUnknown, expected }) => {
    const { clock, hf, other } = await setUp()
    const pays = flow<number, string>(named, (ctx) =>
      ctx.step('charge', { ...policy(other, 5000), onUnknown }, ({ idempotencyKey }) => other.charge(idempotencyKey)),
    )
    let over = false
    const running = hf.thread(pays, 't').run({ input: 1 })
    void running.then(() => (over = true))
    await turns()
    await clock.advance(1000 + 4999)
    expect(over).toBe(false)
    await clock.advance(1)
    expect(await running).toMatchObject(expected)
    expect([other.requests.length, other.asked]).toStrictEqual([1, []])
  })

  it('of kind once is put to a person only when it has ended, and not at all when it lands', async () => {
    const { clock, hf, other } = await setUp()
    const pays = flow<number, string>(named, (ctx) =>
      ctx.step('charge', { effect: 'once', timeoutMs: 1000 }, ({ idempotencyKey }) => other.charge(idempotencyKey)),
    )
    const running = hf.thread(pays, 't').run({ input: 1 })
    await turns()
    await clock.advance(1500)
    other.requests[0]?.land()
    expect(await running).toMatchObject({ status: 'completed', output: 'charged as request 1' })
  })

  /** Gives up after one attempt, or two, that ran out of time. */
  const asIdempotent = (other: Service, attempts: number, effect: 'idempotent' | 'once' = 'idempotent') =>
    flow<number, string>(named, (ctx) =>
      ctx.step(
        'charge',
        { effect, timeoutMs: 1000, retry: { attempts, initialMs: 1, jitter: 0 } },
        ({ idempotencyKey }) => other.charge(idempotencyKey),
      ),
    )

  it.each([
    { attempts: 1, lands: 0 },
    { attempts: 2, lands: 0 },
    { attempts: 2, lands: 1 },
  ])('of kind idempotent is waited for before the run fails: $attempts, number $lands lands', async (given) => {
    const { clock, hf, other } = await setUp()
    const running = hf.thread(asIdempotent(other, given.attempts), 't').run({ input: 1 })
    for (let i = 0; i < given.attempts; i++) {
      await turns()
      await clock.advance(1001)
    }
    await turns()
    expect(other.requests).toHaveLength(given.attempts)
    other.requests[given.lands]?.land()
    expect(await running).toMatchObject({ status: 'completed' })
  })

  it('of kind idempotent is not put to a person while it runs, though the next version calls it once', async () => {
    const { clock, hf, other } = await setUp()
    const running = hf.thread(asIdempotent(other, 1), 't').run({ input: 1 })
    await turns()
    await clock.advance(1000 + 10_000)
    expect(await running).toMatchObject({ status: 'failed', error: { code: 'effect-unknown' } })
    let over = false
    const resumed = hf.thread(asIdempotent(other, 1, 'once'), 't').run()
    void resumed.then(() => (over = true))
    await turns()
    expect(over).toBe(false)
    other.requests[0]?.land()
    expect(await resumed).toMatchObject({ status: 'completed', output: 'charged as request 1' })
    expect(other.requests).toHaveLength(1)
  })

  it('is waited for also by a run that is resumed in the same process after it was stopped', async () => {
    const { hf, other } = await setUp()
    const stop = new AbortController()
    const thread = hf.thread(asStep(other), 't')
    const stopped = thread.run({ input: 1, signal: stop.signal })
    await turns()
    stop.abort()
    await expect(stopped).rejects.toMatchObject({ name: 'AbortError' })
    const resumed = thread.run()
    await turns()
    expect(other.asked).toStrictEqual([])
    other.requests[0]?.land()
    expect(await resumed).toMatchObject({ status: 'completed', output: 'charged as request 1' })
    expect(other.requests).toHaveLength(1)
  })
})
