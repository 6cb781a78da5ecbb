import { isHoldfastError } from '../../../core/errors.js'
import type { SqlSession } from '../../../log/contract.js'
import type { Draft } from '../../../log/entry/draft.js'
import { parseRetry, retryDelayMs } from './attempt.js'
import type { TransactionOptions } from '../context.js'
import { recordError, StepFailedError } from '../../errors.js'
import { insideStep } from '../here.js'
import type { Work } from '../work.js'
import type { Run } from '../../run/run.js'

/**
 * Runs the user's own SQL until it is committed together with its record. An attempt that fails leaves nothing behind,
 * so it is retried according to the policy, and then the step has failed for good. Errors of the store itself concern
 * the run.
 */
export async function transactOwn<Result, Prepared>(
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
