import { isHoldfastError } from '../../core/errors.js'
import { MAIN_BRANCH, parseThreadId, type ThreadId } from '../../core/ids.js'
import { parseCheckpointId } from '../../log/entry/checkpoint-id.js'
import { DUE, type LogKey } from '../../log/contract.js'
import { unheard } from '../events/event-feed.js'
import type { ProgramPlan } from '../program/program.js'
import type { Outcome } from '../run/state/outcome.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import type { RequestOptions } from '../run/request/run-options.js'
import type { RunState } from '../run/state/run-state.js'
import { isOnlyWaiting, isStuck } from '../run/state/read-run-state.js'
import { isPlainObject } from '../program/state/reduce-key.js'
import { enqueueInput } from '../run/input/enqueue.js'
import { turnOf } from '../run/state/labels.js'
import type { runThread as RunThread } from '../run/run-thread.js'
import type { Awaited, ChildCall } from './await-child.js'
import { readChildEnd } from './child-end.js'
import { awaitedBy, type WaitForChild } from './family-rest.js'
import { inputKeyOf, type ParentRef } from './child-records.js'

/** A child that the program requested in this process, with what is needed to run it here. */
interface BegunChild {
  readonly log: LogKey
  readonly plan: ProgramPlan
  readonly input: unknown
  readonly key: string
  readonly parent: ParentRef
  readonly live: unknown
}

/** The children of one thread, as this process has started or found them. */
export class Children {
  readonly begun = new Map<string, BegunChild>()
  readonly #environment: RuntimeEnvironment
  readonly parent: LogKey

  constructor(environment: RuntimeEnvironment, parent: LogKey) {
    this.#environment = environment
    this.parent = parent
  }

