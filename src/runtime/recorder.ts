import { InvalidOptionError, isHoldfastError } from '../core/errors.js'
import type { Claim } from '../log/claim.js'
import type { SqlSession } from '../log/contract.js'
import type { Draft } from '../log/draft.js'
import type { Fold } from '../log/fold.js'
import { applyOp, type State } from '../log/ops.js'
import type { Updated } from '../log/update.js'
import type { RunState } from './run-state.js'

/** How often what happened is written: after every step, every so many steps, at the ends of a run, or never. */
export type Frequency = 'step' | 'boundary' | 'none' | { readonly every: number }

/** 'sync': the next step starts when the record of the last is acknowledged. 'async': a bounded number may be under way. */
export type Durable = 'sync' | 'async' | { readonly lag: number }

export interface RecordPolicy {
  readonly frequency: Frequency
  readonly durability: Durable
}

const DEFAULT_LAG = 16

/** Called with each entry of ours that is acknowledged. */
export type OnRecorded = (draft: Draft, updated: Updated, before: State) => void

/** Where a run writes what it does. */
export interface Recorder {
  /** The state as this run sees it. */
  readonly state: RunState
  /** What others sent, as of the newest entry known: inputs, answers, signals, cancellations. */
  readonly seen: RunState
  readonly fold: Fold
  /** False when nothing is kept: what needs a durable record is refused then. */
  readonly durable: boolean
  /** Notes something that is written with whatever is written next. */
  add(draft: Draft): void
  /** Records the end of a step: written now or later, as the policy says. */
  record(draft: Draft): Promise<void>
  /** Everything noted so far is acknowledged when this resolves: what must precede an effect on the outside world. */
  barrier(): Promise<void>
  /**
   * Decides on the newest state, guests' entries included, and writes that together with all that waits. Deciding on
   * nothing leaves what waits as it is.
   */
  conclude(decide: (fold: Fold) => Draft | undefined, release: boolean): Promise<Updated | undefined>
  /** Runs SQL and what it decides in one transaction, together with all that waits. */
  transact<Result>(
    work: (sql: SqlSession) => Promise<Result>,
    decide: (result: Result) => Draft,
    timeoutMs: number | undefined,
  ): Promise<Result>
  /** Makes every later write fail with this error. */
  fail(error: unknown): void
  /** Forgets what waits to be written, after the log refused it: the state is what the log says. */
  discard(): Promise<void>
}

/** A write that is under way. */
interface Flight {
  /** Where the log ended when it was last decided on. */
  on: number
  landed: Promise<void>
}

/**
 * Writes to a claimed log and holds the state as the run sees it: acknowledged entries and what waits to be written.
 * The first failure is kept: nothing is written after it.
 */
export class LogRecorder implements Recorder {
  readonly durable = true
  readonly #claim: Claim
  readonly #every: number
  readonly #lag: number
  readonly #onRecorded: OnRecorded
  readonly #flights: Flight[] = []
  /** What waits to be written, as one entry. */
  #pending: Draft[] = []
  #steps = 0
  #view: View | undefined
  /** The view holds something that will not be written. */
  #stale = false
  /** Written ahead of the program, and refused by the log: what came after it must not be written either. */
  #refused: { readonly error: unknown } | undefined
  #exclusive: Promise<unknown> = Promise.resolve()
  #deciding = 0
  #failure: { readonly error: unknown } | undefined

  constructor(claim: Claim, policy: RecordPolicy, onRecorded: OnRecorded) {
    this.#claim = claim
    this.#every = stepsPerWrite(policy.frequency)
    this.#lag = lagOf(policy.durability)
    this.#onRecorded = onRecorded
  }

