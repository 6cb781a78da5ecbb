import { isHoldfastError } from '../core/errors.js'
import type { SqlSession } from '../log/contract.js'
import type { Draft } from '../log/draft.js'
import { parseRetry, pauseAfter } from './attempt.js'
import type { TransactionOptions } from './context.js'
import { recordError, StepFailedError } from './errors.js'
import type { Work } from './perform.js'
import type { Session } from './session.js'

/**
 * Runs the user's own SQL until it is committed together with its record. An attempt that fails leaves nothing, so it is
 * tried again by the policy, and then the step has failed for good. What the store itself says is the run's business.
 */
export async function transactOwn<Result>(
  session: Session,
  work: Work,
  run: (sql: SqlSession) => Promise<Result>,
  record: (result: Result) => Draft,
  options: TransactionOptions,
): Promise<Result> {
  const { recorder, clock, random, abort } = session
  const backoff = parseRetry(options.retry)
  for (let tried = 1; ; tried++) {
    let thrown: { readonly error: unknown } | undefined
    const attempt = async (sql: SqlSession) => {
      thrown = undefined
      try {
        return await session.inside.run(work.path, () => run(sql))
      } catch (error) {
        thrown = { error }
        throw error
      }
    }
    try {
      return await session.watch.step(work.path, tried, () =>
        recorder.transact(attempt, (result) => session.progress(record(result)), options.timeoutMs),
      )
    } catch (error) {
      session.throwIfAborted()
      const isOwn = isHoldfastError(error, 'transaction') || (thrown !== undefined && thrown.error === error)
      if (!isOwn) throw error
      if (tried >= backoff.attempts || !backoff.retryIf(error)) {
        throw new StepFailedError(work.path, work.at, recordError(error, work.path), error)
      }
      const inMs = pauseAfter(backoff, tried, random)
      session.emit({ type: 'retry', step: work.path, attempt: tried, inMs, error: recordError(error) })
      await clock.sleep(inMs, abort.signal)
    }
  }
}
