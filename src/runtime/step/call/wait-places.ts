import { inspect } from 'node:util'
import { InvalidProgramError } from '../../../core/errors.js'
import { checkOptionNames, type OptionNames } from '../../../core/wording/option-names.js'
import { set } from '../../../log/entry/ops.js'
import { otherWait } from '../../errors.js'
import { askedAt, type Asking } from '../../pause/asking.js'
import { type UnkeyedWait, WaitOrder } from '../../pause/wait-order.js'
import type { Placed } from '../../pause/waits.js'
import { gapOf } from '../../run/request/gap.js'
import { joinPath } from '../../run/state/read-run-state.js'
import type { PauseRecord } from '../../run/state/run-state.js'
import type { Run } from '../../run/run.js'
import type { Activity } from './activity.js'
import type { PauseOptions } from '../context.js'
import { encodeKey, type StepRecords } from '../record/step-records.js'
import { shortHash, type Trail } from './trail.js'

/** The function that waits. */
interface WaitingCode {
  /** The start of the names of its records. */
  readonly id: string
  /** Nobody before us can have begun any of it. */
  readonly isNew: boolean
  readonly trail: Trail
  claimPath(name: string, key: string | number | undefined): string
  /** Asks a person, and leaves the function hanging until there is an answer. */
  ask(...question: Parameters<Asking['ask']>): Promise<unknown>
}

/**
 * Where the waits of a function are, so that each gets its own answer, signal or time back, and since when what comes after
 * them may have been begun.
 */
export class WaitPlaces {
  readonly #run: Run
  readonly #records: StepRecords
  readonly #activity: Activity
  readonly #code: WaitingCode
  #order = new WaitOrder()
  /** The questions that were asked under a key. */
  readonly #pauseKeys = new Map<string, string>()

  constructor(run: Run, records: StepRecords, activity: Activity, code: WaitingCode) {
    this.#run = run
    this.#records = records
    this.#activity = activity
    this.#code = code
  }

