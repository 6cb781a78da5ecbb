import { DEFAULT_LIMITS } from '../codec/limits.js'
import { encodeValue, type Value } from '../codec/value.js'
import { InvalidOptionError, InvalidProgramError, InvalidValueError } from '../core/errors.js'
import { formatCheckpointId } from '../log/checkpoint-id.js'
import type { SqlSession } from '../log/contract.js'
import { set, splice, valueAt } from '../log/ops.js'
import type { StoreWrite } from '../log/store-write.js'
import { validate } from '../store/standard-schema.js'
import { Asking } from './asking.js'
import type {
  Context,
  PauseOptions,
  ReceiveOptions,
  SleepOptions,
  StepContext,
  StepOptions,
  StepPolicy,
  TransactionOptions,
} from './context.js'
import { nondeterministic, recordError, StepFailedError } from './errors.js'
import type { RecordedEvent } from './events.js'
import { hashValue } from './hash-value.js'
import { INTERNALS, type Internals } from './internals.js'
import { type Performed, perform, permit, type Work } from './perform.js'
import { inScope, type Prefix, scopeAt, type StepRecord, type Waiting } from './run-state.js'
import type { Session } from './session.js'
import { checkPolicy } from './step-policy.js'
import { StepStore } from './step-store.js'

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
 * One call of a program's function: a flow, or a node of a graph. Everything the function does through its context
 * is found again under the activation's path when it is called anew.
 *
 * A function that waits for a person, a signal or a long sleep is left hanging in a promise that never settles: when
 * nothing else of it is under way it counts as suspended, and no code of the user's can catch that by mistake.
 */
export class Activation {
  readonly asking: Asking
  readonly #session: Session
  /** The start of the names of its records, which lie in the scope at the prefix. */
  readonly #id: string
  readonly #prefix: Prefix
  readonly #scopePath: string
  /** What steps have unless they say otherwise. */
  readonly #defaults: StepPolicy
  #seen = new Set<string>()
  #ordinals = new Map<string, number>()
  #writes: StoreWrite[] = []
  #notes: RecordedEvent[] = []
  #waiting: Waiting[] = []
  #active = 0
  #suspended = 0
  #closed = false
  #over = false
  #calls = 0
  #suspend: (() => void) | undefined
  #onIdle: (() => void)[] = []
  readonly #left = new AbortController()

  constructor(session: Session, id: string, prefix: Prefix, scopePath = '', defaults: StepPolicy = {}) {
    this.#session = session
    this.#id = id
    this.#prefix = prefix
    this.#scopePath = scopePath
    this.#defaults = defaults
    this.asking = new Asking(session)
  }

