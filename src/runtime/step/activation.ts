import { checkOptionNames, type OptionNames } from '../../core/option-names.js'
import { showValue } from '../../codec/clone.js'
import type { Value } from '../../codec/value.js'
import { InvalidOptionError, InvalidProgramError, isHoldfastError } from '../../core/errors.js'
import { formatCheckpointId } from '../../log/entry/checkpoint-id.js'
import type { SqlSession } from '../../log/contract.js'
import { set } from '../../log/entry/ops.js'
import type { StoreWrite } from '../../log/items/store-write.js'
import { awaitChild, type ChildOptions, failedChild } from '../child/await-child.js'
import { type ChildProgram, planOfChild } from '../child/child-program.js'
import { type AskOptions, Asking } from '../pause/asking.js'
import type { Context, StepContext, StepOptions, StepPolicy, TransactionOptions } from './context.js'
import { isNondeterministic, isStoreFailure } from '../errors.js'
import type { RecordedEvent } from '../events/events.js'
import { Activity, never } from './activity.js'
import { accuse, Failures, stemsOf } from './failed-steps.js'
import { INTERNALS, type Internals, REPEAT } from './internals.js'
import { transactOwn } from './own-transaction.js'
import { findBegun, permit } from './past-effects.js'
import { perform, type Work } from './perform.js'
import { Revisits } from './revisits.js'
import type { PauseRecord, Prefix, Waiting } from '../run/run-state.js'
import type { Run } from '../run/run.js'
import { DONE } from '../run/notes.js'
import { encodeKey } from './step-key.js'
import { checkPolicy, STEP_OPTIONS } from '../program/step-policy.js'
import { doneRecord, joinPath, StepRecords } from './step-records.js'
import { addWrite, StepStore } from './step-store.js'
import { StepWrites } from './step-writes.js'
import { shortHash, Trail } from './trail.js'
import { WaitPlaces } from './wait-places.js'
import { fromTheStart } from '../pause/wait-order.js'
import { receive, sleep, type WaitingFunction } from '../pause/waits.js'

export type Activated =
  | {
      readonly status: 'done'
      readonly value: unknown
      readonly writes: readonly StoreWrite[]
      readonly notes: readonly RecordedEvent[]
    }
  | { readonly status: 'failed'; readonly error: unknown }
  | { readonly status: 'suspended'; readonly waiting: readonly Waiting[] }

/**
 * One call of a program's function: a flow, or a node of a graph. Everything the function does through its context is
 * found again under the activation's path when it is called again.
 *
 * A function that waits for a person, a signal or a long sleep is left hanging in a promise that never settles: when
 * nothing else in it is in progress it counts as suspended, and no user code can catch that by mistake.
 */
export class Activation {
  readonly asking: Asking
  readonly #run: Run
  /** The start of the names of its records. */
  readonly #id: string
  /** What steps have unless they say otherwise. */
  readonly #defaults: StepPolicy
  readonly #records: StepRecords
  readonly #revisits: Revisits
  readonly #waits: WaitingFunction
  readonly #activity: Activity
  readonly #places: WaitPlaces
  readonly #writes: StoreWrite[] = []
  readonly #stored = new StepWrites(this.#writes)
  #notes: RecordedEvent[] = []
  #waiting: Waiting[] = []
  #closed = false
  #over = false
  #calls = 0
  /** The call whose function has ended. */
  #ended: number | undefined
  #suspend: (() => void) | undefined
  #fail: ((error: unknown) => void) | undefined
  /** Aborted when the function is left hanging; made when something is to be told. */
  #left: AbortController | undefined
  /** Since when it may have been begun without a record, by a process that came before its gates existed. */
  #gatedSince: number | undefined
  /** An attempt of the function may time out while its steps are in progress. */
  #isTimed = false
  /** The function threw while something else in it was in progress. */
  #threwInCompany = false
  #hasSteps = false
  /** A name that was found to be one: most steps of a loop have the same. */
  #lastName: string | undefined
  readonly #failures = new Failures()
  readonly #trail = new Trail()
  /**
   * On a fork: everything the function has received is the same as there. A node may see a different state from the
   * start.
   */
  #isSamePast: boolean

