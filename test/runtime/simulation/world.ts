import type { Clock } from '#src/core/clock.js'
import type { UnknownAnswer } from '#src/runtime/ledger.js'
import { type Effect, NotExecutedError, type Reconciled, type StepContext } from 'holdfast'
import type { Mortal } from './mortal.js'
import type { Mishap, WorkSpec } from './spec.js'

const SHORT_TTL_MS = 5000
/** A key is checked a little before it is used; other sides remember it a little longer than they promise. */
const SLACK_MS = 3000
const DAY_MS = 24 * 60 * 60 * 1000
export const TIMEOUT_MS = 500

/** One call that reached the outside world. */
interface Call {
  readonly place: string
  readonly mark: string
  readonly effect: Effect
  readonly key: string
  readonly process: string
  /** A process that stands still in the middle of its call uses a key that was good when the call began. */
  readonly begunAt: number
  executed: boolean
  /** The caller heard for certain that nothing happened. */
  denied: boolean
}

interface Executed {
  readonly place: string
  readonly at: number
  readonly result: unknown
}

/** Where in a program, and in which round of its loops, a call is made. */
export interface Place {
  readonly name: string
  /** The last part of the path of its record. */
  readonly record: string
  /** What its node appends to the state when it is done. */
  readonly mark: string
  /** Which instance of its subgraph it lies in. */
  readonly outer: string
  /** What the runtime is to be told of a call that another found out about: the result itself, or a node's update. */
  readonly told: (result: string) => unknown
}

/** What the log holds of a place when a call of it starts. */
export interface Known {
  /** Its intent is recorded. */
  readonly intended: boolean
  /** Its result is. */
  readonly acknowledged: boolean
}

const FIRST_PROCESS = 'p0'

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
  /** Set once the log can be looked into. */
  look: (place: Place) => Promise<Known> = async () => ({ intended: true, acknowledged: false })
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
  }

  get calls(): readonly Readonly<Call>[] {
    return this.#calls
  }

  /** The body of a step or node: what user code does with the outside. */
  async call(
    process: Mortal,
    place: Place,
    work: WorkSpec,
    step: Pick<StepContext, 'idempotencyKey' | 'abort'>,
  ): Promise<string> {
    const begunAt = this.clock.now()
    await process.moment()
    await this.#refuseStale(process, work)
    const call: Call = {
      place: place.name,
      mark: place.mark,
      effect: work.effect,
      key: step.idempotencyKey,
      begunAt,
      process: process.name,
      executed: false,
      denied: false,
    }
    this.#checkStart(call)
    this.#calls.push(call)
    const known = await this.look(place)
    if (known.acknowledged && work.effect !== 'read') this.#blame(call, 'runs again after its result was acknowledged')
    if (!known.intended && isGuarded(work.effect)) this.#blame(call, 'started without a durable intent')
    if (work.ms > 0) await process.clock.sleep(work.ms)
    await process.moment()
    await this.#refuseStale(process, work)
    // A process that stood still past its time limit has given the attempt up before its request was sent.
    step.abort.throwIfAborted()
    const mishap = this.#draw(call, work)
    if (mishap === undefined || mishap.endsWith('after')) this.#execute(call, work, place.told(resultOf(place.name)))
    await process.moment()
    if (mishap === undefined) return resultOf(place.name)
    if (mishap.startsWith('hang')) await process.clock.sleep(10 * TIMEOUT_MS, step.abort)
    if (mishap !== 'not-executed') throw new Error(`no luck at ${place.name}`)
    this.#denied.add(call.key)
    // Of an attempt that was given up meanwhile nobody hears this.
    step.abort.throwIfAborted()
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
      if (!executed || effect === 'read') continue
      const count = (counts.get(place) ?? 0) + 1
      counts.set(place, count)
      if (count === 2) this.violations.push(`${place} (${effect}) took effect twice`)
    }
  }

  // A process that stood still between an intent and its call wakes up with a permission that is no longer true. No
  // log can prevent that; what it can, and must, is to keep such a process from writing.
  async #refuseStale(process: Mortal, work: WorkSpec): Promise<void> {
    if (process.overtaken && work.effect !== 'read') await new Promise(() => {})
  }

  #checkStart(call: Call): void {
    if (call.effect === 'read') return
    const before = this.#calls.filter(({ place }) => place === call.place)
    const last = before.at(-1)
    if (last === undefined) return
    if (last.key !== call.key) {
      if (before.some(({ key }) => key === call.key)) this.#blame(call, 'comes back to a key that it had given up')
      if (!this.#denied.has(last.key) && !this.#resolved.has(last.key)) {
        this.#blame(call, 'has another key, though nothing says that the last one failed')
      }
    } else if (last.denied && last.process === call.process && !this.#mayHaveHappened(before, call)) {
      this.#blame(call, 'keeps the key of a call that failed for certain')
    }
    const isSettled = last.denied || this.#resolved.has(last.key)
    if (isGuarded(call.effect) && !isSettled) this.#blame(call, 'starts again, though nobody knows what the last did')
    this.#resolved.delete(last.key)
  }

  /**
   * A refusal speaks of one attempt: while another with the same key may have happened, the key must stay. Who takes a
   * run up from a process that died can't know what that one tried.
   */
  #mayHaveHappened(before: readonly Call[], { key, process }: Call): boolean {
    if (process !== FIRST_PROCESS) return true
    return before.some((other) => other.key === key && !other.denied)
  }

  #draw(call: Call, work: WorkSpec): Mishap | undefined {
    // The other side remembers a refusal with its key.
    if (call.effect !== 'read' && this.#denied.has(call.key)) return 'not-executed'
    const drawn = this.#drawn.get(call.place) ?? 0
    this.#drawn.set(call.place, drawn + 1)
    if (work.hopeless) return work.effect === 'read' || work.effect === 'reconcilable' ? 'throw-before' : 'not-executed'
    const mishap = work.mishaps[drawn]
    // Nor can it refuse what it did.
    return mishap === 'not-executed' && this.#executed.has(call.key) ? undefined : mishap
  }

  #execute(call: Call, work: WorkSpec, result: unknown): void {
    const found = this.#executed.get(call.key)
    if (found && call.effect === 'idempotent' && call.begunAt - found.at <= ttlOf(work) + SLACK_MS) return
    call.executed = true
    this.#executed.set(call.key, { place: call.place, at: this.clock.now(), result })
  }

  #blame(call: Call, what: string): void {
    this.violations.push(`${call.place} (${call.effect}, by ${call.process}) ${what}`)
  }
}

export function ttlOf(work: WorkSpec): number {
  return work.shortTtl ? SHORT_TTL_MS : DAY_MS
}

function isGuarded(effect: Effect): boolean {
  return effect === 'once' || effect === 'reconcilable'
}

function resultOf(place: string): string {
  return `result of ${place}`
}