  /** The same as the id, and unique among all scopes of the thread. */
  get path(): string {
    return join(this.#scopePath, this.#id)
  }

  /**
   * Calls the function and waits until it returns, throws, or has nothing left to do but wait. When it throws, what
   * else of it is under way ends first: a step that fails does not cancel the others. When it returns, it did not want
   * what is still under way, and nothing of that is recorded any more.
   */
  run(body: () => Promise<unknown>): Promise<Activated> {
    return new Promise((resolve) => {
      const { signal } = this.#session.abort
      const leave = () => end({ status: 'failed', error: signal.reason })
      const end = (result: Activated) => {
        this.#closed = true
        signal.removeEventListener('abort', leave)
        const before = result.status === 'failed' ? this.settled() : Promise.resolve()
        void before.then(() => {
          this.#over = true
          return resolve(result)
        })
      }
      this.#suspend = () => {
        end({ status: 'suspended', waiting: this.#waiting })
        this.#left.abort()
      }
      // Code between steps may wait for something that knows nothing of the run: it is left behind.
      if (signal.aborted) return leave()
      signal.addEventListener('abort', leave, { once: true })
      body().then(
        (value) => end({ status: 'done', value, writes: this.#writes, notes: this.#notes }),
        (error: unknown) => end({ status: 'failed', error }),
      )
    })
  }

  /**
   * Resolves when nothing is under way any more. A function may end while steps of it run, as when one of several
   * fails: a run that ended before them would leave their records to nobody, and a retry would start them twice.
   */
  settled(): Promise<void> {
    if (this.#active === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onIdle.push(resolve))
  }

  /** Store writes that are to travel with a record made now. */
  takeWrites(): readonly StoreWrite[] {
    return this.#writes.splice(0)
  }

  /** Starts over, as a retry does: names may be used again, and writes of the failed attempt are forgotten. */
  restart(): void {
    this.#seen = new Set()
    this.#ordinals = new Map()
    this.#writes = []
    this.#notes = []
    this.#waiting = []
    this.#active = 0
    this.#suspended = 0
    // Code of the attempt before may still be running: nothing it asks for happens any more.
    this.#calls++
    this.asking.restart()
  }

  /** Refuses to end while records of this activation were not asked for: the program took another way than before. */
  checkRevisited(): void {
    const own = this.#id === '' ? '' : `${this.#id}/`
    for (const [path, record] of Object.entries(this.#scope().steps ?? {})) {
      if (path === this.#id || !path.startsWith(own) || this.#seen.has(path)) continue
      if (record.status !== 'done' && record.status !== 'failed') continue
      throw nondeterministic(`Step "${path}" is recorded, but the program did not come back to it.`, path)
    }
  }

  context<Input>(input: Input, step?: StepContext): Context<Input> & { readonly [INTERNALS]: Internals } {
    const { log, context, attempt, recorder, heartbeat } = this.#session
    const { seq, hash } = recorder.fold
    const call = this.#calls
    const track = <Result>(what: string, operation: () => Promise<Result>) => this.#track(call, what, operation)
    return {
      input,
      context,
      thread: log.thread,
      branch: log.branch,
      tenant: log.tenant,
      run: recorder.state.run?.id ?? '',
      checkpoint: seq < 0 ? '' : formatCheckpointId(log.branch, seq, hash),
      attempt,
      abort: step?.abort ?? this.#session.abort.signal,
      idempotencyKey: step?.idempotencyKey ?? this.#session.idempotencyKey(this.path, 0),
      store: new StepStore(this.#session.store, this.#writes),
      step: <Result>(name: string, ...rest: StepArguments<Result>) =>
        track('step', () => this.#step(name, ...rest)) as Promise<Result>,
      transaction: (name, work, options) => track('transaction', () => this.#transaction(name, work, options)),
      sleep: (duration, options) => track('sleep', () => this.#sleep(duration, options)),
      receive: (name, options) => track('receive', () => this.#receive(name, options)) as Promise<never>,
      pause: (question, options) => track('pause', () => this.#pause(question, options)) as Promise<never>,
      heartbeat,
      emit: (value) => this.#session.emit({ type: 'custom', step: this.path, value }),
      [INTERNALS]: {
        path: this.path,
        clock: this.#session.clock,
        random: this.#session.random,
        watch: this.#session.watch,
        claim: `${log.branch}:${recorder.fold.epoch}`,
        emit: (event) => this.#session.emit(event),
        note: (event) => this.#notes.push(event),
      },
    }
  }

  /** Waits for an answer on behalf of the activation itself. */
  async ask(...question: Parameters<Asking['ask']>): Promise<unknown> {
    const answer = await this.asking.ask(...question)
    return answer === undefined ? this.#hang(false) : answer.value
  }

  async #askInside(...question: Parameters<Asking['ask']>): Promise<unknown> {
    const answer = await this.asking.ask(...question)
    return answer === undefined ? this.#hang() : answer.value
  }

  /** The activation as a whole as a piece of work. */
  wholeWork(options: StepOptions, run: (step: StepContext) => unknown): Work {
    return {
      ...this.#work(this.#id, options, run),
      left: this.#left.signal,
      ask: (kind, question, jsonSchema) => this.ask(kind, `${this.path} ${kind}`, question, { jsonSchema }),
      unask: () => this.asking.drop(`${this.path} unknown-effect`),
    }
  }

  #work(id: string, options: StepOptions, run: (step: StepContext) => unknown): Work {
    const path = join(this.#scopePath, id)
    return {
      path,
      at: inScope(this.#prefix, 'steps', id),
      policy: { ...this.#defaults, ...options },
      input: options.input,
      inputHash: hashValue(options.input),
      idempotencyKey: options.idempotencyKey,
      run,
      ask: (kind, question, jsonSchema) => this.#askInside(kind, `${path} ${kind}`, question, { jsonSchema }),
      unask: () => this.asking.drop(`${path} unknown-effect`),
    }
  }

  async #step<Result>(name: string, ...rest: StepArguments<Result>): Promise<unknown> {
    const [options, run] = rest.length === 1 ? [{} as StepOptions<Result>, rest[0]] : rest
    const path = this.#claimPath(name, options.key)
    checkPolicy(options, `step "${path}"`)
    const inputHash = hashValue(options.input)
    await this.#session.replay?.turn(path)
    const found = this.#recorded(path, inputHash)
    if (found) return found.result
    if (this.#session.replay) return this.#gap(path)
    const work = this.#work(path, options as StepOptions, (step) => this.#session.inside.run(path, () => run(step)))
    try {
      const performed = await perform(this.#session, work)
      if (this.#over) return never()
      await this.#recordDone(work, performed)
      return performed.result
    } catch (error) {
      if (error instanceof StepFailedError && !this.#over) await this.#recordFailed(work, error)
      throw error
    }
  }

  async #transaction<Result>(
    name: string,
    run: (sql: SqlSession) => Promise<Result>,
    options: TransactionOptions = {},
  ): Promise<Result> {
    const path = this.#claimPath(name, options.key)
    await this.#session.replay?.turn(path)
    const found = this.#recorded(path, hashValue(options.input))
    if (found) return found.result as Result
    if (this.#session.replay) return this.#gap(path)
    const work = this.#work(path, { input: options.input }, () => undefined)
    const record = (result: Result) => ({
      kind: 'step',
      ops: [set(work.at, this.#done(work, result as Value | undefined))],
      data: { events: [{ type: 'step', step: work.path, status: 'completed' }] },
    })
    const instead = await permit(this.#session, work, 'once')
    if (instead) {
      const result = instead.result === undefined ? undefined : encodeValue(instead.result, DEFAULT_LIMITS).value
      await this.#recordDone(work, { result, writes: [], attempts: 0, ms: 0 })
      return result as Result
    }
    const inside = (sql: SqlSession) => this.#session.inside.run(path, () => run(sql))
    return this.#session.watch.step(work.path, 1, () =>
      this.#session.recorder.transact(inside, (result) => this.#session.progress(record(result)), options.timeoutMs),
    )
  }

  async #sleep(duration: number | Date, options: SleepOptions = {}): Promise<void> {
    const { clock, recorder, inlineSleepMs, abort } = this.#session
    const ms = duration instanceof Date ? duration.getTime() - clock.now() : duration
    if (typeof ms !== 'number' || !Number.isFinite(ms)) {
      throw new InvalidValueError('sleep', 'is no time', 'Pass milliseconds or a Date.')
    }
    const path = this.#claimPath('sleep', options.key ?? this.#ordinal('sleep'))
    const found = this.#recorded(path, 'none')
    // Short sleeps leave no record, and a replay waits for nothing.
    if (this.#session.replay) return
    const until = found?.until ?? Math.ceil(clock.now() + Math.max(0, ms))
    const left = until - clock.now()
    if (found === undefined && left > inlineSleepMs) {
      recorder.add({ kind: 'step', ops: [set(inScope(this.#prefix, 'steps', path), { status: 'waiting', until })] })
    }
    if (left <= 0) return
    if (left <= inlineSleepMs || !recorder.durable) return clock.sleep(left, abort.signal)
    this.#waiting.push({ kind: 'sleep', step: path, until })
    return this.#hang()
  }

  async #receive(name: string, options: ReceiveOptions = {}): Promise<unknown> {
    const { clock, recorder } = this.#session
    if (!recorder.durable) {
      throw new InvalidOptionError('frequency', "is 'none', which can't wait for a signal", "Use 'step' or 'boundary'.")
    }
    const path = this.#claimPath(`receive ${name}`, this.#ordinal(`receive ${name}`))
    const at = inScope(this.#prefix, 'steps', path)
    await this.#session.replay?.turn(path)
    const found = this.#recorded(path, 'none')
    if (found?.status === 'done') return this.#parse(options, found.result)
    if (this.#session.replay) return this.#gap(path)
    const taken = await recorder.conclude((fold) => {
      const [first] = (fold.state as { signals?: Record<string, readonly { value?: Value }[]> }).signals?.[name] ?? []
      if (first === undefined) return undefined
      const record: StepRecord = { status: 'done', ...(first.value === undefined ? {} : { result: first.value }) }
      const events = [{ type: 'step', step: join(this.#scopePath, path), status: 'completed' }]
      return { kind: 'step', ops: [splice(['signals', name], 0, 1), set(at, record)], data: { events } }
    }, false)
    if (taken) return this.#parse(options, this.#recorded(path, 'none')?.result)
    const until = found?.until ?? (options.timeoutMs === undefined ? undefined : clock.now() + options.timeoutMs)
    if (until !== undefined && until <= clock.now()) {
      recorder.add({ kind: 'step', ops: [set(at, { status: 'done' })] })
      return undefined
    }
    if (found === undefined && until !== undefined) {
      recorder.add({ kind: 'step', ops: [set(at, { status: 'waiting', until })] })
    }
    this.#waiting.push({ kind: 'signal', step: path, name, ...(until === undefined ? {} : { until }) })
    return this.#hang()
  }

  #pause(question: unknown, options: PauseOptions = {}): Promise<unknown> {
    const place = options.key === undefined ? `pause ${this.#ordinal('pause')}` : `pause[${encodeKey(options.key)}]`
    return this.#askInside('question', join(this.path, place), question, options)
  }

  async #parse(options: ReceiveOptions, value: unknown): Promise<unknown> {
    return options.schema ? validate(options.schema, value) : value
  }

  async #recordDone(work: Work, { result, writes, attempts, ms }: Performed): Promise<void> {
    const event = { type: 'step', step: work.path, status: 'completed', attempt: attempts, ms }
    await this.#session.record({
      kind: 'step',
      ops: [set(work.at, this.#done(work, result))],
      data: { events: [event] },
      ...(writes.length > 0 ? { store: writes } : {}),
    })
  }

  // The program may catch this and go on; on the way back it must fail here again.
  async #recordFailed(work: Work, error: StepFailedError): Promise<void> {
    const record: StepRecord = { status: 'failed', input: work.inputHash, error: error.recorded }
    const generation = (valueAt(this.#session.state as never, work.at) as StepRecord | undefined)?.generation
    await this.#session.record({
      kind: 'step',
      ops: [set(work.at, { ...record, ...(generation === undefined ? {} : { generation }) })],
      data: { events: [{ type: 'step', step: work.path, status: 'failed', error: recordError(error) }] },
    })
  }

  #done(work: Work, result: Value | undefined): StepRecord {
    return {
      status: 'done',
      ...(work.inputHash === 'none' ? {} : { input: work.inputHash }),
      ...(result === undefined ? {} : { result }),
    }
  }

  /** A finished record, or one that waits; throws what a failed step threw. */
  #recorded(path: string, inputHash: string): StepRecord | undefined {
    const { steps = {} } = this.#scope()
    // A step may be named `toString`: only what was recorded counts, not what every object has.
    const record = Object.hasOwn(steps, path) ? steps[path] : undefined
    if (record === undefined || record.status === 'started' || record.status === 'retry') return undefined
    if (record.status !== 'waiting' && (record.input ?? 'none') !== inputHash) {
      throw nondeterministic(`Step "${path}" was recorded with another input than it has now.`, path)
    }
    if (record.status === 'failed') {
      throw new StepFailedError(
        path,
        inScope(this.#prefix, 'steps', path),
        record.error ?? { name: 'Error', message: 'no reason recorded' },
      )
    }
    return record
  }

  #scope() {
    return scopeAt(this.#session.state, this.#prefix)
  }

  #claimPath(name: string, key: string | number | undefined): string {
    if (typeof name !== 'string' || !/^[^/[\]\p{Cc}]{1,200}$/u.test(name)) {
      throw new InvalidProgramError(`A step can't be named ${JSON.stringify(name)}.`, 'name', NAME_RULE)
    }
    const path = join(this.#id, key === undefined ? name : `${name}[${encodeKey(key)}]`)
    if (this.#seen.has(path)) {
      const remedy = 'Give repeated steps of one name a key: ctx.step(name, { key }, …).'
      throw new InvalidProgramError(`The step name "${path}" is used twice.`, 'name', remedy, { step: path })
    }
    this.#seen.add(path)
    return path
  }

  #ordinal(name: string): number {
    const next = this.#ordinals.get(name) ?? 0
    this.#ordinals.set(name, next + 1)
    return next
  }

  /** Counts what is under way. A function that was left hanging may wake up later: nothing it asks for happens. */
  async #track<Result>(call: number, what: string, operation: () => Promise<Result>): Promise<Result> {
    if (this.#closed || call !== this.#calls) return never()
    this.#session.throwIfAborted()
    const outer = this.#session.inside.getStore()
    if (outer !== undefined) {
      const remedy = 'Do it before or after the step, in the function itself.'
      throw new InvalidProgramError(`Step "${outer}" uses ctx.${what} inside of itself.`, 'step', remedy, {
        step: outer,
      })
    }
    this.#active++
    if (this.#session.draining) return this.#hang()
    try {
      return await operation()
    } finally {
      if (call === this.#calls) {
        this.#active--
        this.#checkIdle()
      }
    }
  }

  /** A step of a replay that is not recorded: where the record is not whole, the replay waits here as the run does. */
  #gap(path: string): Promise<never> {
    this.#session.replay?.miss(path)
    return this.#hang()
  }

  #hang(tracked = true): Promise<never> {
    this.#suspended++
    // Counted as waiting from here on, not as under way: `#track` of this call never ends.
    if (tracked) this.#active--
    this.#checkIdle()
    return never()
  }

  // Two turns of the loop, so that whatever just settled can start its next step first.
  #checkIdle(): void {
    if (this.#active === 0) for (const wake of this.#onIdle.splice(0)) wake()
    if (this.#active > 0 || this.#suspended === 0) return
    setImmediate(() => {
      setImmediate(() => {
        if (this.#active === 0 && this.#suspended > 0 && !this.#closed) this.#suspend?.()
      })
    })
  }
}

type StepArguments<Result> =
  | [work: (step: StepContext) => Result | Promise<Result>]
  | [options: StepOptions<Result>, work: (step: StepContext) => Result | Promise<Result>]

const NAME_RULE = 'Use 1 to 200 printable characters without slashes and square brackets.'

function join(path: string, name: string): string {
  return path === '' ? name : `${path}/${name}`
}

function encodeKey(key: string | number): string {
  return encodeURIComponent(String(key)).slice(0, 500)
}

function never(): Promise<never> {
  return new Promise(() => {})
}