  /** @param isNew nobody before us can have begun any of it. */
  constructor(
    run: Run,
    id: string,
    prefix: Prefix,
    scopePath = '',
    { defaults = {}, isNew = false }: { readonly defaults?: StepPolicy; readonly isNew?: boolean } = {},
  ) {
    this.#run = run
    this.#id = id
    this.#isSamePast = id === ''
    this.#defaults = defaults
    this.asking = new Asking(run)
    this.#records = new StepRecords(run, prefix, scopePath)
    this.#revisits = new Revisits(id, this.#records)
    this.#activity = new Activity(run, this.#revisits, {
      isClosed: () => this.#closed,
      suspend: () => this.#suspend?.(),
      fail: (error) => this.#fail?.(error),
    })
    this.#places = new WaitPlaces(run, this.#records, this.#activity, {
      id,
      isNew,
      trail: this.#trail,
      claimPath: (name, key) => this.#claimPath(name, key),
      ask: (...question) => this.#askInside(...question),
    })
    this.#waits = {
      run,
      records: this.#records,
      place: (name, key) => this.#places.place(name, key),
      wait: (waiting) => {
        this.#waiting.push(waiting)
        return this.#activity.hang()
      },
      gap: (path) => this.#gap(path),
    }
  }

  /** Whether the function has requested a step, here or in an earlier attempt. */
  get hasSteps(): boolean {
    return this.#hasSteps
  }

  /** The same as the id, and unique among all scopes of the thread. */
  get path(): string {
    return this.#records.name(this.#id)
  }

  /**
   * Calls the function and waits until it returns, throws, or has nothing left to do but wait. When it throws, what
   * else is in progress ends first: a step that fails does not cancel the others. When it returns, it did not want what
   * is still in progress, and none of that is recorded anymore.
   */
  run(body: () => Promise<unknown>): Promise<Activated> {
    return new Promise((resolve) => {
      const { abort } = this.#run
      let letGo = () => {}
      const end = (result: Activated) => {
        this.#closed = true
        letGo()
        const over = () => {
          this.#over = true
          resolve(result)
        }
        const settling = result.status === 'failed' ? this.settling() : undefined
        if (settling) void settling.then(over)
        else over()
      }
      this.#fail = (error) => {
        end({ status: 'failed', error })
        this.#left?.abort(LEFT)
      }
      this.#suspend = () => {
        end({ status: 'suspended', waiting: this.#waiting })
        this.#left?.abort(LEFT)
      }
      // Code between steps may wait for something that knows nothing about the run: it is left behind.
      letGo = abort.onAbort(() => end({ status: 'failed', error: abort.reason }))
      if (abort.aborted) return
      const fail = (error: unknown) => {
        this.#threwInCompany = this.#activity.busy > 0
        end({ status: 'failed', error: accuse(error, () => this.#failures.suspects(this.#activity.asked)) })
      }
      const returned = (value: unknown): void => {
        const writing = this.#stored.settled()
        if (writing) void writing.then(() => returned(value), fail)
        else end({ status: 'done', value, writes: this.#writes, notes: this.#notes })
      }
      fromTheStart(body).then(returned, fail)
    })
  }

  /**
   * Resolves when nothing is in progress anymore; undefined if nothing is now. A function may end while its steps run, as when one of several fails:
   * a run that ended before them would leave their records to nobody, and a retry would start them twice. For the same
   * reason, nothing that its branches request from here on happens.
   */
  settling(): Promise<void> | undefined {
    this.#ended = this.#calls
    return this.#activity.busy === 0 ? undefined : this.#activity.settled()
  }

  /** Starts over, as a retry does: names may be used again. */
  restart(): void {
    this.#revisits.restart()
    this.#failures.restart()
    this.#places.restart(this.#gatedSince)
    this.#notes = []
    this.#waiting = []
    this.#activity.restart()
    // Code of the attempt before may still be running: nothing it requests happens anymore.
    this.#calls++
    this.asking.restart()
  }

  /**
   * Refuses to end while records of this activation were not requested: the program took a different path than before.
   */
  checkRevisited(): void {
    this.#revisits.check()
  }

  /**
   * Why a function that threw has failed. If it left an effect behind that was begun, that is said first: a reader of
   * the error must not take the effect for one that never began.
   */
  explainFailure(error: unknown): unknown {
    if (this.#run.abort.aborted || isHoldfastError(error, 'incompatible') || isStoreFailure(error)) return error
    // A step that had failed throws again immediately: then what runs alongside it has not yet reached what it had
    // begun.
    const { retry, doubt } = stemsOf([error])
    if (this.#threwInCompany || retry.length + doubt.length > 0) return error
    return this.#revisits.explain(error)
  }

  context<Input>(input: Input, step?: StepContext): Context<Input> & { readonly [INTERNALS]: Internals } {
    const run = this.#run
    const { key, context, attempt, log } = run
    this.#trail.begin()
    const { seq, hash } = log.fold
    const ownKey = this.#run.keyMaker(this.path, 0)
    const call: Call = { number: this.#calls, outer: this.#isTimed ? step?.abortSignal : undefined }
    const track = <Result>(what: string, operation: (heard: Heard) => Promise<Result>) =>
      this.#track(call, what, operation)
    // A node's writes belong to the attempt that makes them, a flow's to the run.
    const store = step?.store ?? new StepStore(() => this.#run.store, this.#stored)
    return {
      input,
      context,
      thread: key.thread,
      branch: key.branch,
      tenant: key.tenant,
      runId: log.state.run?.id ?? '',
      checkpoint: seq < 0 ? '' : formatCheckpointId(key.branch, seq, hash),
      attempt,
      get abortSignal() {
        return step?.abortSignal ?? run.abort.signal
      },
      get idempotencyKey() {
        return step === undefined ? ownKey() : step.idempotencyKey
      },
      store,
      step: <Result>(name: string, ...rest: StepArguments<Result>) =>
        track('step', (heard) => this.#step(call, heard, name, ...rest)) as Promise<Result>,
      transaction: <Result, Prepared>(name: string, ...rest: TransactionArguments<Result, Prepared>) =>
        track('transaction', (heard) => this.#transaction(call, heard, name, ...rest)) as Promise<Result>,
      sleep: (duration, options) => track('sleep', () => sleep(this.#waits, duration, options)),
      receive: (name, options) => track('receive', () => receive(this.#waits, name, options)) as Promise<never>,
      run: (program: ChildProgram, id: string, input: unknown, options?: ChildOptions) =>
        track('run', (heard) => this.#child(heard, program, id, input, options)) as Promise<never>,
      pause: (question, options) => track('pause', () => this.#places.pause(question, options)) as Promise<never>,
      heartbeat: () => {
        this.#activity.beats++
        return this.#run.heartbeat()
      },
      emit: (value) => this.#run.emit({ type: 'custom', step: this.path, value }),
      [INTERNALS]: {
        path: this.path,
        clock: this.#run.clock,
        random: this.#run.random,
        watch: this.#run.watch,
        claim: `${key.branch}:${log.fold.epoch}`,
        isRepeat: step !== undefined && REPEAT in step && step[REPEAT] === true,
        secure: () => (this.#run.lease?.isSure === false ? this.#run.lease.secure() : undefined),
        emit: (event) => this.#run.emit(event),
        note: (event) => this.#notes.push(event),
        put: (space, key, value) => {
          const kept = this.#run.redactor ? this.#run.keep(value) : value
          addWrite(store, ['put', space, key, kept, null])
        },
      },
    }
  }

  /** Waits for an answer on behalf of the activation itself. */
  async ask(kind: PauseRecord['kind'], place: string, question: unknown, options: AskOptions): Promise<unknown> {
    const isGate = kind === 'before' || kind === 'approval'
    const since = isGate ? this.#places.sinceBehind(this.#places.pauseAt(place), false) : undefined
    const answer = await this.asking.ask(kind, place, question, { ...options, since })
    return answer === undefined ? this.#activity.hang(false) : answer.value
  }

  async #askInside(...question: Parameters<Asking['ask']>): Promise<unknown> {
    const answer = await this.asking.ask(...question)
    return answer === undefined ? this.#activity.hang() : answer.value
  }

  /** The activation as a whole as a piece of work. */
  wholeWork(options: StepOptions, run: (step: StepContext) => unknown): Work {
    this.#isTimed = options.timeoutMs !== undefined
    this.#gatedSince = this.#places.leastSince('before', 'approval')
    this.#places.restart(this.#gatedSince)
    this.#left ??= new AbortController()
    return {
      ...this.#work(this.#id, options, run),
      left: this.#left.signal,
      ask: (kind, question, jsonSchema) => this.ask(kind, `${this.path} ${kind}`, question, { jsonSchema }),
      unask: () => this.asking.drop(`${this.path} unknown-effect`),
    }
  }

  #work(id: string, options: StepOptions, run: (step: StepContext) => unknown, known: KnownWork = {}): Work {
    const path = this.#records.name(id)
    return {
      path,
      at: this.#records.at(id),
      policy: { ...this.#defaults, ...options },
      input: options.input,
      inputHash: known.inputHash ?? this.#run.hashInput(options.input),
      openSince: this.#places.openSince(known.isLive ?? false),
      outer: known.outer,
      after: known.after,
      isSamePast: this.#isSamePast,
      idempotencyKey: options.idempotencyKey,
      run,
      ask: (kind, question, jsonSchema) => this.#askInside(kind, `${path} ${kind}`, question, { jsonSchema }),
      unask: () => this.asking.drop(`${path} unknown-effect`),
    }
  }

  /** Notes where the function requests a step, before anything else happens. */
  #arrive(path: string, isEffect: boolean, heard: Heard) {
    const isBeside = this.#activity.open > 1
    const { after: cause, isLive } = this.#trail.ask()
    const asked = { path, isEffect, isBeside, past: this.#places.last, after: cause, isLive }
    heard.path = path
    heard.hash = shortHash(path)
    this.#places.came(heard.hash)
    this.#revisits.arrive(isEffect && this.#isWaited(path) ? { ...asked, after: undefined } : asked)
    const number = this.#activity.asked
    return { isLive, after: () => this.#revisits.place(asked, this.#activity.asked !== number) }
  }

  /** One that waited for a person has no record, but is no stranger either. */
  #isWaited(path: string): boolean {
    const asks = `${this.#records.name(path)} `
    return Object.values(this.#run.state.pauses ?? {}).some((one) => one.path.startsWith(asks))
  }

  async #step<Result>(call: Call, heard: Heard, name: string, ...rest: StepArguments<Result>): Promise<unknown> {
    const [options, run] = rest.length === 1 ? [{} as StepOptions<Result>, rest[0]] : rest
    checkOptionNames('ctx.step', options, STEP_OPTIONS)
    const path = this.#claimPath(name, options.key)
    const isEffect = (options.effect ?? this.#defaults.effect ?? 'read') !== 'read'
    const { isLive, after } = this.#arrive(path, isEffect, heard)
    checkPolicy(options, `step "${path}"`)
    const inputHash = this.#run.hashInput(options.input)
    // Steps that are requested together are all known before the first of them begins.
    await (this.#run.replay?.turn(path) ?? DONE)
    if (this.#records.isDoubted(path)) await this.#settleDoubt(path, isEffect ? 'effect' : 'read')
    const found = this.#records.find(path, inputHash, options.idempotencyKey)
    if (found) return showValue(found.result)
    if (this.#run.replay) return this.#gap(path)
    heard.isLive = true
    const inside = (step: StepContext) => this.#run.inside(path, () => run(step))
    const work = this.#work(path, options as StepOptions, inside, { inputHash, isLive, outer: call.outer, after })
    if (isEffect) await this.#hold(path)
    try {
      const performing = perform(this.#run, work)
      const performed = performing instanceof Promise ? await performing : performing
      if (this.#isLeft(call)) return never()
      await this.#records.done(work, performed)
      // What the program did to it in the meantime would be in no record.
      return showValue(performed.result)
    } catch (error) {
      if (!this.#isLeft(call)) await this.#records.threw(work, error)
      throw error
    }
  }

  /**
   * A step whose failure is in doubt is retried if nothing that is recorded depends on it; otherwise it stays failed.
   */
  async #settleDoubt(path: string, effect: 'read' | 'effect'): Promise<void> {
    if (this.#run.replay) return
    const held = this.#revisits.holdDoubted(path, effect)
    if (held !== true) this.#activity.checkIdle()
    if (await held) this.#records.retry(path)
  }

  /** Nobody waits for it anymore: the function has ended, or another attempt of it is in progress. */
  #isLeft({ number }: Call): boolean {
    return this.#over || number !== this.#calls
  }

  async #transaction<Result, Prepared>(
    call: Call,
    heard: Heard,
    name: string,
    ...rest: TransactionArguments<Result, Prepared>
  ): Promise<Result> {
    const [options, run] = rest.length === 1 ? [{} as TransactionOptions<Prepared>, rest[0]] : rest
    if (typeof run !== 'function') {
      throw new InvalidOptionError(
        'work',
        'must be a function',
        'Call ctx.transaction(name, options, work), as ctx.step.',
      )
    }
    checkOptionNames('ctx.transaction', options, TRANSACTION_OPTIONS)
    const path = this.#claimPath(name, options.key)
    const { after } = this.#arrive(path, true, heard)
    await this.#run.replay?.turn(path)
    // The transaction of an attempt that timed out may be about to commit.
    if (call.number > 1) await this.#run.log.barrier()
    if (this.#records.isDoubted(path)) await this.#settleDoubt(path, 'effect')
    const found = this.#records.find(path, this.#run.hashInput(options.input))
    if (found) return showValue(found.result) as Result
    if (this.#run.replay) return this.#gap(path)
    heard.isLive = true
    await this.#hold(path)
    const work = this.#work(path, { input: options.input, effect: 'once' }, () => undefined, { after })
    const current = async (sql: SqlSession, prepared: Prepared): Promise<Result> => {
      call.outer?.throwIfAborted()
      const result = await run(sql, prepared)
      // In the form in which it is found again, and refused as the step's own where it has none.
      return (result === undefined ? undefined : this.#run.keep(result)) as Result
    }
    const record = (result: Result) => {
      // Rolls back: the node's next attempt does it all again.
      call.outer?.throwIfAborted()
      return {
        kind: 'step',
        ops: [set(work.at, doneRecord(work, result as Value | undefined))],
        data: { events: [{ type: 'step', step: work.path, status: 'completed' }] },
      }
    }
    try {
      const allowed = await permit(this.#run, work, 'once')
      const instead = allowed ? { ...allowed, writes: [] } : await findBegun(this.#run, work)
      if (instead) {
        const result = instead.result === undefined ? undefined : this.#run.keep(instead.result)
        await this.#records.done(work, { result, writes: instead.writes, attempts: 0, ms: 0 })
        return showValue(result) as Result
      }
      const result = await transactOwn(this.#run, work, current, record, options)
      return showValue(result as Value | undefined) as Result
    } catch (error) {
      if (!this.#isLeft(call)) await this.#records.threw(work, error)
      throw error
    }
  }

  async #child(
    heard: Heard,
    program: ChildProgram,
    id: string,
    input: unknown,
    options: ChildOptions = {},
  ): Promise<unknown> {
    const plan = planOfChild(program, id, options)
    const path = this.#claimPath('child', id)
    const { after } = this.#arrive(path, true, heard)
    await this.#run.replay?.turn(path)
    if (this.#records.isDoubted(path)) await this.#settleDoubt(path, 'effect')
    const work = this.#work(path, { input, effect: 'idempotent' }, () => undefined, { after })
    const again = failedChild(this.#records.get(path), work)
    if (again !== undefined) throw again
    const found = this.#records.find(path, work.inputHash)
    if (found?.status === 'done') return showValue(found.result)
    if (this.#run.replay) return this.#gap(path)
    heard.isLive = true
    return awaitChild({
      run: this.#run,
      work,
      id,
      plan,
      input,
      options,
      hold: () => this.#hold(path),
      wait: (waiting) => this.#waits.wait(waiting),
    })
  }

  #claimPath(name: string, key: string | number | undefined): string {
    if (name !== this.#lastName && (typeof name !== 'string' || !NAME.test(name))) {
      throw new InvalidProgramError(`A step can't be named ${JSON.stringify(name)}.`, 'name', NAME_RULE)
    }
    this.#lastName = name
    const path = joinPath(this.#id, key === undefined ? name : this.#keyed(name, key))
    this.#hasSteps = true
    if (!this.#revisits.note(path)) {
      const remedy = 'Give repeated steps of one name a key: ctx.step(name, { key }, …).'
      throw new InvalidProgramError(`The step name "${path}" is used twice.`, 'name', remedy, { step: path })
    }
    return path
  }

  #keyed(name: string, key: string | number): string {
    const { text, cut } = encodeKey(key)
    const old = cut === undefined ? undefined : `${name}[${cut}]`
    // What 0.1 recorded under a key that it truncated is found under that key, by the first that asks, as then.
    const isOld = old !== undefined && this.#records.get(joinPath(this.#id, old)) !== undefined
    return isOld && !this.#revisits.has(joinPath(this.#id, old)) ? old : `${name}[${text}]`
  }

  /** Counts what is in progress. A function that was left hanging may wake up later: nothing it requests happens. */
  #track<Result>({ number: call }: Call, what: string, operation: (heard: Heard) => Promise<Result>): Promise<Result> {
    if (this.#closed || call !== this.#calls || call === this.#ended) return never()
    const { abort } = this.#run
    if (abort.aborted) return rejected(abort.reason)
    // Another process has the thread by now: what is recorded may belong to another run, and the end of this one is
    // about to be reported.
    if (this.#run.isOvertaken) return never()
    const outer = this.#run.runningStep
    if (outer !== undefined) return rejected(insideItself(outer, what))
    const others = this.#activity.open
    this.#activity.active++
    const asked = ++this.#activity.asked
    this.#places.asked(others)
    if (this.#run.draining) return this.#activity.hang()
    const heard: Heard = { path: undefined, hash: undefined, isLive: false }
    const tracked: Promise<Result> = operation(heard).then(
      (result) => {
        if (call === this.#calls) this.#hear(what, heard)
        return result
      },
      (error: unknown) => {
        tracked.catch(noop)
        if (call === this.#calls) {
          this.#failures.hear(error, this.#activity.asked, others > 0 || asked !== this.#activity.asked)
          if (isNondeterministic(error)) this.#revisits.mismatch(error)
          this.#hear(what, heard)
        }
        throw error
      },
    )
    return tracked
  }

  /** The function is told of the end of something. */
  #hear(what: string, heard: Heard): void {
    this.#activity.active--
    this.#trail.heard(heard.hash, heard.isLive)
    if (heard.hash !== undefined) this.#revisits.hear(heard.hash)
    if (this.#isSamePast) this.#isSamePast = this.#isAsThere(what, heard.path)
    this.#activity.checkIdle()
  }

  /** Whether the function received what it would have received on the branch that this one was forked from. */
  #isAsThere(what: string, path: string | undefined): boolean {
    // Answers and signals are this branch's own.
    if (path === undefined) return what === 'sleep'
    return this.#run.recordedReads?.isAsThere(path, this.#records.get(path)) ?? true
  }

  /** Resolves when the function has reached everything that is recorded. */
  async #hold(path: string): Promise<void> {
    const held = this.#revisits.hold(path)
    if (held === undefined) return
    this.#activity.checkIdle()
    await held
  }

  /** A step of a replay that is not recorded: if the record is not complete, the replay waits here as the run does. */
  #gap(path: string): Promise<never> {
    this.#run.replay?.miss(path)
    return this.#activity.hang()
  }
}

function insideItself(step: string, what: string): InvalidProgramError {
  const remedy = 'Do it before or after the step, in the function itself.'
  return new InvalidProgramError(`Step "${step}" uses ctx.${what} inside of itself.`, 'step', remedy, { step })
}

// The program may look at a failure later, or never if the run is stopped: that must not end the process.
function noop(): void {}

function rejected(reason: unknown): Promise<never> {
  const promise = Promise.reject<never>(reason)
  promise.catch(noop)
  return promise
}

/** Created once: without a reason, each abort creates an error with a stack. */
const LEFT = new Error('The function was left where it waits.')
/** What a function receives when something that it requested has ended. */
interface Heard {
  path: string | undefined
  /** Of the path: what it is called in records. */
  hash: string | undefined
  /** It was produced here, by nobody before us. */
  isLive: boolean
}

/** One call of the function. */
interface Call {
  readonly number: number
  /** Aborted when it is over, where it has a time limit. */
  readonly outer: AbortSignal | undefined
}

/** What is known of a piece of work where it is requested. */
interface KnownWork {
  readonly inputHash?: string
  readonly isLive?: boolean
  readonly outer?: AbortSignal | undefined
  readonly after?: () => string
}

type StepArguments<Result> =
  | [work: (step: StepContext) => Result | Promise<Result>]
  | [options: StepOptions<Result>, work: (step: StepContext) => Result | Promise<Result>]

type TransactionArguments<Result, Prepared> =
  | [work: (sql: SqlSession, prepared: Prepared) => Promise<Result>]
  | [options: TransactionOptions<Prepared>, work: (sql: SqlSession, prepared: Prepared) => Promise<Result>]

const TRANSACTION_OPTIONS: OptionNames<TransactionOptions> = {
  input: true,
  key: true,
  timeoutMs: true,
  retry: true,
  prepare: true,
}

const NAME = /^(receive )?[^/[\]\p{Cc}]{1,200}$/u
const NAME_RULE = 'Use 1 to 200 printable characters without slashes and square brackets.'
