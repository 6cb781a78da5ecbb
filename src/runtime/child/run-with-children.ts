import { isHoldfastError } from '../../core/errors.js'
import { MAIN_BRANCH, parseThreadId } from '../../core/ids.js'
import { parseCheckpointId } from '../../log/entry/checkpoint-id.js'
import type { LogKey } from '../../log/contract.js'
import { unheard } from '../events/event-feed.js'
import type { ProgramPlan } from '../program/program.js'
import type { Outcome } from '../run/state/outcome.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import type { RequestOptions } from '../run/request/run-options.js'
import type { RunState, Waiting } from '../run/state/run-state.js'
import { isOnlyWaiting } from '../run/state/rest.js'
import type { BegunChild, Children } from './children.js'

type RunThread = (
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  key: LogKey,
  options: RequestOptions,
) => Promise<Outcome>

type WaitForChild = Waiting & { readonly kind: 'child' }

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
  runThread: RunThread,
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

  async function runChild({ log, plan, input, given, live }: BegunChild, name: string): Promise<string> {
    const { leaseMs, inlineSleepMs, durability } = options
    const settings: RequestOptions = {
      input,
      hasInput: true,
      key: given.key,
      parent: given.parent,
      busy: 'queue',
      onPaused: 'queue',
      context: live,
      fillsContext: true,
      // On a thread that others use as well, their runs come first.
      fillsOnly: given.key,
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
  if (outcome.status !== 'paused') return []
  return outcome.waiting.filter((wait): wait is WaitForChild => wait.kind === 'child')
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
    const { run } = log.fold.state as RunState
    if (!log.exists || !isOnlyWaiting(log.fold, environment.clock.now())) return true
    const below = (run?.waiting ?? []).filter((wait): wait is WaitForChild => wait.kind === 'child')
    if (below.length > 0 && (await needsRun(environment, log.key, below))) return true
  }
  return false
}