  get state(): RunState {
    return (this.#view?.state ?? this.#claim.log.fold.state) as RunState
  }

  get seen(): RunState {
    return this.#claim.log.fold.state as RunState
  }

  get fold(): Fold {
    return this.#claim.log.fold
  }

  add(draft: Draft): void {
    this.#check()
    this.#view ??= new View(this.#claim.log.fold.state)
    this.#view.add(draft)
    this.#pending.push(draft)
  }

  async record(draft: Draft): Promise<void> {
    this.add(draft)
    this.#steps++
    if (this.#steps < this.#every) return
    // What is being decided on holds entries noted earlier: if nothing comes of it they are put back, and go first.
    while (this.#deciding > 0) await this.#exclusive
    if (this.#pending.length === 0) return this.#lag === 0 ? this.#drain() : undefined
    const written = this.#write(draft)
    if (this.#lag === 0) return written
    // A failure is reported by the next call; an unhandled rejection would end the process.
    written.catch(() => {})
    while (this.#flights.length > this.#lag) await this.#flights[0]?.landed
    this.#check()
  }

  async barrier(): Promise<void> {
    // Whatever is concluded at this moment holds entries that were noted before.
    await this.#exclusive
    if (this.#pending.length > 0) await this.#write()
    await this.#drain()
  }

  conclude(decide: (fold: Fold) => Draft | undefined, release: boolean): Promise<Updated | undefined> {
    return this.#alone(async (pending) => {
      let draft: Draft | undefined
      let before: State = {}
      const drafts = (fold: Fold): readonly Draft[] | undefined => {
        before = fold.state
        const last = decide(pending === undefined ? fold : { ...fold, state: applyOps(fold.state, pending) })
        draft = last && (pending === undefined ? last : mergeAll([pending, last]))
        return draft && [draft]
      }
      const updated = await (release ? this.#claim.conclude(drafts) : this.#claim.update(drafts))
      if (draft === undefined || updated.entries.length === 0) return undefined
      this.#onRecorded(draft, updated, before)
      return updated
    })
  }

  async transact<Result>(
    work: (sql: SqlSession) => Promise<Result>,
    decide: (result: Result) => Draft,
    timeoutMs: number | undefined,
  ): Promise<Result> {
    const done = await this.#alone(async (pending) => {
      let draft: Draft | undefined
      let before: State = {}
      const { result, updated } = await this.#claim.transact(
        work,
        (fold, value) => {
          before = fold.state
          const made = mergeAll(pending === undefined ? [decide(value)] : [pending, decide(value)]) as Draft
          draft = made
          return [made]
        },
        timeoutMs === undefined ? {} : { timeoutMs },
      )
      this.#onRecorded(draft as Draft, updated, before)
      return { result }
    })
    return (done as { readonly result: Result }).result
  }

  fail(error: unknown): void {
    this.#failure ??= { error }
  }

  async discard(): Promise<void> {
    while (this.#flights.length > 0) await this.#flights[0]?.landed
    this.#pending = []
    this.#steps = 0
    this.#refused = undefined
    this.#view = undefined
    this.#stale = false
    this.#check()
  }

  /** One at a time, after all that is under way, with what waits in its hands. Put back when nothing was written. */
  #alone<Result>(write: (pending: Draft | undefined) => Promise<Result | undefined>): Promise<Result | undefined> {
    this.#deciding++
    const turn = this.#exclusive.then(async () => {
      await this.#drain()
      const pending = this.#pending
      this.#pending = []
      const written = this.#guard(write(mergeAll(pending)))
      const flight: Flight = { on: -1, landed: written.then(noop, noop) }
      this.#flights.push(flight)
      try {
        const result = await written
        if (result === undefined) this.#restore(pending)
        else this.#steps = 0
        return result
      } catch (error) {
        this.#restore(pending)
        throw error
      } finally {
        this.#landed(flight)
      }
    })
    const decided = () => {
      this.#deciding--
    }
    this.#exclusive = turn.then(decided, decided)
    return turn
  }

  #restore(pending: readonly Draft[]): void {
    this.#pending = [...pending, ...this.#pending]
  }

