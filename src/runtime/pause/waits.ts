import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import { showValue } from '../../codec/clone.js'
import { copyValue, type Value } from '../../codec/value.js'
import { InvalidOptionError, InvalidValueError, TooLargeError } from '../../core/errors.js'
import { push, set, splice, valueAt } from '../../log/entry/ops.js'
import { validate } from '../../store/standard-schema.js'
import type { ReceiveOptions, SleepOptions } from '../step/context.js'
import { signalsOf } from '../run/state/read-run-state.js'
import type { RunState, SignalRecord, StepRecord, Waiting } from '../run/state/run-state.js'
import type { Run } from '../run/run.js'
import type { StepRecords } from '../step/record/step-records.js'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { DUE } from '../../log/contract.js'
import type { Log } from '../../log/log.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { checkKey } from '../run/input/given-input.js'
import { placeOf } from '../run/input/input-keys.js'

/** The function that waits, as far as it matters here. */
export interface WaitingFunction {
  readonly run: Run
  readonly records: StepRecords
  /** Where a wait is: by its key, or by its turn among those of its name. */
  place(name: string, key: string | number | undefined): Placed
  /** Leaves the function hanging until what it waits for has arrived. */
  wait(waiting: Waiting): Promise<never>
  /** A replay has no record of this. */
  gap(path: string): Promise<never>
}

/** The place of a wait. */
export interface Placed {
  readonly path: string
  /** What its record says about it besides what it waits for. */
  marks(asked: string | undefined): Pick<StepRecord, 'since' | 'past' | 'after' | 'beside' | 'asked'>
  /** Resolves when what is recorded there may be handed to the caller. */
  found(record: StepRecord, asked: string | undefined): Promise<void>
  /** The wait is over. */
  end(): void
}

const SLEEP_OPTIONS: OptionNames<SleepOptions> = { key: true }
const RECEIVE_OPTIONS: OptionNames<ReceiveOptions> = { schema: true, timeoutMs: true, key: true }

/** Sleeps here if it is short, and otherwise leaves the run to be woken. */
export async function sleep(at: WaitingFunction, duration: number | Date, options: SleepOptions = {}): Promise<void> {
  checkOptionNames('ctx.sleep', options, SLEEP_OPTIONS)
  const { clock, log, inlineSleepMs, abort, replay } = at.run
  const given = duration instanceof Date ? duration.getTime() : duration
  if (typeof given !== 'number' || !Number.isFinite(given)) {
    throw new InvalidValueError(
      'sleep',
      'must be a number of milliseconds, 0 or more, or a valid Date',
      'Pass for example 60_000.',
    )
  }
  const placed = at.place('sleep', options.key)
  const { path } = placed
  const found = at.records.find(path, 'none')
  const asked = duration instanceof Date ? `until ${duration.toISOString()}` : `${given} ms`
  if (found) await placed.found(found, asked)
  // Short sleeps leave no record, and a replay waits for nothing.
  if (replay) return placed.end()
  const jump = found ? undefined : clock.catchUp()
  if (jump) await jump
  const until = found?.until ?? (duration instanceof Date ? given : Math.ceil(clock.now() + Math.max(0, given)))
  const left = until - clock.now()
  const isLong = left > inlineSleepMs && log.durable
  if (found === undefined && left > inlineSleepMs) {
    log.add({ kind: 'step', ops: [set(at.records.at(path), waitingRecord(placed, until, asked))] })
  }
  if (isLong) return at.wait({ kind: 'sleep', step: path, until })
  if (left > 0) await clock.sleep(left, abort.signal)
  placed.end()
}

