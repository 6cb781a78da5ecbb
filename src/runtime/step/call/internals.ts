import type { Value } from '../../../codec/value.js'
import type { Clock } from '../../../core/time/clock.js'
import type { RunObserver } from '../../../telemetry/observer.js'
import type { Context } from '../context.js'
import type { LiveEvent, NotedEvent } from '../../events/events.js'
import type { Run } from '../../run/run.js'
import type { Attempt } from '../attempt/call-work.js'
import type { Called } from './make-context.js'
import { keyMaker } from '../record/hash-value.js'
import { addWrite } from '../record/step-store.js'

/** What programs of this library, such as the agent, use of a run beyond the public context. */
export class Internals {
  /** The path of the activation, for events. */
  readonly path: string
  readonly clock: Clock
  readonly random: () => number
  /** Identifies the claim under which this run is driven: a different one means that the run was resumed. */
  readonly claim: string
  /** Told of model calls and tools. */
  readonly watch: RunObserver
  readonly #run: Run
  readonly #called: Called<unknown>
  /** Of a function that is no node. */
  readonly #key: (() => string) | undefined

  constructor(run: Run, path: string, called: Called<unknown>) {
    this.path = path
    this.clock = run.clock
    this.random = run.random
    this.claim = `${run.key.branch}:${run.log.fold.epoch}`
    this.watch = run.watch
    this.#run = run
    this.#called = called
    this.#key = called.step === undefined ? keyMaker(run, path, 0) : undefined
  }

  get abortSignal(): AbortSignal {
    return this.#called.step?.abortSignal ?? this.#run.abort.signal
  }

  get idempotencyKey(): string {
    return this.#key?.() ?? (this.#called.step as Attempt).idempotencyKey
  }

  /** An earlier attempt with the same key may have happened, with an unknown outcome. */
  get isRepeat(): boolean {
    return this.#called.step?.isRepeat ?? false
  }

  /**
   * Undefined if the thread is known to be ours for long enough to start something that reaches the outside world;
   * otherwise resolves when to check again.
   */
  secure(): Promise<void> | undefined {
    const { lease } = this.#run
    return lease?.isSure === false ? lease.secure() : undefined
  }

  /** Sends an event to whoever listens now; not recorded. */
  emit(event: LiveEvent): void {
    this.#run.emit(event)
  }

  /** Adds an event to the record of this node. */
  note(event: NotedEvent): void {
    this.#called.note(event)
  }

  /** Puts an item into the store with the record of this node. `space` and `value` are known to be valid. */
  put(space: string, name: string, value: Value): void {
    const kept = this.#run.redactor ? this.#run.keep(value) : value
    addWrite(this.#called.store, ['put', space, name, kept, null])
  }
}

export const INTERNALS: unique symbol = Symbol('holdfast.internals')

export function internalsOf(context: Context): Internals {
  return (context as Context & { readonly [INTERNALS]: Internals })[INTERNALS]
}