  /**
   * Leaves the input with the child, once however often it is called, and returns its current state.
   * @param isNew it has never been started before, and nobody else knows its thread.
   */
  async begin(
    { requests: { run }, plan, input, options }: ChildCall,
    name: string,
    parent: ParentRef,
    thread: ThreadId,
    isNew: boolean,
  ): Promise<'open' | Awaited> {
    const log = this.#logOf(thread)
    const key = inputKeyOf(name)
    const context = 'context' in options ? options.context : inheritedContext(plan, run.state.run?.context)
    // One of its own has nothing else to do.
    const busy = options.thread === undefined ? 'queue' : (options.busy ?? 'reject')
    const given = { key, busy, parent, isNew, ...(context === undefined ? {} : { context }) }
    const left = await enqueueInput(this.#environment, plan, log, input, { ...given, ...turnOf(run.log.fold.index) })
    if (left.input === 'refused') return { status: 'busy', run: '', takes: 0 }
    this.begun.set(name, { log, plan, input, key, parent, live: liveContext(plan, run.context) })
    if (left.input === 'queued') return 'open'
    const { logs } = this.#environment
    const opened = await logs.open(log)
    const end = await readChildEnd(logs, log, opened.fold, { key }, plan)
    if (end === undefined) return 'open'
    // An end that is not newer than this is an old one: it is to be retried.
    if (end.takes > (run.state.children?.[name]?.after ?? -1)) return end
    await opened.update(({ state, index }) => {
      const isStill = isStuck(state as RunState) || (state as RunState).parked !== undefined
      return isStill && index.wakeAt !== DUE ? [{ kind: 'input', ops: [], index: { wakeAt: DUE } }] : undefined
    })
    return 'open'
  }

  /** How often a child that failed had been picked up. */
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

/**
 * Runs a thread, and the children that it waits for, in this process: a caller of `run` may not have a worker that
 * would. Never holds two of them at the same time: the parent is at rest while its children run, and continues when one
 * of them has ended. A child that another process runs is waited for; one that waits for a person leaves the parent
 * waiting.
 */
export async function runWithChildren(
  environment: RuntimeEnvironment,
  children: Children,
  options: RequestOptions,
  run: (options: RequestOptions) => Promise<Outcome>,
  runThread: typeof RunThread,
): Promise<Outcome> {
  let outcome = await run(options)
  if (outcome.input === 'queued' || outcome.input === 'refused' || childrenOf(outcome).length === 0) return outcome
  const { input: fate } = outcome
  const again = async (revisits: boolean): Promise<Outcome> => {
    const { input: _, key: __, initial: ___, parent: ____, ...rest } = options
    const since = outcome.checkpoint === undefined ? 0 : parseCheckpointId(outcome.checkpoint).seq
    // Others may have come meanwhile: neither their runs nor what they were brought is ours.
    const only = { run: outcome.run, since }
    const { input: _____, ...next } = await run({ ...rest, hasInput: false, busy: 'queue', revisits, only })
    return (fate === undefined ? next : { ...next, input: fate }) as Outcome
  }
  const stop = new AbortController()
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal
  const running = new Map<string, Promise<string>>()
  const rested = new Set<string>()
  let isRevisited = false
  try {
    for (;;) {
      const waits = childrenOf(outcome)
      if (waits.length === 0) return outcome
      const unknown = waits.filter(({ child }) => !children.begun.has(child))
      if (unknown.length > 0 && !isRevisited && (await needsRun(environment, children.parent, unknown))) {
        isRevisited = true
        outcome = await again(true)
        continue
      }
      for (const { child } of waits) {
        const begun = children.begun.get(child)
        if (begun === undefined || running.has(child) || rested.has(child)) continue
        const ending = runChild(begun, child)
        // Whoever looks at it later hears of it: until then it must not end the process.
        ending.catch(() => {})
        running.set(child, ending)
      }
      if (running.size === 0) return outcome
      const ended = await Promise.race(running.values())
      running.delete(ended)
      rested.add(ended)
      outcome = await again(false)
    }
  } finally {
    // One that is over has cancelled them, and they end by themselves. Otherwise they are resumed with it.
    if (!isOver(outcome)) stop.abort()
    await Promise.allSettled(running.values())
  }

  async function runChild({ log, plan, input, key, parent, live }: BegunChild, name: string): Promise<string> {
    const { leaseMs, inlineSleepMs, durability } = options
    const settings: RequestOptions = {
      input,
      hasInput: true,
      key,
      parent,
      busy: 'queue',
      onPaused: 'queue',
      context: live,
      fillsContext: true,
      // On a thread that others use as well, their runs come first.
      fillsOnly: key,
      signal,
      emit: unheard,
      ...(leaseMs === undefined ? {} : { leaseMs }),
      ...(inlineSleepMs === undefined ? {} : { inlineSleepMs }),
      ...(durability === undefined ? {} : { durability }),
    }
    for (;;) {
      try {
        await runThread(environment, plan, log, settings)
        return name
      } catch (error) {
        // Another process has it by now, and is followed to its end.
        if (!isHoldfastError(error, 'fenced')) throw error
      }
    }
  }
}

function isOver(outcome: Outcome): boolean {
  if (outcome.status === 'failed') return !outcome.canResume
  return outcome.status === 'completed' || outcome.status === 'limited'
}

function childrenOf(outcome: Outcome): readonly WaitForChild[] {
  return outcome.status === 'paused' ? awaitedBy(outcome) : []
}

/**
 * Whether one of them could continue if somebody ran it: not while all that they wait for is a person, a signal or a
 * time.
 */
async function needsRun(
  environment: RuntimeEnvironment,
  { tenant }: LogKey,
  waits: readonly WaitForChild[],
): Promise<boolean> {
  for (const { thread } of waits) {
    const log = await environment.logs.open({ tenant, thread: parseThreadId(thread), branch: MAIN_BRANCH })
    if (!log.exists || !isOnlyWaiting(log.fold, environment.clock.now())) return true
    const below = awaitedBy((log.fold.state as RunState).run)
    if (below.length > 0 && (await needsRun(environment, log.key, below))) return true
  }
  return false
}
