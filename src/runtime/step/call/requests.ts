import { InvalidProgramError, isHoldfastError } from '../../../core/errors.js'
import { isNondeterministic, isStoreFailure } from '../../errors.js'
import { Asking } from '../../pause/asking.js'
import type { WaitingFunction } from '../../pause/waits.js'
import { joinPath, type Prefix } from '../../run/state/read-run-state.js'
import type { Waiting } from '../../run/state/run-state.js'
import type { Run } from '../../run/run.js'
import { Activity, type Ends } from './activity.js'
import type { StepOptions, StepPolicy } from '../context.js'
import { accuse, Failures, stemsOf } from '../record/failed-steps.js'
import { Revisits } from './revisits.js'
import { encodeKey, StepRecords } from '../record/step-records.js'
import { shortHash, Trail } from './trail.js'
import { WaitPlaces } from './wait-places.js'
import type { OwnWork, Work } from '../work.js'

/** One call of a function. */
export interface Call {
  readonly number: number
  /** Aborted when it is over, where it has a time limit. */
  readonly outer: AbortSignal | undefined
}

/** Something that a function requested, and what it receives when that has ended. */
export interface Requested {
  /** Which of `ctx.step`, `ctx.sleep`, … it is. */
  readonly what: string
  /** How much else was open in the function. */
  readonly others: number
  /** How often the function has requested something, this included. */
  readonly number: number
  path: string | undefined
  /** Of the path: what it is called in records. */
  hash: string | undefined
  /** It was produced here, by nobody before us. */
  isLive: boolean
}

/** Where a function's records are, and what its steps have unless they say otherwise. */
export interface Place {
  /** The start of the names of its records. */
  readonly id: string
  readonly prefix: Prefix
  /** Where the scope of the records is in the thread, for people. */
  readonly scopePath: string
  readonly defaults: StepPolicy
  /** Nobody before us can have begun any of it. */
  readonly isNew: boolean
}

/** What is known of a piece of work where it is requested. */
interface KnownWork {
  readonly inputHash?: string
  /** Default: that of the function, and what the options say. */
  readonly policy?: StepPolicy
  /** What the work of a node has of its own. */
  readonly own?: OwnWork & Pick<Work, 'left'>
  readonly isLive?: boolean
  readonly outer?: AbortSignal | undefined
  readonly after?: () => string
}

const NAME = /^(receive )?[^/[\]\p{Cc}]{1,200}$/u
const NAME_RULE = 'Use 1 to 200 printable characters without slashes and square brackets.'

/**
 * What one function requests through its context: under which names its records are found again, in which order it came
 * to them, and what it has received.
 */
export class Requests {
  readonly run: Run
  readonly defaults: StepPolicy
  readonly records: StepRecords
  readonly activity: Activity
  readonly places: WaitPlaces
  readonly asking: Asking
  readonly waits: WaitingFunction
  readonly revisits: Revisits
  /** What the function waits for. */
  waiting: Waiting[] = []
  /** Whether the function has requested a step, here or in an earlier attempt. */
  hasSteps = false
  /** How often the function was called again. */
  calls = 0
  /** The call whose function has ended. */
  endedCall: number | undefined
  /** The function has ended or is left where it waits: nothing that it requests happens anymore. */
  isClosed = false
  /** What it had in progress has ended as well. */
  isOver = false
  readonly #id: string
  readonly #trail = new Trail()
  readonly #failures = new Failures()
  /** A name that was found to be one: most steps of a loop have the same. */
  #lastName: string | undefined
  /**
   * On a fork: everything the function has received is the same as there. A node may see a different state from the
   * start.
   */
  #isSamePast: boolean

