import { cloneValue } from '../codec/clone.js'
import type { Value } from '../codec/value.js'
import { InvalidOptionError, InvalidValueError } from '../core/errors.js'
import { set, splice, valueAt } from '../log/ops.js'
import { validate } from '../store/standard-schema.js'
import type { ReceiveOptions, SleepOptions } from './context.js'
import type { StepRecord, Waiting } from './run-state.js'
import type { Session } from './session.js'
import type { StepRecords } from './step-records.js'

/** The function that waits, as far as it matters here. */
export interface WaitingFunction {
  readonly session: Session
  readonly records: StepRecords
  /** The path of a wait, which is its own. */
  claimPath(name: string, key: string | number): string
  /** How many waits of this name came before. */
  ordinal(name: string): number
  /** Leaves the function hanging until what it waits for has come. */
  wait(waiting: Waiting): Promise<never>
  /** A replay has no record of this. */
  gap(path: string): Promise<never>
}

/** Sleeps here when it is short, and otherwise leaves the run to be woken. */
export async function sleep(at: WaitingFunction, duration: number | Date, options: SleepOptions = {}): Promise<void> {
  const { clock, recorder, inlineSleepMs, abort, replay } = at.session
  const ms = duration instanceof Date ? duration.getTime() - clock.now() : duration
  if (typeof ms !== 'number' || !Number.isFinite(ms)) {
    throw new InvalidValueError('sleep', 'is no time', 'Pass milliseconds or a Date.')
  }
  const path = at.claimPath('sleep', options.key ?? at.ordinal('sleep'))
  const found = at.records.find(path, 'none')
  // Short sleeps leave no record, and a replay waits for nothing.
  if (replay) return
  const until = found?.until ?? Math.ceil(clock.now() + Math.max(0, ms))
  const left = until - clock.now()
  if (found === undefined && left > inlineSleepMs) {
    recorder.add({ kind: 'step', ops: [set(at.records.at(path), { status: 'waiting', until })] })
  }
  if (left <= 0) return
  if (left <= inlineSleepMs || !recorder.durable) return clock.sleep(left, abort.signal)
  return at.wait({ kind: 'sleep', step: path, until })
}

/** Takes the first signal of a name, or leaves the run to be woken by one. Undefined when none came in time. */
export async function receive(at: WaitingFunction, name: string, options: ReceiveOptions = {}): Promise<unknown> {
  const { clock, recorder, replay } = at.session
  if (!recorder.durable) {
    throw new InvalidOptionError('frequency', "is 'none', which can't wait for a signal", "Use 'step' or 'boundary'.")
  }
  const path = at.claimPath(`receive ${name}`, at.ordinal(`receive ${name}`))
  const place = at.records.at(path)
  const parse = (recorded: Value | undefined) => {
    const value = cloneValue(recorded)
    return options.schema ? validate(options.schema, value) : value
  }
  await replay?.turn(path)
  const found = at.records.find(path, 'none')
  if (found?.status === 'done') return parse(found.result)
  if (replay) return at.gap(path)
  let got: StepRecord | undefined
  await recorder.conclude((fold) => {
    const { signals = {} } = fold.state as { signals?: Record<string, readonly { value?: Value }[]> }
    // A signal may be named `constructor`: only what was sent counts, not what every object has.
    const [first] = Object.hasOwn(signals, name) ? (signals[name] ?? []) : []
    // One that an attempt took which ran out of time is still for this place.
    const before = valueAt(fold.state, place) as StepRecord | undefined
    got = before?.status === 'done' ? before : undefined
    if (first === undefined || got !== undefined) return undefined
    got = { status: 'done', ...(first.value === undefined ? {} : { result: first.value }) }
    const events = [{ type: 'step', step: at.records.name(path), status: 'completed' }]
    return { kind: 'step', ops: [splice(['signals', name], 0, 1), set(place, got)], data: { events } }
  }, false)
  // As it was decided, and not as some view of the state shows it: a signal is taken once.
  if (got !== undefined) return parse(got.result)
  const until = found?.until ?? (options.timeoutMs === undefined ? undefined : clock.now() + options.timeoutMs)
  if (until !== undefined && until <= clock.now()) {
    recorder.add({ kind: 'step', ops: [set(place, { status: 'done' })] })
    return undefined
  }
  if (found === undefined && until !== undefined) {
    recorder.add({ kind: 'step', ops: [set(place, { status: 'waiting', until })] })
  }
  return at.wait({ kind: 'signal', step: path, name, ...(until === undefined ? {} : { until }) })
}