/** Takes the first signal of a name, or leaves the run to be woken by one. Undefined if none came in time. */
export async function receive(at: WaitingFunction, name: string, options: ReceiveOptions = {}): Promise<unknown> {
  checkOptionNames('ctx.receive', options, RECEIVE_OPTIONS)
  const { clock, log, replay } = at.run
  if (!log.durable) {
    throw new InvalidOptionError('frequency', "is 'none', which can't wait for a signal", "Use 'step' or 'boundary'.")
  }
  if (!isSignalName(name)) throw badSignalName(name)
  const placed = at.place(`receive ${name}`, options.key)
  const { path } = placed
  const place = at.records.at(path)
  const parse = (recorded: Value | undefined) => {
    placed.end()
    const value = showValue(recorded)
    return options.schema ? validate(options.schema, value) : value
  }
  await replay?.turn(path)
  const found = at.records.find(path, 'none')
  const asked = options.timeoutMs === undefined ? undefined : `${options.timeoutMs} ms`
  if (found) await placed.found(found, asked)
  if (found?.status === 'done') return parse(found.result)
  if (replay) return at.gap(path)
  const jump = found ? undefined : clock.catchUp()
  if (jump) await jump
  let got: StepRecord | undefined
  await log.decide((fold) => {
    const [first] = signalsOf(fold.state as RunState, name)
    // A signal taken by an attempt that ran out of time is still for this place.
    const before = valueAt(fold.state, place) as StepRecord | undefined
    got = before?.status === 'done' ? before : undefined
    if (first === undefined || got !== undefined) return undefined
    got = { ...doneRecord(placed, asked), ...(first.value === undefined ? {} : { result: first.value }) }
    const events = [{ type: 'step', step: at.records.name(path), status: 'completed' }]
    return { kind: 'step', ops: [splice(['signals', name], 0, 1), set(place, got)], data: { events } }
  })
  // As it was decided, and not as some view of the state shows it: a signal is taken once.
  if (got !== undefined) return parse(got.result)
  const until = found?.until ?? (options.timeoutMs === undefined ? undefined : clock.now() + options.timeoutMs)
  if (until !== undefined && until <= clock.now()) {
    log.add({ kind: 'step', ops: [set(place, doneRecord(placed, asked))] })
    return placed.end()
  }
  // Even without a limit: that something waits here tells later processes that this point was reached but not passed.
  if (found === undefined) {
    log.add({ kind: 'step', ops: [set(place, waitingRecord(placed, until, asked))] })
  }
  return at.wait({ kind: 'signal', step: path, name, ...(until === undefined ? {} : { until }) })
}

function waitingRecord(placed: Placed, until: number | undefined, asked: string | undefined): StepRecord {
  return { status: 'waiting', ...(until === undefined ? {} : { until }), ...placed.marks(asked) }
}

function doneRecord(placed: Placed, asked: string | undefined): StepRecord {
  return { status: 'done', ...placed.marks(asked) }
}

/** Valid names for a signal. */
function isSignalName(name: unknown): name is string {
  return typeof name === 'string' && /^[^/[\]\p{Cc}]{1,200}$/u.test(name)
}

function badSignalName(name: unknown): InvalidValueError {
  const given = typeof name === 'string' ? JSON.stringify(name.slice(0, 200)) : `a ${typeof name}`
  const remedy = 'Use 1 to 200 printable characters without slashes and square brackets.'
  return new InvalidValueError('name', `is ${given}, which is not a valid name for a signal`, remedy)
}

const MAX_SIGNALS = 1000

/** What happened to a signal: it is waiting to be received, or one with its key had been sent before. */
export interface Signalled {
  readonly signal: 'sent' | 'known'
}

/** A signal that was checked and copied. */
interface Checked {
  readonly name: string
  readonly signal: SignalRecord
  /** Where its key is in the index of keys, if it has one. */
  readonly place: readonly [bucket: string, name: string] | undefined
}

export function checkSignal(
  { clock, randomId, redactor }: RuntimeEnvironment,
  name: string,
  value: unknown,
  given: string | undefined,
): Checked {
  const key = checkKey(given)
  if (!isSignalName(name)) throw badSignalName(name)
  const copied = value === undefined ? undefined : copyValue(value, DEFAULT_LIMITS)
  const stored = copied === undefined ? undefined : (redactor?.value(copied) ?? copied)
  const signal = { id: randomId(), at: clock.now(), ...(stored === undefined ? {} : { value: stored }) }
  return { name, signal, place: key === undefined ? undefined : placeOf(JSON.stringify([name, key])) }
}

/** Leaves a signal with a thread, unless one with its key is there. */
export async function sendSignal(log: Log, { name, signal, place }: Checked): Promise<Signalled> {
  const { entries } = await log.update((fold) => {
    const state = fold.state as RunState
    if (place && state.signalKeys?.[place[0]]?.[place[1]] !== undefined) return undefined
    const waiting = signalsOf(state, name).length
    if (waiting >= MAX_SIGNALS) {
      throw new TooLargeError(`signals.${name}`, 'unreceived signals', MAX_SIGNALS, waiting, 'Receive them first.')
    }
    // A signal that nobody waits for would make workers look at the thread over and over.
    const wake = isAwaited(state, name) ? { index: { wakeAt: DUE } } : {}
    const known = place === undefined ? [] : [set(['signalKeys', ...place], fold.seq + 1)]
    return [{ kind: 'signal', ops: [push(['signals', name], signal), ...known], ...wake }]
  })
  return { signal: entries.length > 0 ? 'sent' : 'known' }
}

// A signal does not fix a failed run: it is received when somebody resumes the run.
function isAwaited({ run }: RunState, signal: string): boolean {
  if (run?.status !== 'running') return false
  return run.waiting === undefined || run.waiting.some((wait) => wait.kind === 'signal' && wait.name === signal)
}