  constructor(run: Run, { id, prefix, scopePath, defaults, isNew }: Place, ends: Omit<Ends, 'isClosed'>) {
    this.run = run
    this.defaults = defaults
    this.#id = id
    this.#isSamePast = id === ''
    this.asking = new Asking(run)
    this.records = new StepRecords(run, prefix, scopePath)
    this.revisits = new Revisits(id, this.records)
    this.activity = new Activity(run, this.revisits, { ...ends, isClosed: () => this.isClosed })
    this.places = new WaitPlaces(run, this.records, this.activity, {
      id,
      isNew,
      trail: this.#trail,
      claimPath: (name, key) => this.#claimPath(name, key),
      ask: (...question) => this.ask(...question),
    })
    this.waits = {
      run,
      records: this.records,
      place: (name, key) => this.places.place(name, key),
      wait: (waiting) => {
        this.waiting.push(waiting)
        return this.activity.hang()
      },
      gap: (path) => this.gap(path),
    }
  }

  /** The same as the id, and unique among all scopes of the thread. */
  get path(): string {
    return this.records.name(this.#id)
  }

  /** The function is called now. */
  called(): void {
    this.#trail.begin()
  }

  /** The function starts over, as in a retry: names may be used again. */
  restart(gatedSince: number | undefined): void {
    this.revisits.restart()
    this.#failures.restart()
    this.places.restart(gatedSince)
    this.waiting = []
    this.activity.restart()
    // Code of the attempt before may still be running: nothing it requests happens anymore.
    this.calls++
    this.asking.restart()
  }

  /** Counts something that the function requests. */
  open(what: string): Requested {
    const others = this.activity.open
    this.activity.active++
    const number = ++this.activity.asked
    this.places.asked(others)
    return { what, others, number, path: undefined, hash: undefined, isLive: false }
  }

  /** Notes where the function requests a step, before anything else happens. */
  arrive(requested: Requested, name: string, key: string | number | undefined, isEffect: boolean) {
    const path = this.#claimPath(name, key)
    const isBeside = this.activity.open > 1
    const { after: cause, isLive } = this.#trail.ask()
    const asked = { path, isEffect, isBeside, past: this.places.last, after: cause, isLive }
    requested.path = path
    requested.hash = shortHash(path)
    this.places.came(requested.hash)
    this.revisits.arrive(isEffect && this.#isWaited(path) ? { ...asked, after: undefined } : asked)
    const number = this.activity.asked
    return { path, isLive, after: () => this.revisits.place(asked, this.activity.asked !== number) }
  }

  /** The function is told of the end of something. */
  hear({ what, path, hash, isLive }: Requested): void {
    this.activity.active--
    this.#trail.heard(hash, isLive)
    if (hash !== undefined) this.revisits.hear(hash)
    if (this.#isSamePast) this.#isSamePast = this.#isAsThere(what, path)
    this.activity.checkIdle()
  }

  /** The function is told that something failed. */
  hearFailure(error: unknown, requested: Requested): void {
    const { asked } = this.activity
    this.#failures.hear(error, asked, requested.others > 0 || requested.number !== asked)
    if (isNondeterministic(error)) this.revisits.mismatch(error)
    this.hear(requested)
  }

  /** What the function threw, as something for which it is known what it may stem from. */
  accuse(error: unknown): object {
    return accuse(error, () => this.#failures.suspects(this.activity.asked))
  }

  /**
   * Why a function that threw has failed. If it left an effect behind that was begun, that is said first: a reader of
   * the error must not take the effect for one that never began.
   * @param inCompany it threw while something else in it was in progress.
   */
  explain(error: unknown, inCompany: boolean): unknown {
    if (this.run.abort.aborted || isHoldfastError(error, 'incompatible') || isStoreFailure(error)) return error
    // A step that had failed throws again immediately: then what runs alongside it has not yet reached what it had
    // begun.
    const { retry, doubt } = stemsOf([error])
    if (inCompany || retry.length + doubt.length > 0) return error
    return this.revisits.explain(error)
  }

  /** Nobody waits for it anymore: the function has ended, or another attempt of it is in progress. */
  isLeft({ number }: Call): boolean {
    return this.isOver || number !== this.calls
  }

  /** Asks a person, and leaves the function hanging until there is an answer. */
  async ask(...question: Parameters<Asking['ask']>): Promise<unknown> {
    const answer = await this.asking.ask(...question)
    return answer === undefined ? this.activity.hang() : answer.value
  }

  /** Resolves when the function has reached everything that is recorded. */
  async hold(path: string): Promise<void> {
    const held = this.revisits.hold(path)
    if (held === undefined) return
    this.activity.checkIdle()
    await held
  }

  /**
   * A step whose failure is in doubt is retried if nothing that is recorded depends on it; otherwise it stays failed.
   */
  async settleDoubt(path: string, effect: 'read' | 'effect'): Promise<void> {
    if (this.run.replay) return
    const held = this.revisits.holdDoubted(path, effect)
    if (held !== true) this.activity.checkIdle()
    if (await held) this.records.retry(path)
  }

  /** A step of a replay that is not recorded: if the record is not complete, the replay waits here as the run does. */
  gap(path: string): Promise<never> {
    this.run.replay?.miss(path)
    return this.activity.hang()
  }

  work(id: string, options: StepOptions, run: Work['run'], known: KnownWork = {}): Work {
    const path = this.records.name(id)
    const { policy = { ...this.defaults, ...options }, isLive = false, own } = known
    const { input, idempotencyKey } = options
    // Of a node nobody can change the input, and most never need its hash.
    let hash = known.inputHash ?? (own === undefined ? this.run.hashInput(input) : undefined)
    return {
      path,
      at: this.records.at(id),
      policy,
      input,
      inputHash: () => {
        hash ??= this.run.hashInput(input)
        return hash
      },
      openSince: this.places.openSince(isLive),
      outer: known.outer,
      after: known.after,
      isSamePast: this.#isSamePast,
      idempotencyKey,
      run,
      ask:
        own?.ask ?? ((kind, question, schema) => this.ask(kind, `${path} ${kind}`, question, { jsonSchema: schema })),
      unask: () => this.asking.drop(`${path} unknown-effect`),
      keep: own?.keep,
      sees: own?.sees,
      left: own?.left,
      span: own?.span,
    }
  }

  #claimPath(name: string, key: string | number | undefined): string {
    if (name !== this.#lastName && (typeof name !== 'string' || !NAME.test(name))) {
      throw new InvalidProgramError(`A step can't be named ${JSON.stringify(name)}.`, 'name', NAME_RULE)
    }
    this.#lastName = name
    const path = joinPath(this.#id, key === undefined ? name : this.#keyed(name, key))
    this.hasSteps = true
    if (!this.revisits.note(path)) {
      const remedy = 'Give repeated steps of one name a key: ctx.step(name, { key }, …).'
      throw new InvalidProgramError(`The step name "${path}" is used twice.`, 'name', remedy, { step: path })
    }
    return path
  }

  #keyed(name: string, key: string | number): string {
    const { text, cut } = encodeKey(key)
    const old = cut === undefined ? undefined : `${name}[${cut}]`
    // What 0.1 recorded under a key that it truncated is found under that key, by the first that asks, as then.
    const isOld = old !== undefined && this.records.get(joinPath(this.#id, old)) !== undefined
    return isOld && !this.revisits.has(joinPath(this.#id, old)) ? old : `${name}[${text}]`
  }

  /** One that waited for a person has no record, but is no stranger either. */
  #isWaited(path: string): boolean {
    const asks = `${this.records.name(path)} `
    return Object.values(this.run.state.pauses ?? {}).some((one) => one.path.startsWith(asks))
  }

  /** Whether the function received what it would have received on the branch that this one was forked from. */
  #isAsThere(what: string, path: string | undefined): boolean {
    // Answers and signals are this branch's own.
    if (path === undefined) return what === 'sleep'
    return this.run.recordedReads?.isAsThere(path, this.records.get(path)) ?? true
  }
}
