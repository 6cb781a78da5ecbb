import { eachOwn } from '../../../codec/wide-record.js'
import { leftBegun, nondeterministic } from '../../errors.js'
import { awaitsChild, isBegun } from '../../run/state/read-run-state.js'
import type { StepRecord } from '../../run/state/run-state.js'
import type { StepRecords } from '../record/step-records.js'
import { CALLED, type Cause, causesOf, shortHash } from './trail.js'

interface Held {
  readonly path: string
  readonly go: () => void
  readonly refuse: (error: unknown) => void
  /** A step that failed, and is retried if nothing that is recorded depends on that. */
  readonly doubted?: 'read' | 'effect'
}

/** Where in its function a step was requested. */
export interface Asked extends Cause {
  readonly path: string
  readonly isEffect: boolean
  /** Something else of the function was open at that time. */
  readonly isBeside: boolean
  /** What the code that requested it passed last. */
  readonly past: string
}

/**
 * Marks in a record: not requested directly after something (what the code passed last follows), and alongside
 * something else.
 */
const SOMETIME = '~'
const BESIDE = '+'

/**
 * Which recorded steps of an activation its function has reached again.
 *
 * Everything that a function has seen is recorded before what it did next. So it reaches all of its records without a
 * new effect, unless it is a different function by now: one that gives a step a new name would repeat what is done. So
 * an effect is held back until the function has reached all recorded effects.
 *
 * How long the function may take is not limited. That it is a different one shows in the order of things: at a point
 * where the recorded function requested one step, it requests another that was not requested there.
 */
export class Revisits {
  readonly #id: string
  readonly #records: StepRecords
  readonly #requested = new Set<string>()
  readonly #heard = new Set<string>()
  /** Recorded when the function was called and not reached yet; known from the first effect on. */
  #missing: Set<string> | undefined
  #held: Held[] = []
  /** Steps without a record, by what they were requested after. */
  readonly #strangers = new Map<string, Asked[]>()
  /** A recorded step came back before what it had followed. */
  #isMoved = false
  /** The function has had several things open at once. */
  #isParallel = false
  #mismatch: { readonly error: unknown } | undefined

  /** @param id where the activation's records begin; @param records all of its scope, as they are now. */
  constructor(id: string, records: StepRecords) {
    this.#id = id
    this.#records = records
  }

  /** How many effects wait. */
  get held(): number {
    return this.#held.length
  }

