import { noop, rejected } from '../../../core/async/rejected.js'
import { lazyFields, withLazyFields } from '../../../core/lazy-fields.js'
import { formatCheckpointId } from '../../../log/entry/checkpoint-id.js'
import type { ChildOptions } from '../../child/await-child.js'
import { type ChildProgram, performChild } from '../../child/perform-child.js'
import type { NotedEvent } from '../../events/events.js'
import { receive, sleep } from '../../pause/waits.js'
import { never } from './activity.js'
import type { Attempt } from '../attempt/call-work.js'
import type { Context, PauseOptions, ReceiveOptions, SleepOptions } from '../context.js'
import { insideItself, runningStepOf } from '../here.js'
import { INTERNALS, Internals } from './internals.js'
import { performStep, type StepArguments } from '../perform.js'
import { performTransaction, type TransactionArguments } from '../perform-transaction.js'
import type { Call, Requested, Requests } from './requests.js'

/** The function that is called with a context. */
export interface Called<Input> {
  readonly input: Input
  /** Of a node. */
  readonly step: Attempt | undefined
  /** The attempt may time out while its steps are in progress. */
  readonly isTimed: boolean
  readonly store: Context['store']
  note(event: NotedEvent): void
}

/** What a program's function is called with. Whatever it requests is counted until it has received the result. */
export function makeContext<Input>(
  requests: Requests,
  called: Called<Input>,
): Context<Input> & { readonly [INTERNALS]: Internals } {
  const { input, step, isTimed, store } = called
  const { run, path, waits } = requests
  const { key, log } = run
  const { seq, hash } = log.fold
  requests.called()
  const call: Call = { number: requests.calls, outer: isTimed ? step?.abortSignal : undefined }
  const request = <Result>(what: string, perform: (requested: Requested) => Promise<unknown>) =>
    track(requests, call, what, perform) as Promise<Result>
  const internals = new Internals(run, path, called)
  const context = {
    input,
    context: run.context,
    thread: key.thread,
    branch: key.branch,
    tenant: key.tenant,
    runId: log.state.run?.id ?? '',
    checkpoint: seq < 0 ? '' : formatCheckpointId(key.branch, seq, hash),
    attempt: run.takes,
    store,
    step: <Result>(name: string, ...rest: StepArguments<Result>) =>
      request<Result>('step', (requested) => performStep(requests, call, requested, name, ...rest)),
    transaction: <Result, Prepared>(name: string, ...rest: TransactionArguments<Result, Prepared>) =>
      request<Result>('transaction', (requested) => performTransaction(requests, call, requested, name, ...rest)),
    sleep: (duration: number | Date, options?: SleepOptions) =>
      request<void>('sleep', () => sleep(waits, duration, options)),
    receive: <Received>(name: string, options?: ReceiveOptions) =>
      request<Received>('receive', () => receive(waits, name, options)),
    run: (program: ChildProgram, id: string, given: unknown, options?: ChildOptions) =>
      request<never>('run', (requested) => performChild(requests, requested, program, id, given, options)),
    pause: <Answer>(question: unknown, options?: PauseOptions<Answer>) =>
      request<Answer>('pause', () => requests.places.pause(question, options)),
    heartbeat: () => {
      requests.activity.beats++
      return run.heartbeat()
    },
    emit: (value: unknown) => run.emit({ type: 'custom', step: path, value }),
    [INTERNALS]: internals,
  }
  return withLazyFields(context, internals, LAZY)
}

const LAZY = lazyFields(['abortSignal', 'idempotencyKey'])

/** Counts what is in progress. A function that was left hanging may wake up later: nothing it requests happens. */
function track<Result>(
  requests: Requests,
  { number: call }: Call,
  what: string,
  perform: (requested: Requested) => Promise<Result>,
): Promise<Result> {
  const { run } = requests
  if (requests.isClosed || call !== requests.calls || call === requests.endedCall) return never()
  if (run.abort.aborted) return rejected(run.abort.reason)
  // Another process has the thread by now: what is recorded may belong to another run, and the end of this one is
  // about to be reported.
  if (run.isOvertaken) return never()
  const outer = runningStepOf(run)
  if (outer !== undefined) return rejected(insideItself(outer, what))
  const requested = requests.open(what)
  if (run.draining) return requests.activity.hang()
  const tracked: Promise<Result> = perform(requested).then(
    (result) => {
      if (call === requests.calls) requests.hear(requested)
      return result
    },
    (error: unknown) => {
      tracked.catch(noop)
      if (call === requests.calls) requests.hearFailure(error, requested)
      throw error
    },
  )
  return tracked
}
