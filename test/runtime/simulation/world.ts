import type { Clock } from '#src/core/time/clock.js'
import type { UnknownAnswer } from '#src/runtime/step/attempt/ledger.js'
import { type Effect, NotExecutedError, type Reconciled, type StepContext } from 'holdfast'
import type { Mortal } from './mortal.js'
import { type Call, judgeStart, type Known } from './rules.js'
import type { Mishap, WorkSpec } from './spec.js'
import { WaitBook } from './wait-book.js'

const SHORT_TTL_MS = 5000
/** A key is checked a little before it is used; other sides remember it a little longer than they promise. */
const SLACK_MS = 3000
const DAY_MS = 24 * 60 * 60 * 1000
export const TIMEOUT_MS = 500
const MOST_VAGUE = 100

interface Executed {
  readonly place: string
  readonly at: number
  readonly result: unknown
  /** As it was declared: the other side honours the key of an idempotent one. */
  readonly effect: Effect
}

/** Where in a program, and in which round of its loops, a call is made. */
export interface Place {
  readonly name: string
  /** The last part of the path of its record, or, of a step, its name and the hash of its input, which no other has. */
  readonly record: { readonly path: string } | { readonly input: string; readonly name: string }
  /** What its node appends to the state when it is done. */
  readonly mark: string
  /** Which instance of its subgraph it lies in. */
  readonly outer: string
  /** What the runtime is to be told of a call that another found out about: the result itself, or a node's update. */
  readonly told: (result: string) => unknown
}

/**
 * Everything outside of the programs: it outlives all processes and knows what really happened. Each place of a
 * program gives the same result whenever and however often it is called, so that two runs can be compared.
 */
export class World {
  readonly clock: Clock
  /** Whose scope of the store it is. */
  readonly thread: string
  readonly violations: string[] = []
  readonly wanted = new Set<string>()
  readonly waits: WaitBook
  /** A wait was refused because it has no key. */
  isRefused = false
  /** Set once the log can be looked into. */
  look: (place: Place) => Promise<Known> = async () => ({
    intended: true,
    keys: [],
    acknowledged: false,
    isTakenOver: false,
  })
  readonly #calls: Call[] = []
  readonly #executed = new Map<string, Executed>()
  readonly #denied = new Set<string>()
  /** Keys of which a person or the other side said what became of them, since their last call. */
  readonly #resolved = new Set<string>()
  readonly #drawn = new Map<string, number>()
  readonly #reconciled = new Map<string, number>()

  constructor(clock: Clock, thread: string) {
    this.clock = clock
    this.thread = thread
    this.waits = new WaitBook(clock, this.violations)
  }

  /** A wait ended with an error, which the program may swallow or wrap. */
  refuses(error: unknown): never {
    if ((error as { readonly code?: unknown }).code === 'invalid-program') this.isRefused = true
    throw error
  }

  get calls(): readonly Readonly<Call>[] {
    return this.#calls
  }

  /** The body of a step or node: what user code does with the outside. */
  async call(
    process: Mortal,
    place: Place,
    work: WorkSpec,
    step: Pick<StepContext, 'idempotencyKey' | 'abortSignal'>,
  ): Promise<string> {
    const begunAt = this.clock.now()
    const call: Call = {
      place: place.name,
      name: work.name,
      mark: place.mark,
      effect: work.effect,
      key: step.idempotencyKey,
      ownKey: work.ownKey !== undefined,
      begunAt,
      process: process.name,
      executed: false,
      denied: false,
      intended: true,
      isKnownOtherwise: false,
    }
    // From here on a process may be overtaken in mid-call, which nothing can prevent. Before, it must have known better.
    if (work.effect !== 'read' && !process.holdsLease) this.#blame(call, 'starts, though its lease may be lost')
    await process.moment()
    await this.#refuseStale(process, work)
    // To a version that was overtaken it may still be a read, which anybody may repeat. And a read of a new name is
    // another step: nobody can know that it does what one of another name did.
    if (process.overtaken || (work.effect === 'read' && work.name !== undefined)) return resultOf(place.name)
    const known = await this.look(place)
    call.intended = known.intended
    call.isKnownOtherwise = known.keys.some((key) => key !== call.key)
    const judged = judgeStart(call, known, this.#calls, { denied: this.#denied, resolved: this.#resolved })
    for (const what of judged) this.#blame(call, what)
    this.#calls.push(call)
    if (work.ms > 0) await process.clock.sleep(isTimed(work) ? Math.min(work.ms, TIMEOUT_MS / 2) : work.ms)
    await process.moment()
    await this.#refuseStale(process, work)
    // A process that stood still past its time limit has given the attempt up before its request was sent.
    step.abortSignal.throwIfAborted()
    const mishap = this.#draw(call, work)
    // The request is out and can't be called back: it lands when everybody has given it up.
    if (mishap === 'late') {
      await process.clock.sleep(3 * TIMEOUT_MS)
      await this.#refuseStale(process, work)
    }
    const happens = mishap === undefined || mishap === 'late' || mishap.endsWith('after')
    if (happens) this.#execute(call, work, place.told(resultOf(place.name)))
    await process.moment()
    if (mishap === undefined || mishap === 'late') return resultOf(place.name)
    if (mishap.startsWith('hang')) await process.clock.sleep(10 * TIMEOUT_MS, step.abortSignal)
    if (mishap !== 'not-executed') throw new Error(`no luck at ${place.name}`)
    this.#denied.add(call.key)
    // Of an attempt that was given up meanwhile nobody hears this.
    step.abortSignal.throwIfAborted()
    call.denied = true
    throw new NotExecutedError(`refused at ${place.name}`, { retryable: true })
  }

  async reconcile(process: Mortal, work: WorkSpec, key: string): Promise<Reconciled> {
    await process.moment()
    const asked = this.#reconciled.get(key) ?? 0
    this.#reconciled.set(key, asked + 1)
    if (asked === 0 && work.reconcile === 'throws') throw new Error('the other side does not answer')
    if (asked === 0 && work.reconcile === 'unknown') return { outcome: 'unknown' }
    this.#resolved.add(key)
    const found = this.#executed.get(key)
    return found ? { outcome: 'executed', result: found.result } : { outcome: 'not-executed' }
  }

  /** What a person finds out who is asked what became of a call. */
  answer(key: string): UnknownAnswer {
    this.#resolved.add(key)
    const found = this.#executed.get(key)
    return found ? { outcome: 'succeeded', result: found.result } : { outcome: 'not-executed' }
  }

  /** Effects that happened more than once. */
  checkCounts(): void {
    const counts = new Map<string, number>()
    for (const { executed, place, effect } of this.#calls) {
      // Only a read may come again; but not where something that is no read has happened before.
      if (!executed || (effect === 'read' && !counts.has(place))) continue
      const count = (counts.get(place) ?? 0) + 1
      counts.set(place, count)
      if (count === 2) this.violations.push(`${place} (${effect}) took effect twice`)
    }
  }

  // A process that stands still in the middle of a call wakes up with a permission that is no longer true. No log can
  // prevent that; what it can, and must, is to keep such a process from writing.
  async #refuseStale(process: Mortal, work: WorkSpec): Promise<void> {
    if (process.overtaken && work.effect !== 'read') await new Promise(() => {})
  }

