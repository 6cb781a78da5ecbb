import { showValue } from '../../codec/clone.js'
import { InvalidOptionError, InvalidProgramError } from '../../core/errors.js'
import { parseThreadId, type ThreadId, threadIdInput, type ThreadIdInput } from '../../core/ids.js'
import { remove, set } from '../../log/entry/ops.js'
import { ChildFailedError, type FailedChild, nondeterministic, recordError } from '../errors.js'
import type { ProgramPlan } from '../program/program.js'
import { CHILDREN } from '../run/state/labels.js'
import { awaitsChild } from '../run/state/read-run-state.js'
import { ANY_INPUT, type RunRecord, type StepRecord } from '../run/state/run-state.js'
import type { Run } from '../run/run.js'
import type { Requests } from '../step/call/requests.js'
import { permit } from '../step/attempt/past-effects.js'
import { recordAt } from '../step/attempt/ledger.js'
import type { Work } from '../step/work.js'
import { type ChildEnd, type ChildRecord, childThread, nameChild, type ParentRef } from './child-records.js'

/** Options for a thread that another one starts. */
export interface ChildOptions {
  /**
   * The thread it runs on. Default: its own, named after the parent and `id`. A thread that is named here may have a
   * history, and other parents.
   */
  readonly thread?: ThreadIdInput
  /**
   * What to do if the named thread has an unfinished run, or earlier input. Default 'reject': the call fails with
   * `child-failed`, status 'busy'. 'queue' waits for its turn.
   */
  readonly busy?: 'reject' | 'queue'
  /** The context of its run, recorded with it. Default: what is recorded of the parent's own. */
  readonly context?: unknown
}

/** One call of `ctx.run`. */
export interface ChildCall {
  readonly requests: Requests
  /** Its path in the function, of which that of its work is the whole. */
  readonly path: string
  readonly work: Work
  readonly id: string
  readonly plan: ProgramPlan
  readonly input: unknown
  readonly options: ChildOptions
}

/** More levels than this mean a program that calls itself without end. */
const MOST_ABOVE = 32

/**
 * Starts another thread and returns its result, or leaves the run to be woken by its end. The child is recorded here
 * before it is started there, under a name derived from this place: whoever gets here again finds the same one.
 */
export async function awaitChild(call: ChildCall): Promise<unknown> {
  const { work, plan, options } = call
  const { run } = call.requests
  const { log } = run
  if (!log.durable || run.children === undefined) {
    throw new InvalidOptionError('frequency', "is 'none', which can't await a thread", "Use 'step' or 'boundary'.")
  }
  const current = run.state.run as RunRecord
  const record = recordAt(run, work)
  if (record?.status === 'waiting' && record.input !== undefined && !isSameInput(record, work)) {
    throw nondeterministic(`Step "${work.path}" was recorded with another input than it has now.`, work.path)
  }
  const come = record?.child === undefined ? undefined : log.acknowledged.children?.[record.child]?.ended
  if (record?.status === 'waiting' && come) return take(call, record.child as string, come)

  const name = nameChild(run.key, current, work.path, record?.generation ?? 0)
  const isBegun = awaitsChild(record) && record?.child === name
  const known = isBegun ? run.state.children?.[name] : undefined
  const thread = (known?.thread as ThreadId | undefined) ?? threadOf(call, current)
  const parent = {
    ...parentOf(run, current, name, thread),
    ...(options.thread === undefined ? { own: true as const } : {}),
  }
  if (!isBegun) {
    const instead = await announce(call, name, thread, record)
    if (instead) return instead.result
  }
  const isNew = record === undefined && options.thread === undefined
  const begun = await run.children.begin(call, name, parent, thread, isNew)
  if (begun !== 'open') return take(call, name, begun)
  const child = { thread: threadIdInput(thread), program: plan.name, child: name }
  return call.requests.waits.wait({ kind: 'child', step: work.path, ...child })
}

/** How a child ended, or that other work keeps it from beginning. */
export type Awaited = ChildEnd | { readonly status: 'busy'; readonly run: ''; readonly takes: 0 }

