import { showValue } from '../../codec/clone.js'
import type { Value } from '../../codec/value.js'
import { InvalidOptionError } from '../../core/errors.js'
import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import type { SqlSession } from '../../log/contract.js'
import { set } from '../../log/entry/ops.js'
import type { TransactionOptions } from './context.js'
import { transactOwn } from './attempt/own-transaction.js'
import { findBegun, permit } from './effect/past-effects.js'
import { recordDone } from './perform.js'
import type { Call, Requested, Requests } from './call/requests.js'
import { doneRecord } from './record/step-records.js'

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
