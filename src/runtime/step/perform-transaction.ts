import { showValue } from '../../codec/clone.js'
import type { Value } from '../../codec/value.js'
import { InvalidOptionError, isHoldfastError } from '../../core/errors.js'
import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import type { SqlSession } from '../../log/contract.js'
import { set } from '../../log/entry/ops.js'
import type { TransactionOptions } from './context.js'
import { findBegun, permit } from './attempt/past-effects.js'
import { recordDone } from './perform.js'
import type { Call, Requested, Requests } from './call/requests.js'
import { doneRecord } from './record/step-records.js'
import type { Draft } from '../../log/entry/draft.js'
import { parseRetry, retryDelayMs } from './attempt/attempt.js'
import { recordError, StepFailedError } from '../errors.js'
import { insideStep } from './here.js'
import type { Work } from './work.js'
import type { Run } from '../run/run.js'

export type TransactionArguments<Result, Prepared> =
  | [work: (sql: SqlSession, prepared: Prepared) => Promise<Result>]
  | [options: TransactionOptions<Prepared>, work: (sql: SqlSession, prepared: Prepared) => Promise<Result>]

const TRANSACTION_OPTIONS: OptionNames<TransactionOptions> = {
  input: true,
  key: true,
  timeoutMs: true,
  retry: true,
  prepare: true,
}

/** `ctx.transaction`: SQL of the program's own, committed together with its record, once. */
export async function performTransaction<Result, Prepared>(
  requests: Requests,
  call: Call,
  requested: Requested,
  name: string,
  ...rest: TransactionArguments<Result, Prepared>
): Promise<Result> {
  const { run, records } = requests
  const [options, sqlWork] = rest.length === 1 ? [{} as TransactionOptions<Prepared>, rest[0]] : rest
  if (typeof sqlWork !== 'function') {
    throw new InvalidOptionError(
      'work',
      'must be a function',
      'Call ctx.transaction(name, options, work), as ctx.step.',
    )
  }
  checkOptionNames('ctx.transaction', options, TRANSACTION_OPTIONS)
  const { path, after } = requests.arrive(requested, name, options.key, true)
  await run.replay?.turn(path)
  // The transaction of an attempt that timed out may be about to commit.
  if (call.number > 1) await run.log.barrier()
  if (records.isDoubted(path)) await requests.settleDoubt(path, 'effect')
  const found = records.find(path, run.hashInput(options.input))
  if (found) return showValue(found.result) as Result
  if (run.replay) return requests.gap(path)
  requested.isLive = true
  await requests.hold(path)
  const work = requests.work(path, { input: options.input, effect: 'once' }, () => undefined, { after })
  const current = async (sql: SqlSession, prepared: Prepared): Promise<Result> => {
    call.outer?.throwIfAborted()
    const result = await sqlWork(sql, prepared)
    // In the form in which it is found again, and refused as the step's own where it has none.
    return (result === undefined ? undefined : run.keep(result)) as Result
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
    const allowed = await permit(run, work, 'once')
    const instead = allowed ? { ...allowed, writes: [] } : await findBegun(run, work)
    if (instead) {
      const result = instead.result === undefined ? undefined : run.keep(instead.result)
      await recordDone(run, work, { result, writes: instead.writes, attempts: 0, ms: 0 })
      return showValue(result) as Result
    }
    const result = await transactOwn(run, work, current, record, options)
    return showValue(result as Value | undefined) as Result
  } catch (error) {
    if (!requests.isLeft(call)) await records.threw(work, error)
    throw error
  }
}

/**
 * Runs the user's own SQL until it is committed together with its record. An attempt that fails leaves nothing behind,
 * so it is retried according to the policy, and then the step has failed for good. Errors of the store itself concern
 * the run.
 */
async function transactOwn<Result, Prepared>(
  run: Run,
  work: Work,
  sql: (session: SqlSession, prepared: Prepared) => Promise<Result>,
  record: (result: Result) => Draft,
  options: TransactionOptions<Prepared>,
): Promise<Result> {
  const { log, clock, random, abort } = run
  const backoff = parseRetry(options.retry)
  // Kept while the SQL is retried: what was prepared may have cost money.
  let ready: { readonly prepared: Prepared } | undefined
  for (let tried = 1; ; tried++) {
    let thrown: { readonly error: unknown } | undefined
    const own = async <Value>(work: () => Value | Promise<Value>): Promise<Value> => {
      thrown = undefined
      try {
        return await work()
      } catch (caught) {
        const error = run.keepError(caught)
        thrown = { error }
        throw error
      }
    }
    const inside = <Value>(act: () => Value): Value => insideStep(run, work.path, act)
    try {
      return await run.watch.step(work.path, tried, async () => {
        ready ??= { prepared: (await own(() => inside(() => options.prepare?.()))) as Prepared }
        run.throwIfAborted()
        const { prepared } = ready
        const attempt = (session: SqlSession) => own(() => inside(() => sql(session, prepared)))
        return log.transact(attempt, (result) => run.progress(record(result)), options.timeoutMs)
      })
    } catch (error) {
      run.throwIfAborted()
      const isOwn = isHoldfastError(error, 'transaction') || (thrown !== undefined && thrown.error === error)
      if (!isOwn) throw error
      if (tried >= backoff.attempts || !backoff.retryIf(error)) {
        throw new StepFailedError(work.path, work.at, recordError(error, work.path), error)
      }
      const inMs = retryDelayMs(backoff, tried, random)
      run.emit({ type: 'retry', step: work.path, attempt: tried, inMs, error: recordError(error) })
      await clock.sleep(inMs, abort.signal)
    }
  }
}
