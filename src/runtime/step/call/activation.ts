import type { StoreWrite } from '../../../log/items/store-write.js'
import type { NotedEvent } from '../../events/events.js'
import type { AskOptions, Asking } from '../../pause/asking.js'
import { fromTheStart } from '../../pause/wait-order.js'
import type { Prefix } from '../../run/state/read-run-state.js'
import { LazyAbort } from '../../../core/async/lazy-abort.js'
import type { PauseRecord, Waiting } from '../../run/state/run-state.js'
import type { Run } from '../../run/run.js'
import type { Attempt } from '../attempt/call-work.js'
import type { Context, StepOptions, StepPolicy } from '../context.js'
import type { INTERNALS, Internals } from './internals.js'
import { makeContext } from './make-context.js'
import { Requests } from './requests.js'
import { StepStore, StepWrites } from '../record/step-store.js'
import type { OwnWork, Work } from '../work.js'

export type Activated =
  | {
      readonly status: 'done'
      readonly value: unknown
      readonly writes: readonly StoreWrite[]
      readonly notes: readonly NotedEvent[]
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
  readonly #run: Run
  readonly #id: string
  readonly #requests: Requests
  readonly #writes: StoreWrite[] = []
  readonly #stored = new StepWrites(this.#writes)
  #notes: NotedEvent[] = []
  #end: ((result: Activated) => void) | undefined
  /** Aborted when the function is left hanging; made when something is to be told. */
  #left: LazyAbort | undefined
  /** Since when it may have been begun without a record, by a process that came before its gates existed. */
  #gatedSince: number | undefined
  /** An attempt of the function may time out while its steps are in progress. */
  #isTimed = false
  /** The function threw while something else in it was in progress. */
  #threwInCompany = false

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
    const place = { id, prefix, scopePath, defaults, isNew }
    this.#requests = new Requests(run, place, {
      suspend: () => this.#leave({ status: 'suspended', waiting: this.#requests.waiting }),
      fail: (error) => this.#leave({ status: 'failed', error }),
    })
  }

  get asking(): Asking {
    return this.#requests.asking
  }

  /** Whether the function has requested a step, here or in an earlier attempt. */
  get hasSteps(): boolean {
    return this.#requests.hasSteps
  }

  /**
   * Calls the function and waits until it returns, throws, or has nothing left to do but wait. When it throws, what
   * else is in progress ends first: a step that fails does not cancel the others. When it returns, it did not want what
   * is still in progress, and none of that is recorded anymore.
   */
  run(body: () => Promise<unknown>): Promise<Activated> {
    const requests = this.#requests
    return new Promise((resolve) => {
      const { abort } = this.#run
      let letGo = () => {}
      const end = (result: Activated) => {
        requests.isClosed = true
        letGo()
        const over = () => {
          requests.isOver = true
          resolve(result)
        }
        const settling = result.status === 'failed' ? this.settling() : undefined
        if (settling) void settling.then(over)
        else over()
      }
      // Never a function written out here: the engine keeps one that is assigned to a property, and all that it refers to,
      // until the next full collection.
      this.#end = end
      // Code between steps may wait for something that knows nothing about the run: it is left behind.
      letGo = abort.onAbort(() => end({ status: 'failed', error: abort.reason }))
      if (abort.aborted) return
      const fail = (error: unknown) => {
        this.#threwInCompany = requests.activity.busy > 0
        end({ status: 'failed', error: requests.accuse(error) })
      }
      const returned = (value: unknown): void => {
        const writing = this.#stored.settled()
        if (writing) void writing.then(() => returned(value), fail)
        else end({ status: 'done', value, writes: this.#writes, notes: this.#notes })
      }
      fromTheStart(body).then(returned, fail)
    })
  }

  /** Ends where the function waits, and leaves it hanging there. */
  #leave(result: Activated): void {
    this.#end?.(result)
    this.#left?.abort(LEFT)
  }

  /**
   * Resolves when nothing is in progress anymore; undefined if nothing is now. A function may end while its steps run,
   * as when one of several fails: a run that ended before them would leave their records to nobody, and a retry would
   * start them twice. For the same reason, nothing that its branches request from here on happens.
   */
  settling(): Promise<void> | undefined {
    const { activity, calls } = this.#requests
    this.#requests.endedCall = calls
    return activity.busy === 0 ? undefined : activity.settled()
  }

  /** Starts over, as a retry does: names may be used again. */
  restart(): void {
    this.#notes = []
    this.#requests.restart(this.#gatedSince)
  }

  /**
   * Refuses to end while records of this activation were not requested: the program took a different path than before.
   */
  checkRevisited(): void {
    this.#requests.revisits.check()
  }

  /** Why a function that threw has failed. */
  explainFailure(error: unknown): unknown {
    return this.#requests.explain(error, this.#threwInCompany)
  }

  /** What the function is called with. */
  context<Input>(input: Input, step?: Attempt): Context<Input> & { readonly [INTERNALS]: Internals } {
    return makeContext(this.#requests, {
      input,
      step,
      isTimed: this.#isTimed,
      // A node's writes belong to the attempt that makes them, a flow's to the run.
      store: step?.store ?? new StepStore(() => this.#run.store, this.#stored),
      note: (event) => this.#notes.push(event),
    })
  }

  /** Waits for an answer on behalf of the activation itself. */
  async ask(kind: PauseRecord['kind'], place: string, question: unknown, options: AskOptions): Promise<unknown> {
    const { places, activity } = this.#requests
    const isGate = kind === 'before' || kind === 'approval'
    const since = isGate ? places.sinceBehind(places.pauseAt(place), false) : undefined
    const answer = await this.asking.ask(kind, place, question, { ...options, since })
    return answer === undefined ? activity.hang(false) : answer.value
  }

  /** The activation as a whole as a piece of work. */
  wholeWork(
    policy: StepPolicy,
    options: Pick<StepOptions, 'input' | 'idempotencyKey'>,
    run: (attempt: Attempt) => unknown,
    own: (ask: Work['ask']) => OwnWork,
  ): Work {
    const { places, path } = this.#requests
    this.#isTimed = policy.timeoutMs !== undefined
    this.#gatedSince = places.leastSince('before', 'approval')
    places.restart(this.#gatedSince)
    this.#left ??= new LazyAbort()
    const ask: Work['ask'] = (kind, question, jsonSchema, refuse) =>
      this.ask(kind, `${path} ${kind}`, question, { jsonSchema, ...(refuse && { refuse }) })
    return this.#requests.work(this.#id, options, run, { policy, own: { ...own(ask), left: this.#left } })
  }
}

/** Created once: without a reason, each abort creates an error with a stack. */
const LEFT = new Error('The function was left where it waits.')