  #draw(call: Call, work: WorkSpec): Mishap | undefined {
    // The other side remembers a refusal with its key, unless the program insists on that key.
    if (call.effect !== 'read' && !call.ownKey && this.#denied.has(call.key)) return 'not-executed'
    const drawn = this.#drawn.get(call.place) ?? 0
    this.#drawn.set(call.place, drawn + 1)
    if (work.hopeless) {
      // Of what was ever called otherwise a person may be asked each time, unless the error is definite.
      const always = this.#calls.every(({ place, effect }) => place !== call.place || effect === work.effect)
      const mayBeVague = work.effect === 'read' || work.effect === 'reconcilable'
      // It may have been begun as another kind by a process that died before it called. Nobody who is asked each time
      // has it tried for ever.
      const isVague = always && mayBeVague && drawn < MOST_VAGUE
      return isVague ? 'throw-before' : 'not-executed'
    }
    // Where the other side honours the key, a request that lands late is one that was answered late.
    const mishap = work.mishaps[drawn] === 'late' && work.effect === 'idempotent' ? 'hang-after' : work.mishaps[drawn]
    // Nor can it refuse what it did.
    return mishap === 'not-executed' && this.#executed.has(call.key) ? undefined : mishap
  }

  #execute(call: Call, work: WorkSpec, result: unknown): void {
    const found = this.#executed.get(call.key)
    if (found && found.place !== call.place) this.#blame(call, `has the key of ${found.place}`)
    const isIdempotent = call.effect === 'idempotent'
    // Of an idempotent effect that begins nothing may be recorded: who gives it a key of its own in the program, another
    // one or none any more, or another name, can't be helped.
    const others = this.#calls.filter(
      ({ place, executed, key }) => place === call.place && executed && key !== call.key,
    )
    const areUnrecorded = others.every(({ effect }) => effect === 'idempotent')
    const isRekeyed = (isIdempotent || areUnrecorded) && others.some(({ ownKey }) => ownKey || call.ownKey)
    const isRenamed = areUnrecorded && others.some(({ name }) => name !== call.name)
    if ((isRekeyed || isRenamed) && !call.isKnownOtherwise) return
    if (found?.effect === 'idempotent' || (found?.effect === 'read' && isIdempotent)) {
      // A later version that declares another kind does not know how old its key is.
      if (!isIdempotent || call.begunAt - found.at <= ttlOf(work) + SLACK_MS) return
    }
    call.executed = true
    this.#executed.set(call.key, { place: call.place, at: this.clock.now(), result, effect: call.effect })
  }

  #blame(call: Call, what: string): void {
    this.violations.push(`${call.place} (${call.effect}, by ${call.process}) ${what}`)
  }
}

/** Has a time limit. */
export function isTimed(work: WorkSpec): boolean {
  return work.mishaps.some((mishap) => mishap.startsWith('hang') || mishap === 'late')
}

export function ttlOf(work: WorkSpec): number {
  return work.shortTtl ? SHORT_TTL_MS : DAY_MS
}

export function resultOf(place: string): string {
  return `result of ${place}`
}
