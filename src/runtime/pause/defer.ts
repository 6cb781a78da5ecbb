import { describeGiven } from '../../core/wording/choices.js'
import { InvalidOptionError } from '../../core/errors.js'
import type { Clock } from '../../core/time/clock.js'
import type { Log } from '../../log/log.js'
import { type Op, set } from '../../log/entry/ops.js'
import { checkBy, findOpen } from './answer.js'
import type { DeferralRecord, RunState } from '../run/state/run-state.js'
import { isOnlyWaiting } from '../run/state/rest.js'
import { nextWake } from '../run/state/wake-time.js'

/** Until when a question is postponed. */
export interface DeferOptions {
  /** When to come back to the question. One that would expire earlier stays open until then. */
  readonly until: Date
  /** Who postpones it, for the record. */
  readonly by?: string
}

/** Postpones an open question: it stays as it is and accepts an answer at any time, and its expiry waits as long. */
export async function deferPause(log: Log, clock: Clock, id: string, options: DeferOptions): Promise<void> {
  const by = checkBy(options.by)
  const until = options.until instanceof Date ? options.until.getTime() : Number.NaN
  if (!(until > clock.now())) {
    throw new InvalidOptionError(
      'until',
      `must be a Date in the future, not ${options.until instanceof Date ? String(options.until) : describeGiven(options.until)}`,
      'Pass for example new Date(Date.now() + 3_600_000).',
    )
  }
  await log.refresh()
  await log.update((fold) => {
    const state = fold.state as RunState
    const now = clock.now()
    const pause = findOpen(state, id, now)
    const deferred: DeferralRecord = { until, at: now, ...(by === undefined ? {} : { by }) }
    const expiresLater = pause.expiresAt !== undefined && pause.expiresAt < until
    const ops: Op[] = [
      set(['pauses', id, 'deferred'], deferred),
      ...(expiresLater ? [set(['pauses', id, 'expiresAt'], until)] : []),
    ]
    const later = { ...state, pauses: { ...state.pauses, [id]: { ...pause, expiresAt: until } } }
    // While something else is due, it stays due.
    const moves = expiresLater && (state.run?.status !== 'running' || isOnlyWaiting(fold, now))
    return [
      {
        kind: 'answer',
        ops,
        ...(moves ? { index: { wakeAt: nextWake(later) } } : {}),
        data: { events: [{ type: 'defer', pause: id, until, ...(by === undefined ? {} : { by }) }] },
      },
    ]
  })
}