/** Records which child is about to be started; refuses if that must not happen, on a fork. */
async function announce(
  call: ChildCall,
  name: string,
  thread: ThreadId,
  before: StepRecord | undefined,
): Promise<{ readonly result: unknown } | undefined> {
  const { work, plan } = call
  const { run } = call.requests
  const { log } = run
  // What the program refuses is refused before anything is recorded about it.
  await plan.checkInput(call.input)
  await call.requests.hold(call.path)
  const instead = await permit(run, work, 'idempotent')
  if (instead) {
    const result = instead.result === undefined ? undefined : run.keep(instead.result)
    const done: StepRecord = { status: 'done', ...marksOf(work), ...(result === undefined ? {} : { result }) }
    await run.record({ kind: 'step', ops: [set(work.at, done)], data: { events: [stepEvent(work, 'completed')] } })
    return { result: showValue(result) }
  }
  const isRetry = before?.status === 'retry' && !before.inherited
  const after = isRetry ? await run.children?.takesOf(thread, name, plan) : undefined
  const generation = before?.generation
  const child: ChildRecord = {
    thread,
    program: plan.name,
    step: work.path,
    ...(after === undefined ? {} : { after }),
  }
  const waiting: StepRecord = {
    status: 'waiting',
    ...marksOf(work),
    child: name,
    ...(generation === undefined ? {} : { generation }),
  }
  const foreign = before?.child !== undefined && before.child !== name ? before.child : undefined
  const isKnown = call.options.thread !== undefined || CHILDREN in log.fold.index.metadata
  log.add({
    kind: 'effect',
    // In a copy of a thread, what the original awaits is none of its own.
    ops: [set(work.at, waiting), ...(foreign ? [remove(['children', foreign])] : []), set(['children', name], child)],
    ...(isKnown ? {} : { index: { metadata: { [CHILDREN]: true } } }),
    data: { events: [stepEvent(work, 'started')] },
  })
  await log.barrier()
  await run.lease?.secure()
  return undefined
}

/** Records the outcome of a child as the result of the step that awaited it. */
async function take(call: ChildCall, name: string, end: Awaited): Promise<unknown> {
  const { work } = call
  const { run } = call.requests
  const before = recordAt(run, work)
  const marks = { ...marksOf(work), ...(before?.after === undefined ? {} : { after: before.after }) }
  const gone = run.state.children?.[name] === undefined ? [] : [remove(['children', name])]
  if (end.status === 'completed') {
    const done: StepRecord = { status: 'done', ...marks, ...(end.output === undefined ? {} : { result: end.output }) }
    const events = [stepEvent(work, 'completed')]
    await run.record({ kind: 'step', ops: [set(work.at, done), ...gone], data: { events } })
    return showValue(end.output)
  }
  const { generation = 0 } = before ?? {}
  const thread = run.state.children?.[name]?.thread ?? threadOf(call, run.state.run as RunRecord)
  // One that can continue is resumed when this is tried again; one that is over is started over.
  const isOver = end.status === 'cancelled' || end.status === 'limited' || end.status === 'gone'
  const why = 'error' in end ? end.error?.message : 'limit' in end ? end.limit?.reason : undefined
  const told: FailedChild = {
    status: end.status,
    run: end.run,
    ...(why === undefined ? {} : { reason: why }),
    ...('done' in end && end.done !== undefined ? { done: end.done } : {}),
  }
  const failed = new ChildFailedError(work.path, work.at, threadIdInput(thread as ThreadId), told)
  const record: StepRecord = {
    status: 'failed',
    ...marks,
    error: recordError(failed),
    generation: isOver ? generation + 1 : generation,
    childEnd: { ...told, thread },
  }
  const events = [{ ...stepEvent(work, 'failed'), error: recordError(failed) }]
  await run.record({ kind: 'step', ops: [set(work.at, record), ...gone], data: { events } })
  throw failed
}

/** How the failure of a child is reported to the program, when it gets here again. */
export function failedChild(record: StepRecord | undefined, work: Pick<Work, 'path' | 'at'>): unknown {
  if (record?.status !== 'failed' || record.childEnd === undefined) return undefined
  const { thread, ...end } = record.childEnd
  return new ChildFailedError(work.path, work.at, threadIdInput(thread as ThreadId), end, record.error?.message)
}

function threadOf({ requests, work, id, options }: ChildCall, current: RunRecord): ThreadId {
  return options.thread === undefined
    ? childThread(requests.run.key, current, work.path, id)
    : parseThreadId(options.thread)
}

function parentOf({ key, log }: Run, { parent }: RunRecord, child: string, thread: ThreadId): ParentRef {
  const above = parent === undefined ? [] : [parent.thread, ...(parent.above ?? [])]
  if (thread === key.thread || above.includes(thread)) {
    throw new InvalidProgramError(
      `Thread ${thread} awaits this one, so ctx.run can't await it: neither would ever end.`,
      'thread',
      'Name another thread, or leave it out for one of its own.',
      { thread },
    )
  }
  if (above.length >= MOST_ABOVE) {
    const problem = `Thread ${key.thread} is ${above.length} threads below the first: its program seems to call itself without an end.`
    throw new InvalidProgramError(problem, 'run', 'End the recursion.', { depth: above.length })
  }
  const { incarnation } = log.fold
  return { thread: key.thread, branch: key.branch, incarnation, child, ...(above.length === 0 ? {} : { above }) }
}

function isSameInput({ input }: StepRecord, { inputHash }: Work): boolean {
  return input === inputHash() || input === ANY_INPUT
}

function marksOf({ inputHash, after }: Work): Pick<StepRecord, 'input' | 'effect' | 'after'> {
  return { input: inputHash(), effect: 'idempotent', ...(after === undefined ? {} : { after: after() }) }
}

function stepEvent({ path }: Work, status: 'started' | 'completed' | 'failed') {
  return { type: 'step' as const, step: path, status }
}
