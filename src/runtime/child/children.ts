import { MAIN_BRANCH, type ThreadId } from '../../core/ids.js'
import { DUE, type LogKey } from '../../log/contract.js'
import { isPlainObject } from '../program/state/reduce-key.js'
import type { ProgramPlan } from '../program/program.js'
import { enqueueInput } from '../run/input/enqueue.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import type { RunState } from '../run/state/run-state.js'
import { isStuck } from '../run/state/rest.js'
import type { BeginChild, ChildDoor } from './await-child.js'
import { readChildEnd } from './child-end.js'
import { inputKeyOf } from './child-key.js'
import type { ChildEnd, ParentRef } from './child-records.js'

/** How an input is left with a child. */
export interface ChildInput {
  readonly key: string
  readonly busy: 'queue' | 'reject'
  readonly parent: ParentRef
  readonly context?: unknown
}

/** A child that the program requested in this process, with what is needed to run it here. */
export interface BegunChild {
  readonly log: LogKey
  readonly plan: ProgramPlan
  readonly input: unknown
  readonly given: ChildInput
  readonly live: unknown
}

/** The children of one thread, as this process has started or found them. */
export class Children implements ChildDoor {
  readonly begun = new Map<string, BegunChild>()
  readonly #environment: RuntimeEnvironment
  readonly parent: LogKey

  constructor(environment: RuntimeEnvironment, parent: LogKey) {
    this.#environment = environment
    this.parent = parent
  }

  async begin(child: BeginChild): Promise<'open' | 'busy' | ChildEnd> {
    const { name, plan, input, parent, options, after } = child
    const key = this.#logOf(child.thread)
    const context = 'context' in options ? options.context : inheritedContext(plan, child.inherited)
    const given: ChildInput = {
      key: inputKeyOf(name),
      // One of its own has nothing else to do.
      busy: options.thread === undefined ? 'queue' : (options.busy ?? 'reject'),
      parent,
      ...(context === undefined ? {} : { context }),
    }
    const left = await enqueueInput(this.#environment, plan, key, input, {
      ...given,
      ...child.turn,
      isNew: child.isNew,
    })
    if (left.input === 'refused') return 'busy'
    this.begun.set(name, { log: key, plan, input, given, live: liveContext(plan, child.live) })
    if (left.input === 'queued') return 'open'
    const { logs } = this.#environment
    const log = await logs.open(key)
    const end = await readChildEnd(logs, key, log.fold, { key: given.key }, plan)
    if (end === undefined) return 'open'
    if (end.takes > (after ?? -1)) return end
    // The old failure: it is retried, by whoever runs it.
    await log.update(({ state, index }) => {
      const isStill = isStuck(state as RunState) || (state as RunState).parked !== undefined
      return isStill && index.wakeAt !== DUE ? [{ kind: 'input', ops: [], index: { wakeAt: DUE } }] : undefined
    })
    return 'open'
  }

  async takesOf(thread: ThreadId, name: string, plan: ProgramPlan): Promise<number | undefined> {
    const { logs } = this.#environment
    const key = this.#logOf(thread)
    const log = await logs.open(key)
    if (!log.exists) return undefined
    const end = await readChildEnd(logs, key, log.fold, { key: inputKeyOf(name) }, plan)
    return end?.status === 'failed' || end?.status === 'incompatible' ? end.takes : undefined
  }

  #logOf(thread: ThreadId): LogKey {
    return { tenant: this.parent.tenant, thread, branch: MAIN_BRANCH }
  }
}

/**
 * The part of its parent's context that a child gets: what is recorded of it, except for what the child's program does
 * not record.
 */
function inheritedContext(plan: ProgramPlan, kept: unknown): unknown {
  const { transient = [] } = plan.context ?? {}
  if (transient === true) return undefined
  if (!isPlainObject(kept)) return kept
  return Object.fromEntries(Object.entries(kept).filter(([name]) => !transient.includes(name)))
}

/**
 * What this process passes to a child that it runs itself: from the parent's context, what the child's program says is
 * not recorded.
 */
function liveContext(plan: ProgramPlan, live: unknown): unknown {
  const { transient = [] } = plan.context ?? {}
  if (transient === true || !isPlainObject(live)) return transient === true ? live : undefined
  return Object.fromEntries(transient.filter((name) => Object.hasOwn(live, name)).map((name) => [name, live[name]]))
}