  /** Notes that the function requests this step. False if it did before. */
  note(path: string): boolean {
    if (this.#requested.has(path)) return false
    this.#requested.add(path)
    if (this.#missing?.delete(path) && this.#missing.size === 0) this.#release(({ doubted }) => doubted !== 'effect')
    return true
  }

  /** Notes where in the function a step is requested. */
  arrive(asked: Asked): void {
    const { path, after, isBeside } = asked
    if (isBeside) this.#isParallel = true
    const record = this.#recordOf(path)
    if (record === undefined) {
      if (after !== undefined) this.#strangers.set(after, [...(this.#strangers.get(after) ?? []), asked])
      return
    }
    const then = placeOf(record).after
    if (then !== undefined && !this.#hasHeard(then)) this.#isMoved = true
  }

  /** The function is told of the end of this step. */
  hear(hash: string): void {
    this.#heard.add(hash)
  }

  /** What a record keeps of where its step was asked for. */
  place({ after, isBeside, past }: Asked, isBesideLater: boolean): string {
    // While effects are held back nothing is where it would be otherwise.
    const where = this.#held.length > 0 || after === undefined ? `${SOMETIME}${past}` : after
    return isBeside || isBesideLater ? `${where}${BESIDE}` : where
  }

  /** Whether a step is held back that failed before. */
  get isInDoubt(): boolean {
    return this.#held.some(({ doubted }) => doubted !== undefined)
  }

  /** Only effects that failed before are held back: whether the function still waits for them remains to be seen. */
  get isOnlyInDoubt(): boolean {
    return this.#missing?.size === 0
  }

  /** Whether the function has asked for this step. */
  has(path: string): boolean {
    return this.#requested.has(path)
  }

  /**
   * The function was told that a step is not what is recorded. It may have caught that: it is a different function all
   * the same, what was begun there is not resolved, and it must not end as if nothing were open.
   */
  mismatch(error: unknown): void {
    this.#mismatch ??= { error }
  }

  restart(): void {
    // Emptying makes new tables, and most functions request nothing.
    if (this.#requested.size > 0) {
      this.#requested.clear()
      this.#heard.clear()
      this.#strangers.clear()
    }
    this.#mismatch = undefined
    this.#missing = undefined
    this.#held = []
    this.#isMoved = false
    this.#isParallel = false
  }

  /** Refuses to end while a step was not asked for that is finished, or begun. */
  check(): void {
    if (this.#mismatch) throw this.#mismatch.error
    for (const [path, record] of this.#unseen()) {
      if (isBegun(record) || awaitsChild(record)) throw leftBegun(path)
      if (isFinished(record)) throw notRevisited(path)
    }
  }

  /**
   * What a function that failed has to answer for: its error, or that it left an effect behind whose outcome is open.
   */
  explain(error: unknown): unknown {
    if (this.#mismatch) return this.#mismatch.error
    const isLeft = (record: StepRecord) => isBegun(record) || awaitsChild(record)
    const left = this.#unseen().find(([, record]) => isLeft(record))
    return left === undefined ? error : leftBegun(left[0], error)
  }

  /** Undefined if an effect may start now; otherwise resolves when it may. */
  hold(path: string): Promise<void> | undefined {
    // It was begun under this very name: its outcome is found out, whatever else the function does.
    if (isBegun(this.#recordOf(path)) || awaitsChild(this.#recordOf(path))) return undefined
    if (this.#mismatch) throw this.#mismatch.error
    this.#missing ??= this.#notSeen()
    if (this.#missing.size === 0) return undefined
    return new Promise((go, refuse) => this.#held.push({ path, go, refuse }))
  }

  /**
   * Like `hold`, for a step that failed: false if the function does not reach the rest without that failure. An effect
   * also waits until the function has nothing else to do: one that nobody waits for anymore must not happen.
   */
  holdDoubted(path: string, effect: 'read' | 'effect'): Promise<boolean> | true {
    this.#missing ??= this.#notSeen()
    if (this.#missing.size === 0 && effect === 'read') return true
    return new Promise((resolve) => {
      this.#held.push({ path, go: () => resolve(true), refuse: () => resolve(false), doubted: effect })
    })
  }

  /**
   * Call this when the function has reacted to everything it received, and only what is held back is in progress. If it
   * has reached everything that is recorded, steps that failed before are retried. If it continued from a failure of
   * one of those, it is told so again. False if that can't be determined yet: the function may be busy with code of its
   * own.
   * @param turn how often the run was picked up; @param hadTime it was given time, and did not get there.
   */
  decide(turn: number, hadTime: boolean): boolean {
    if (this.isOnlyInDoubt) this.#release(() => true)
    else if (hadTime || this.#hasGoneOn(turn)) this.tell(turn)
    else return false
    return true
  }

  /**
   * Whether something that is recorded and not reached shows that the function waits for a failure: it was requested in
   * reaction to one that is held back, or in reaction to steps that the function has received by now and did not react
   * to. If the function did other things in between, the order says nothing. If the code had passed the failed step
   * right before, it most likely continued from that; but code that only began after it looks the same, so every third
   * time the run is picked up it is given the time to show.
   */
  #hasGoneOn(turn: number): boolean {
    const failed = new Set(this.#held.flatMap(({ path, doubted }) => (doubted === undefined ? [] : [shortHash(path)])))
    return [...(this.#missing ?? [])].some((missing) => {
      const { after, past } = placeOf(this.#recordOf(missing))
      if (after !== undefined) return causesOf(after).some((cause) => failed.has(cause)) || this.#hasHeard(after)
      return (past === undefined || failed.has(past)) && turn % 3 !== 1
    })
  }

  /**
   * Hands failures out again: of each effect, because the function may want none of them since; of reads one by one, a
   * different one first each time the run is resumed, because it is not known which it was.
   */
  tell(turn: number): void {
    const effects = this.#held.filter(({ doubted }) => doubted === 'effect')
    const reads = this.#held.filter(({ doubted }) => doubted === 'read')
    const failed = effects.length > 0 || reads.length === 0 ? effects : [reads[turn % reads.length] as Held]
    this.#held = this.#held.filter((held) => !failed.includes(held))
    for (const { refuse } of failed) refuse(undefined)
  }

  /**
   * Call this when the function has reacted to everything it received: whether the effects that are held back may
   * start, or the order of things shows that it is a different function. Returns whether that is known.
   */
  judge(): boolean {
    const { heldFor } = this
    if (heldFor === undefined) return false
    const effects = this.#held.filter(({ doubted }) => doubted === undefined)
    const isAnother = this.#isAnother()
    // Otherwise it repeats nothing that is done. If it does not reach the rest, it ends as a different one.
    if (!isAnother && [...(this.#missing ?? [])].some((path) => isEffect(this.#recordOf(path)))) return false
    this.#held = this.#held.filter((held) => !effects.includes(held))
    const error = isAnother ? notRevisited(heldFor.missing, heldFor.held) : undefined
    for (const { go, refuse } of effects) {
      if (error === undefined) go()
      else refuse(error)
    }
    return true
  }

  /** The effect that is held back, and what it waits for. */
  get heldFor(): { readonly held: string; readonly missing: string } | undefined {
    const first = this.#held.find(({ doubted }) => doubted === undefined)
    const all = [...(this.#missing ?? [])]
    const missing = all.find((path) => isEffect(this.#recordOf(path))) ?? all[0]
    return first === undefined || missing === undefined ? undefined : { held: first.path, missing }
  }

  /**
   * Whether the function requests a step at a point where the recorded one requested another, and did not request this
   * one. An effect that was requested there would be recorded, because its intent is written with the next record of
   * anything; for a read, that holds only if the recorded step had nothing alongside it.
   */
  #isAnother(): boolean {
    const isReplaced = [...(this.#missing ?? [])].some((path) => {
      const record = this.#recordOf(path)
      // What is asked for beside a wait says nothing of the wait.
      if (record?.past !== undefined) return false
      const { after, isBeside } = placeOf(record)
      const strangers = after === undefined ? [] : (this.#strangers.get(after) ?? [])
      return strangers.some((stranger) => (stranger.isEffect ? isEffect(record) : !isBeside))
    })
    return isReplaced || (this.#isMoved && this.#isSequential())
  }

  /** Whether the function has heard of all of these. */
  #hasHeard(after: string): boolean {
    return causesOf(after).every((cause) => cause === CALLED || this.#heard.has(cause))
  }

  /** Whether the function never had two things open at once, neither when it was recorded nor now. */
  #isSequential(): boolean {
    if (this.#isParallel) return false
    let isSequential = true
    this.#eachOwn((record) => {
      if (mustReturn(record) && placeOf(record).isBeside) isSequential = false
    })
    return isSequential
  }

  #recordOf(path: string): StepRecord | undefined {
    return this.#records.get(path)
  }

  #release(which: (held: Held) => boolean): void {
    const released = this.#held.filter(which)
    this.#held = this.#held.filter((held) => !which(held))
    for (const { go } of released) go()
  }

  #notSeen(): Set<string> {
    return new Set(this.#unseen().flatMap(([path, record]) => (mustReturn(record) ? [path] : [])))
  }

  /** Records that the function has not requested, in the order in which they came. */
  #unseen(): readonly (readonly [string, StepRecord])[] {
    const unseen: [string, StepRecord][] = []
    this.#eachOwn((record, path) => {
      if (!this.#requested.has(path)) unseen.push([path, record])
    })
    if (unseen.length < 2) return unseen
    const order = new Map(Object.keys(this.#records.all).map((path, i) => [path, i]))
    return unseen.sort(([one], [other]) => (order.get(one) ?? 0) - (order.get(other) ?? 0))
  }

  #eachOwn(call: (record: StepRecord, path: string) => void): void {
    const begin = this.#id === '' ? '' : `${this.#id}/`
    eachOwn(this.#records.all as never, (record, path) => {
      if (path !== this.#id && path.startsWith(begin)) call(record as unknown as StepRecord, path)
    })
  }
}

/** Where a recorded step was requested. For one of 0.1, nothing is known. */
function placeOf(record: StepRecord | undefined): Place {
  const place = record?.after
  if (place === undefined || record?.past !== undefined) return { after: place, past: record?.past, isBeside: true }
  const isBeside = place.endsWith(BESIDE)
  const where = isBeside ? place.slice(0, -BESIDE.length) : place
  if (!where.startsWith(SOMETIME)) return { after: where, past: undefined, isBeside }
  return { after: undefined, past: where.slice(SOMETIME.length) || undefined, isBeside }
}

interface Place {
  readonly after: string | undefined
  readonly past: string | undefined
  readonly isBeside: boolean
}

function isFinished({ status }: StepRecord): boolean {
  return status === 'done' || status === 'failed'
}

/** Whether repeating it would do harm, or it belongs to another. Records of 0.1 do not say. */
export function isEffect(record: StepRecord | undefined): boolean {
  if (record === undefined) return false
  const isKnownRead = record.past === undefined && record.after !== undefined && (record.effect ?? 'read') === 'read'
  return isBegun(record) || awaitsChild(record) || (record.status === 'done' && !isKnownRead)
}

// An effect that was begun may have happened, too, unless it was begun on another branch.
function mustReturn(record: StepRecord): boolean {
  return isFinished(record) || isBegun(record) || awaitsChild(record)
}

function notRevisited(path: string, instead?: string) {
  const held = instead === undefined ? '' : ` "${instead}", an effect, was not started.`
  return nondeterministic(`Step "${path}" is recorded, but the program did not come back to it.${held}`, path)
}
