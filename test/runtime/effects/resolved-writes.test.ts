import {
  END,
  flow,
  type FlowProgram,
  graph,
  Holdfast,
  last,
  NotExecutedError,
  openHoldfast,
  type Reconciled,
  START,
} from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import type { StepPolicy } from 'holdfast/types'
import { faultyDriver, virtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

let hf: Holdfast

beforeEach(async () => {
  hf = await openHoldfast('memory:')
})

afterEach(() => hf.close())

const SCOPE = { user: 'u' }

async function kept(store: Holdfast = hf): Promise<readonly unknown[]> {
  const { items } = await store.store.scope(SCOPE).collection<number>('sent').list()
  return items.map(({ key, value }) => [key, value])
}

/** Writes down what it sends, and then loses the answer: as often as `loses` says. */
function program(kind: 'step' | 'node', policy: StepPolicy, loses: () => Error | undefined): FlowProgram {
  let calls = 0
  const send = async (store: { scope(scope: typeof SCOPE): any }) => {
    calls++
    await store.scope(SCOPE).collection('sent').put(`call ${calls}`, calls)
    const error = loses()
    if (error) throw error
    return { n: calls }
  }
  if (kind === 'step') {
    return flow({ name: 'p', version: '1.0.0' }, (ctx) => ctx.step('send', policy, ({ store }) => send(store)))
  }
  return graph({ name: 'p', version: '1.0.0', state: { n: last<number>() } })
    .node('send', { ...policy, run: (_, ctx) => send(ctx.store) })
    .edge(START, 'send')
    .edge('send', END) as never
}

const lost = (times: number) => {
  let left = times
  return () => (left-- > 0 ? new Error('connection reset') : undefined)
}

describe.each(['step', 'node'] as const)('what a %s wrote to the store before its answer was lost', (kind) => {
  const reconcile = (answers: readonly Reconciled[]): StepPolicy => {
    const left = [...answers]
    return { effect: 'reconcilable', retry: { initialMs: 0 }, reconcile: () => left.shift() ?? { outcome: 'unknown' } }
  }

  it('is kept when the other side says that it happened', async () => {
    const pay = program(kind, reconcile([{ outcome: 'executed', result: { n: 9 } }]), lost(1))
    expect(await hf.thread(pay, 't').run({ input: {} })).toMatchObject({ status: 'completed', output: { n: 9 } })
    expect(await kept()).toEqual([['call 1', 1]])
  })

  it('is dropped with its attempt when the other side says that it did not happen', async () => {
    const pay = program(kind, reconcile([{ outcome: 'not-executed' }]), lost(1))
    expect(await hf.thread(pay, 't').run({ input: {} })).toMatchObject({ status: 'completed', output: { n: 2 } })
    expect(await kept()).toEqual([['call 2', 2]])
  })

  it.each([
    ['once', { effect: 'once' }],
    ['reconcilable', reconcile([])],
  ] as const)('is kept when a person says that a %s effect happened, and only then', async (_, policy) => {
    const pay = program(kind, policy, lost(1))
    const asked = await hf.thread(pay, 't').run({ input: {} })
    if (asked.status !== 'paused') throw new Error(asked.status)
    expect(await kept()).toEqual([])
    await hf.inspect('t').answer(asked.pauses[0].id, { outcome: 'succeeded', result: { n: 7 } })
    expect(await hf.thread(pay, 't').run()).toMatchObject({ status: 'completed', output: { n: 7 } })
    expect(await kept()).toEqual([['call 1', 1]])
  })

  it.each([
    ['not-executed', 'completed', [['call 2', 2]]],
    ['failed', 'failed', []],
  ] as const)('is dropped when a person says %s', async (outcome, status, left) => {
    const pay = program(kind, { effect: 'once' }, lost(1))
    const asked = await hf.thread(pay, 't').run({ input: {} })
    if (asked.status !== 'paused') throw new Error(asked.status)
    await hf.inspect('t').answer(asked.pauses[0].id, { outcome })
    expect(await hf.thread(pay, 't').run()).toMatchObject({ status })
    expect(await kept()).toEqual(left)
  })

  it('is that of the last attempt, of a key that the other side may have forgotten', async () => {
    const policy: StepPolicy = { effect: 'idempotent', keyTtlMs: 1, retry: { attempts: 3, initialMs: 20, jitter: 0 } }
    const pay = program(kind, policy, lost(1))
    const asked = await hf.thread(pay, 't').run({ input: {} })
    if (asked.status !== 'paused') throw new Error(asked.status)
    await hf.inspect('t').answer(asked.pauses[0].id, { outcome: 'succeeded', result: { n: 7 } })
    expect(await hf.thread(pay, 't').run()).toMatchObject({ status: 'completed', output: { n: 7 } })
    expect(await kept()).toEqual([['call 1', 1]])
  })

  it('is not made on a fork that is given a result instead', async () => {
    const pay = program(kind, { effect: 'once' }, lost(1))
    const main = hf.thread(pay, 't')
    await main.run({ input: {} })
    const [newest] = await main.history()
    const fork = await main.at(newest.id).fork()
    const asked = await fork.run()
    if (asked.status !== 'paused') throw new Error(asked.status)
    await fork.answer(asked.pauses[0].id, { allowed: false, result: { n: 3 } })
    expect(await fork.run()).toMatchObject({ status: 'completed', output: { n: 3 } })
    expect(await kept()).toEqual([])
  })

  it('is lost with the process that dies before it could be recorded', async () => {
    const clock = virtualClock()
    const driver = await openDriver('memory:', { clock })
    const first = faultyDriver(driver)
    const pay = program(kind, { effect: 'once' }, () => void first.crashAt(1, 'before'))
    const dying = new Holdfast(new LogStore(first, { clock })).thread(pay, 't')
    await expect(dying.run({ input: {} })).rejects.toMatchObject({ code: 'closed' })
    await clock.advance(60_000)
    const second = new Holdfast(new LogStore(driver, { clock }))
    const asked = await second.thread(pay, 't').run()
    if (asked.status !== 'paused') throw new Error(asked.status)
    await second.inspect('t').answer(asked.pauses[0].id, { outcome: 'succeeded', result: { n: 7 } })
    expect(await second.thread(pay, 't').run()).toMatchObject({ status: 'completed', output: { n: 7 } })
    expect(await kept(second)).toEqual([])
  })
})

describe('what a node wrote to the store', () => {
  it('is dropped when all its attempts failed', async () => {
    const node = program('node', { effect: 'read', retry: { attempts: 2, initialMs: 0 } }, lost(5))
    expect(await hf.thread(node, 't').run({ input: {} })).toMatchObject({ status: 'failed' })
    expect(await kept()).toEqual([])
  })

  it('is that of the attempt that came through', async () => {
    const refused = new NotExecutedError('refused', { retryable: true })
    let calls = 0
    const policy: StepPolicy = { effect: 'once', retry: { attempts: 2, initialMs: 0 } }
    const node = program('node', policy, () => (calls++ === 0 ? refused : undefined))
    expect(await hf.thread(node, 't').run({ input: {} })).toMatchObject({ status: 'completed' })
    expect(await kept()).toEqual([['call 2', 2]])
  })
})