  /** Writes all that waits. `own` is what the caller brought: if the log refuses, that is dropped and the rest waits on. */
  #write(own?: Draft): Promise<void> {
    const pending = this.#pending
    const draft = mergeAll(pending) as Draft
    this.#pending = []
    this.#steps = 0
    let before: State = {}
    const previous = this.#lag > 0 ? this.#flights.at(-1) : undefined
    const flight: Flight = { on: -1, landed: Promise.resolve() }
    const drafts = (fold: Fold) => {
      // What the program did next may build on what was refused.
      if (previous !== undefined && fold.seq <= previous.on) throw new AfterRefused()
      flight.on = fold.seq
      before = fold.state
      return [draft]
    }
    const written = this.#guard(this.#claim.update(drafts)).then(
      (updated) => this.#onRecorded(draft, updated, before),
      (error: unknown) => {
        this.#refuse(error, pending, own)
        throw error
      },
    )
    flight.landed = written.then(noop, noop)
    this.#flights.push(flight)
    return written.finally(() => this.#landed(flight))
  }

  // A value that can't be stored is the business of the step that brought it. But a program that is ahead of its records
  // has gone on from there, and ends.
  #refuse(error: unknown, pending: readonly Draft[], own: Draft | undefined): void {
    if (isFinal(error)) return
    if (this.#lag > 0) {
      if (!(error instanceof AfterRefused)) this.#refused ??= { error }
      return
    }
    this.#restore(pending.filter((draft) => draft !== own))
    this.#stale = true
  }

  // Once all is acknowledged the log's own fold is the state, guests' entries included.
  #landed(flight: Flight): void {
    this.#flights.splice(this.#flights.indexOf(flight), 1)
    if (this.#flights.length > 0) return
    if (this.#pending.length === 0) this.#view = undefined
    else if (this.#stale) this.#view = new View(this.#claim.log.fold.state, this.#pending)
    this.#stale = false
  }

  async #guard<Result>(write: Promise<Result>): Promise<Result> {
    try {
      return await write
    } catch (error) {
      if (isFinal(error)) this.fail(error)
      throw error
    }
  }

  async #drain(): Promise<void> {
    while (this.#flights.length > 0) await this.#flights[0]?.landed
    this.#check()
  }

  #check(): void {
    if (this.#failure) throw this.#failure.error
    if (this.#refused) throw this.#refused.error
  }
}

/** Not written because of what came before it, which was refused. */
class AfterRefused extends Error {}

/** A state and what is noted on top of it, which is applied when somebody looks: most steps land before anybody does. */
class View {
  #state: State
  #noted: Draft[]

  constructor(state: State, noted: readonly Draft[] = []) {
    this.#state = state
    this.#noted = [...noted]
  }

  add(draft: Draft): void {
    this.#noted.push(draft)
  }

  get state(): State {
    for (const draft of this.#noted) this.#state = applyOps(this.#state, draft)
    this.#noted = []
    return this.#state
  }
}

/** Keeps nothing: for one-shot calls that need no record. */
export class ViewRecorder implements Recorder {
  readonly durable: boolean
  readonly #onRecorded: OnRecorded
  #fold: Fold

  /** `durable` lets a replay go through what only a kept record allows. */
  constructor(fold: Fold, onRecorded: OnRecorded, durable = false) {
    this.#fold = fold
    this.#onRecorded = onRecorded
    this.durable = durable
  }

  get state(): RunState {
    return this.#fold.state as RunState
  }

  get seen(): RunState {
    return this.state
  }

  get fold(): Fold {
    return this.#fold
  }

  add(draft: Draft): void {
    this.#fold = { ...this.#fold, state: applyOps(this.#fold.state, draft) }
  }

  async record(draft: Draft): Promise<void> {
    const before = this.#fold.state
    this.add(draft)
    this.#onRecorded(draft, { entries: [], fold: this.#fold }, before)
  }

  async barrier(): Promise<void> {}

  async conclude(decide: (fold: Fold) => Draft | undefined): Promise<Updated | undefined> {
    const draft = decide(this.#fold)
    if (draft === undefined) return undefined
    await this.record(draft)
    return { entries: [], fold: this.#fold }
  }

  transact(): Promise<never> {
    throw new InvalidOptionError('frequency', "is 'none', which keeps no record to commit with", "Use 'step'.")
  }

  fail(): void {}

  async discard(): Promise<void> {}
}

function applyOps(state: State, draft: Draft): State {
  const owned = new Set<object>()
  let after = state
  for (const op of draft.ops ?? []) after = applyOp(after, op, owned)
  return after
}

// Values that can't be stored and SQL of the user's own that fails are the step's fault, not the log's.
function isFinal(error: unknown): boolean {
  return isHoldfastError(error) && FINAL.has(error.code)
}

const FINAL: ReadonlySet<string> = new Set([
  'fenced',
  'unavailable',
  'storage',
  'corrupt',
  'data-loss',
  'closed',
  'conflict',
])

function noop(): void {}

/** Drafts as one entry: what the last one says of the index holds. */
function mergeAll(drafts: readonly Draft[]): Draft | undefined {
  const last = drafts.at(-1)
  if (last === undefined || drafts.length === 1) return last
  const events = drafts.flatMap(eventsOf)
  const indexes = drafts.flatMap(({ index }) => (index ? [index] : []))
  const writes = drafts.flatMap(({ store }) => store ?? [])
  return {
    kind: last.kind,
    ops: drafts.flatMap(({ ops }) => ops ?? []),
    ...(indexes.length > 0 ? { index: indexes.reduce(mergeIndex) } : {}),
    ...(writes.length > 0 ? { store: writes } : {}),
    ...(events.length > 0 ? { data: { events } } : {}),
    ...(drafts.some(({ keyframe }) => keyframe) ? { keyframe: true } : {}),
  }
}

type Index = NonNullable<Draft['index']>

function mergeIndex(first: Index, second: Index): Index {
  const metadata = { ...first.metadata, ...second.metadata }
  const tags = { ...first.tags, ...second.tags }
  return {
    ...first,
    ...second,
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
    ...(Object.keys(tags).length > 0 ? { tags } : {}),
  }
}

function eventsOf(draft: Draft): readonly unknown[] {
  return (draft.data as { readonly events?: readonly unknown[] } | undefined)?.events ?? []
}

/** Refuses policies that nobody knows. */
export function checkRecordPolicy({ frequency, durability }: RecordPolicy): void {
  if (frequency !== 'none') stepsPerWrite(frequency)
  lagOf(durability)
}

function stepsPerWrite(frequency: Frequency): number {
  if (frequency === 'step') return 1
  if (frequency === 'boundary') return Number.POSITIVE_INFINITY
  if (
    typeof frequency === 'object' &&
    frequency !== null &&
    Number.isSafeInteger(frequency.every) &&
    frequency.every >= 1
  ) {
    return frequency.every
  }
  throw new InvalidOptionError('frequency', 'is none that is known', "Use 'step', { every: n }, 'boundary' or 'none'.")
}

function lagOf(durability: Durable): number {
  if (durability === 'sync') return 0
  if (durability === 'async') return DEFAULT_LAG
  if (
    typeof durability === 'object' &&
    durability !== null &&
    Number.isSafeInteger(durability.lag) &&
    durability.lag >= 1
  ) {
    return durability.lag
  }
  throw new InvalidOptionError('durability', 'is none that is known', "Use 'sync', 'async' or { lag: n }.")
}