  get #path(): string {
    return this.#records.name(this.#code.id)
  }

  /** What the code that asks passed last. */
  get last(): string {
    return this.#order.last
  }

  /** The function requests something. */
  asked(others: number): void {
    this.#order.asked(others)
  }

  /** It reached a place that is not a wait. */
  came(hash: string): void {
    this.#order.came(hash)
  }

  /** @param gatedSince since when it may have been begun, by a process that came before its gates existed. */
  restart(gatedSince: number | undefined): void {
    this.#order = new WaitOrder(gatedSince)
    if (this.#pauseKeys.size > 0) this.#pauseKeys.clear()
  }

  /**
   * Since when an effect that is requested now may have been begun by someone before us. Whatever was begun needs no
   * result that is produced here, because all records before an effect are acknowledged when it begins.
   * @param isLive the function requests it in reaction to such a result.
   */
  openSince(isLive: boolean): number | undefined {
    const { openSince, state } = this.#run
    const gap = gapOf(state)
    if (gap !== undefined) return Math.min(gap, openSince ?? gap)
    if (openSince !== undefined && state.ahead) return openSince
    return this.#code.isNew || isLive ? undefined : least(openSince, this.#order.since)
  }

  /**
   * Since when something after a wait may have been begun without a record: the wait did not exist yet when a process
   * passed this point. That is known when it is first requested, and its record keeps it.
   */
  sinceBehind(
    record: { readonly since?: number } | undefined,
    isLive = this.#code.trail.cause.isLive,
  ): number | undefined {
    return record === undefined ? this.openSince(isLive) : record.since
  }

  /** The earliest time that the answered gates of this activation give. */
  leastSince(...gates: readonly PauseRecord['kind'][]): number | undefined {
    return gates.map((kind) => this.pauseAt(`${this.#path} ${kind}`)?.since).reduce(least, undefined)
  }

  /** What was asked at a place, as it is recorded. */
  pauseAt(place: string): PauseRecord | undefined {
    return askedAt(this.#run.state, place)
  }

  /** Asks on behalf of the function. */
  async pause(question: unknown, options: PauseOptions = {}): Promise<unknown> {
    checkOptionNames('ctx.pause', options, PAUSE_OPTIONS)
    const { key } = options
    if (key !== undefined) {
      const place = this.#pausePlace(key)
      const asked = this.#run.hashInput(question ?? null)
      const before = this.#pauseKeys.get(place) ?? asked
      this.#pauseKeys.set(place, before)
      if (before !== asked) {
        const problem = `The key ${JSON.stringify(key)} is used for two questions, of which each would take the other back.`
        throw new InvalidProgramError(problem, 'key', 'Give every question a key of its own.', { key })
      }
      const since = this.sinceBehind(this.pauseAt(place))
      this.#order.came(shortHash(place), since)
      return this.#code.ask('question', place, question, { ...options, since })
    }
    const wait = this.#unkeyed('pause')
    const place = joinPath(this.#path, `pause ${wait.place}`)
    const found = this.pauseAt(place)
    const since = this.sinceBehind(found)
    this.#order.came(shortHash(place), since)
    const moved = found && wait.past !== undefined ? this.#askedElsewhere(found, question) : undefined
    if (found) await this.#handOver('pause', wait, { ...found, ...(moved ? { beside: true } : {}) })
    // Words may change, and are asked then. What another branch asked and got an answer to would be asked again.
    if (moved && wait.hasBranches) throw otherWait(place, showQuestion(found), showQuestion(moved))
    const { past } = wait
    const answer = await this.#code.ask('question', place, question, {
      ...options,
      beside: wait.hasBranches,
      since,
      ...(past === undefined ? {} : { past }),
    })
    wait.end()
    return answer
  }

  /** Where this question was asked, if not here, and one of the two was answered. */
  #askedElsewhere(here: PauseRecord, question: unknown): PauseRecord | undefined {
    const hash = this.#run.hashInput(question ?? null)
    const isSame = (one: PauseRecord) => this.#run.hashInput(one.question) === hash
    if (isSame(here)) return undefined
    const unkeyed = joinPath(this.#path, 'pause ')
    const others = Object.values(this.#run.state.pauses ?? {}).filter(({ path }) => path.startsWith(unkeyed))
    return others.find((one) => (one.answer ?? here.answer) !== undefined && isSame(one))
  }

  #pausePlace(key: string | number): string {
    const { text, cut } = encodeKey(key)
    const old = cut === undefined ? undefined : joinPath(this.#path, `pause[${cut}]`)
    const { pauses = {} } = this.#run.state
    if (old !== undefined && Object.values(pauses).some(({ path }) => path === old)) return old
    return joinPath(this.#path, `pause[${text}]`)
  }

  /** Where a wait is: by its key, or by its turn among those of its name. */
  place(name: string, key: string | number | undefined): Placed {
    const { after } = this.#code.trail.cause
    const past = this.#order.last
    const wait = key === undefined ? this.#unkeyed(name) : undefined
    const path = this.#code.claimPath(name, key ?? wait?.place)
    const since = this.sinceBehind(this.#records.get(path))
    this.#order.came(shortHash(path), since)
    return {
      path,
      marks: (asked) => ({
        ...(asked === undefined || wait?.past === undefined ? {} : { asked }),
        ...(since === undefined ? {} : { since }),
        ...(wait !== undefined && wait.past === undefined ? {} : { past }),
        ...(after === undefined ? {} : { after }),
        ...(wait?.hasBranches ? { beside: true as const } : {}),
      }),
      found: async (record, asked) => {
        if (wait === undefined) return
        const isOther = wait.past !== undefined && record.asked !== undefined && record.asked !== asked
        await this.#handOver(name, wait, { ...record, ...(isOther ? { beside: true } : {}) })
        // A single sequence may ask for a different time by now, and continues with the first. With branches, it
        // reveals a different order.
        if (isOther && wait.hasBranches) throw otherWait(path, record.asked, asked)
      },
      end: () => wait?.end(),
    }
  }

  #unkeyed(name: string): UnkeyedWait {
    const { log, replay, state } = this.#run
    const others = this.#activity.open - 1
    // Only what is recorded can be mistaken for another's, and what 0.1 began continues as it did then.
    if (!log.durable || replay || state.run?.incarnation === undefined) return this.#order.arrived(name, others)
    const wait = this.#isAmbiguous(name) ? undefined : this.#order.next(name, others)
    if (wait) return wait
    throw this.#refuse(name)
  }

  /** From here on, nobody gets what waits of this name have recorded: it is not known whose it is. */
  #refuse(name: string): InvalidProgramError {
    const { log } = this.#run
    log.add({ kind: 'step', ops: [set(this.#records.at(this.#ambiguity(name)), { status: 'waiting' })] })
    return needsKey(name)
  }

  /** A wait without a key has a record: only the code that made it may have that. */
  async #handOver(
    name: string,
    { past }: UnkeyedWait,
    record: { readonly past?: string; readonly beside?: true },
  ): Promise<void> {
    if (past !== undefined && record.past !== undefined && past !== record.past) throw this.#refuse(name)
    if (record.beside) await this.#settleIn(name)
  }

  /**
   * A wait that was open alongside something else gets its record back. Before that is handed out, the function has
   * time to reach where it was: if another branch then requests the same, neither gets what may be the other's.
   */
  async #settleIn(name: string): Promise<void> {
    let asked: number
    do {
      asked = this.#activity.asked
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    } while (asked !== this.#activity.asked)
    if (this.#isAmbiguous(name)) throw needsKey(name)
  }

  #isAmbiguous(name: string): boolean {
    return this.#records.get(this.#ambiguity(name)) !== undefined
  }

  // No key looks like this, so it is nobody's record.
  #ambiguity(name: string): string {
    return joinPath(this.#code.id, `${name}[?]`)
  }
}

function showQuestion(pause: PauseRecord | undefined): string {
  const text = inspect(pause?.question, { breakLength: Number.POSITIVE_INFINITY })
  return text.length > 100 ? `${text.slice(0, 100)}…` : text
}

const PAUSE_OPTIONS: OptionNames<PauseOptions> = {
  schema: true,
  jsonSchema: true,
  expiresInMs: true,
  onExpire: true,
  key: true,
}

function needsKey(name: string): InvalidProgramError {
  const what = name.startsWith('receive ') ? `Two waits for "${name.slice(8)}"` : `Two calls of ctx.${name}`
  const call = name.startsWith('receive ') ? `ctx.receive(${JSON.stringify(name.slice(8))}, { key })` : `{ key }`
  return new InvalidProgramError(
    `${what} run side by side without a key, so that one could get what the other waits for.`,
    'key',
    `Give each of them a key of its own: ${call}.`,
    { wait: name },
  )
}

function least(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b)
}
