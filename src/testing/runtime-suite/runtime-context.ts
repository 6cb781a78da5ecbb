import assert from 'node:assert/strict'
import { inspect } from 'node:util'
import {
  Holdfast,
  type HoldfastError,
  isHoldfastError,
  type Outcome,
  type StandardSchema,
  type ThreadIdInput,
} from '../../index.js'
import { type Clock, type Driver, systemClock } from '../../driver.js'
import { type Log, LogStore, type LogStoreOptions } from '../../log/index.js'
import { faultyDriver } from '../faulty-driver.js'
import { hurriedClock } from '../hurried-clock.js'

/** What one test of the suite works with. Every handle is narrowed to a tenant that no other test uses. */
export interface RuntimeContext {
  /** The process under test. Its calls are counted. */
  readonly hf: Holdfast
  readonly calls: CallCounts
  readonly clock: ShiftedClock
  /** The same store, narrowed to no tenant: its workers serve all of them. */
  readonly everyone: Holdfast
  /** The same store, opened with these options. */
  opened(options: LogStoreOptions): Holdfast
  /** As `opened`, through a driver that dies before its nth call from then on. */
  dying(nth: number): { readonly hf: Holdfast; readonly died: () => boolean }
  /** Another process, so to speak: the same store through a driver of its own. */
  other(): Promise<Holdfast>
  /** A process that can be ended: after `die` nothing it does reaches the store, and its lease stays behind. */
  mortal(): Mortal
  /** As `mortal`, on a machine whose clock is wrong by so many milliseconds. */
  wrong(ms: number): Mortal
  /** A process that looks after a lease of LONG_LEASE_MS many times a second: nothing that stands still loses it. */
  watchful(): Holdfast
  /** The time of the store's own clock; undefined where that is this machine's. */
  storeNow(): Promise<number | undefined>
}

export interface Mortal {
  readonly hf: Holdfast
  die(): void
}

export interface CallCounts {
  appends: number
  entries: number
  transactions: number
}

/** Real time, of which days can be left out: sleeps, expiry and keys see the gap, leases don't. */
export interface ShiftedClock extends Clock {
  skip(ms: number): void
}

export interface RuntimeTest {
  /** Reads as the specification. */
  readonly name: string
  readonly run: (context: RuntimeContext) => Promise<void>
  readonly timeoutMs?: number
}

/** Longer than any test may take to look. */
export const LONG_LEASE_MS = 20_000

export const DAY = 24 * 60 * 60 * 1000

export const named = (name: string) => ({ name, version: '1.0.0' })

/** Tries again at once: what is tested is that it does, not how long it waits. */
export const quick = { initialMs: 1, maxMs: 2 }

function shiftedClock(): ShiftedClock {
  const system = systemClock()
  let skipped = 0
  return {
    bootId: system.bootId,
    now: () => system.now() + skipped,
    monotonic: () => system.monotonic(),
    sleep: (ms, signal) => system.sleep(ms, signal),
    skip: (ms) => {
      skipped += ms
    },
  }
}

export function runtimeContext(
  tenant: string,
  driver: Driver,
  another: () => Promise<Driver>,
): RuntimeContext & { readonly clock: ShiftedClock } {
  const clock = shiftedClock()
  const calls: CallCounts = { appends: 0, entries: 0, transactions: 0 }
  const over = (below: Driver, by: Clock = clock, options: LogStoreOptions = {}) =>
    new Holdfast(new LogStore(below, { clock: by, ...options })).tenant(tenant)
  const mortal = (by?: Clock) => {
    const faulty = faultyDriver(driver)
    return { hf: over(faulty, by), die: () => faulty.crashAt(1, 'before') }
  }
  return {
    hf: over(counting(driver, calls)),
    calls,
    clock,
    everyone: new Holdfast(new LogStore(driver, { clock })),
    opened: (options) => over(driver, clock, options),
    dying(nth) {
      const faulty = faultyDriver(driver)
      faulty.crashAt(nth, 'before')
      return { hf: over(faulty), died: () => faulty.crashed }
    },
    other: async () => over(await another()),
    mortal: () => mortal(),
    wrong(ms) {
      const system = systemClock()
      return mortal({ ...system, now: () => system.now() + ms })
    },
    watchful: () => over(driver, hurriedClock()),
    storeNow: async () => driver.now?.(),
  }
}

function counting(driver: Driver, calls: CallCounts): Driver {
  return new Proxy(driver, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (name === 'append') {
          const batch = args[0] as Parameters<Driver['append']>[0]
          calls.appends += batch.length
          calls.entries += batch.reduce((sum, { entries }) => sum + entries.length, 0)
        }
        if (name === 'transact') calls.transactions++
        return (value as (...args: unknown[]) => unknown).apply(target, args)
      }
    },
  })
}

/** Takes a thread away from whoever holds it, as happens when a lease ran out, and lets it go again. */
export async function takeOver(hf: Holdfast, thread: ThreadIdInput): Promise<void> {
  const claim = await (await hf.log(thread)).claim({ owner: 'successor', ms: 10_000, force: true })
  await claim.release()
}

/** A run that its process did not survive. */
export async function dies(run: Promise<unknown>): Promise<void> {
  await refuses(() => run, 'closed', 'unavailable', 'fenced')
}

/** Fails with one of these codes, and not with an error that nobody named. */
export async function refuses(work: () => unknown, ...codes: readonly string[]): Promise<HoldfastError> {
  let error: unknown
  try {
    await work()
  } catch (thrown) {
    error = thrown
  }
  assert.ok(error !== undefined, `it is refused with ${codes.join(' or ')}`)
  assert.ok(isHoldfastError(error) && codes.includes(error.code), `${String(error)} has the code ${codes.join(' or ')}`)
  return error
}

/** The outcome, if it has this status; otherwise the test fails with all of it. */
export function expectStatus<Status extends Outcome['status'], State, Output>(
  outcome: Outcome<State, Output>,
  status: Status,
): Extract<Outcome<State, Output>, { readonly status: Status }> {
  assert.equal(outcome.status, status, inspect(outcome, { depth: 6 }))
  return outcome as Extract<Outcome<State, Output>, { readonly status: Status }>
}

export async function entriesOf(hf: Holdfast, thread: ThreadIdInput): Promise<number> {
  return (await hf.log(thread)).fold.seq + 1
}

export async function kindsOf(log: Log): Promise<readonly string[]> {
  const kinds: string[] = []
  for await (const entry of log.entries()) kinds.push(entry.header.kind)
  return kinds
}

/** A promise and what settles it. */
export function gate<Value = void>(): { readonly passed: Promise<Value>; open(value: Value): void } {
  let open: (value: Value) => void = () => {}
  const passed = new Promise<Value>((resolve) => {
    open = resolve
  })
  return { passed, open }
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** A schema of numbers from 0 on. */
export const count: StandardSchema<number> = {
  '~standard': {
    version: 1,
    vendor: 'suite',
    validate: (value) =>
      typeof value === 'number' && value >= 0 ? { value } : { issues: [{ message: 'must be a number from 0 on' }] },
  },
}
