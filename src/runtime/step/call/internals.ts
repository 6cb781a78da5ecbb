import type { Value } from '../../../codec/value.js'
import type { Clock } from '../../../core/time/clock.js'
import type { RunObserver } from '../../../telemetry/observer.js'
import type { Context } from '../context.js'
import type { LiveEvent, NotedEvent } from '../../events/events.js'
import type { Run } from '../../run/run.js'
import type { Called } from './make-context.js'
import { addWrite } from '../record/step-store.js'

/** What programs of this library, such as the agent, use of a run beyond the public context. */
export interface Internals {
  /** The path of the activation, for events. */
  readonly path: string
  readonly clock: Clock
  readonly random: () => number
  /** Identifies the claim under which this run is driven: a different one means that the run was resumed. */
  readonly claim: string
  /**
   * Undefined if the thread is known to be ours for long enough to start something that reaches the outside world;
   * otherwise resolves when to check again.
   */
  secure(): Promise<void> | undefined
  /** An earlier attempt with the same key may have happened, with an unknown outcome. */
  readonly isRepeat: boolean
  /** Told of model calls and tools. */
  readonly watch: RunObserver
  /** Sends an event to whoever listens now; not recorded. */
  emit(event: LiveEvent): void
  /** Adds an event to the record of this node. */
  note(event: NotedEvent): void
  /** Puts an item into the store with the record of this node. `space` and `value` are known to be valid. */
  put(space: string, key: string, value: Value): void
}

/** On the context of an attempt: whether it is a repeat. */
export const REPEAT: unique symbol = Symbol('holdfast.repeat')

export const INTERNALS: unique symbol = Symbol('holdfast.internals')

export function internalsOf(context: Context): Internals {
  return (context as Context & { readonly [INTERNALS]: Internals })[INTERNALS]
}

/** What the programs of this library find in the context of a function besides what is public. */
export function makeInternals(run: Run, path: string, { step, store, note }: Called<unknown>): Internals {
  return {
    path,
    clock: run.clock,
    random: run.random,
    watch: run.watch,
    claim: `${run.key.branch}:${run.log.fold.epoch}`,
    isRepeat: step !== undefined && REPEAT in step && step[REPEAT] === true,
    secure: () => (run.lease?.isSure === false ? run.lease.secure() : undefined),
    emit: (event) => run.emit(event),
    note,
    put: (space, name, value) => {
      const kept = run.redactor ? run.keep(value) : value
      addWrite(store, ['put', space, name, kept, null])
    },
  }
}
