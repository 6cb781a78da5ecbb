import { isHoldfastError } from '../../../core/errors.js'
import type { StoreWrite } from '../../../log/items/store-write.js'
import { EffectUnknownError, isNondeterministic, recordError } from '../../errors.js'
import type { Run } from '../../run/run.js'
import { type Backoff, retryDelayMs } from './attempt.js'
import { NotStarted } from './call-work.js'
import { failed, type Ledger, type Resolved } from './ledger.js'
import type { Work } from '../work.js'

/** An attempt that threw. */
export interface Thrown {
  readonly error: unknown
  /** Its number, from 1. */
  readonly tried: number
  /** What it wrote to the store. */
  readonly writes: readonly StoreWrite[]
}

/** What comes after it: the outcome is known after all, or another attempt follows, of this number. */
type Next = { readonly known: Resolved } | { readonly again: number }

/** What an attempt that threw means. Throws if the step has failed, or nobody knows whether it has. */
export async function afterThrow(
  run: Run,
  work: Work,
  ledger: Ledger,
  backoff: Backoff,
  thrown: Thrown,
): Promise<Next> {
  const { tried, writes } = thrown
  const { effect } = ledger
  if (run.abort.aborted || work.outer?.aborted) ledger.leave(writes)
  run.throwIfAborted()
  work.outer?.throwIfAborted()
  if (thrown.error instanceof NotStarted) return { again: tried }
  // A step inside this one is not what was recorded: that concerns the whole run.
  if (isNondeterministic(thrown.error)) throw thrown.error
  work.left?.throwIfAborted()
  let { error } = thrown
  let isRunning = false
  if (ledger.mustNotRepeat && !isHoldfastError(error, 'not-executed')) {
    ledger.note(writes, error)
    const late = await ledger.settle()
    if (late?.status === 'returned') return { known: late }
    if (late?.status === 'threw' && isHoldfastError(late.error, 'not-executed')) error = late.error
    isRunning = late?.status === 'running'
  }
  const definite = isHoldfastError(error, 'not-executed')
  const last = tried >= backoff.attempts || !(definite || backoff.retryIf(error))
  if (!definite && ledger.mustNotRepeat) {
    const known = await ledger.resolve(recordError(error).message, isRunning)
    if (known) return { known }
    if (last && effect === 'reconcilable') throw failed(work, error)
  } else {
    if (!definite) {
      ledger.unsure = true
      ledger.trouble = recordError(error).message
      ledger.note(writes, error)
    } else if (effect !== 'read' && !ledger.unsure) ledger.raise()
    if (last) {
      if ((definite && !ledger.unsure) || effect === 'read') throw failed(work, error)
      return giveUp(run, work, ledger, error, definite)
    }
  }
  const inMs = retryDelayMs(backoff, tried, run.random)
  run.emit({ type: 'retry', step: work.path, attempt: tried, inMs, error: recordError(error) })
  const { signal } = run.abort
  // A node's attempt ends with the run.
  await run.clock.sleep(inMs, work.left ? AbortSignal.any([signal, work.left.signal]) : (work.outer ?? signal))
  return { again: tried + 1 }
}

/** After the last attempt at an idempotent effect, of which one may have happened. */
async function giveUp(run: Run, work: Work, ledger: Ledger, error: unknown, definite: boolean): Promise<Next> {
  // An attempt that timed out may still bring its result; and nobody can be asked about it before it has ended.
  const late = await ledger.settle()
  if (late?.status === 'returned') return { known: late }
  if (definite) {
    // This attempt was refused, but an earlier one with the same key may have gone through.
    ledger.note(ledger.writes, error)
    const known = await ledger.resolve(recordError(error).message)
    if (known) return { known }
    ledger.unsure = false
    return { again: 1 }
  }
  run.watch.count('holdfast.effects.unknown')
  const about = { effect: ledger.effect, idempotencyKey: ledger.key, error: ledger.trouble }
  throw new EffectUnknownError(work.path, work.at, about, error)
}
