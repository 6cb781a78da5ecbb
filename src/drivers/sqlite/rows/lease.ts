import type { Clock } from '../../../core/time/clock.js'
import type { SqlValue } from '../connection/engine.js'

/** A reading of the clocks, as the worker uses it. */
export interface Instant {
  readonly bootId: string
  readonly wall: number
  readonly monotonic: number
  /** How much older than the rows this reading may be. */
  readonly slackMs: number
}

/** A reading of the clocks on its way to the worker. `sentAt` is the machine's own time, the same in all threads. */
export interface Reading {
  readonly wall: number
  readonly monotonic: number
  readonly sentAt: number
}

/** Long enough for a thread to be put aside between reading the clock and seeing a row. */
const SLACK_MS = 50

/**
 * The time by which the worker judges leases. The machine's own clock continues while a request waits for the lock; a
 * clock that was given (in tests one that stands still) is taken at its word, and the wait becomes slack.
 */
export function instantOf(reading: Reading, bootId: string, ownClock: boolean): Instant {
  const waited = Math.max(0, machineMs() - reading.sentAt)
  if (!ownClock) {
    return { bootId, wall: reading.wall, monotonic: reading.monotonic, slackMs: 1 + waited }
  }
  return { bootId, wall: reading.wall + waited, monotonic: reading.monotonic + waited, slackMs: SLACK_MS }
}

/** The same where nothing is waited for: what the clock says is now. */
export function instantNow(clock: Clock, ownClock: boolean): Instant {
  const { bootId } = clock
  return { bootId, wall: clock.now(), monotonic: clock.monotonic(), slackMs: ownClock ? SLACK_MS : 1 }
}

/** Milliseconds by a clock that all threads of the process share. */
export function machineMs(): number {
  return Number(process.hrtime.bigint() / 1000n) / 1000
}

interface LeaseColumns {
  readonly [column: string]: SqlValue
}

/**
 * Milliseconds left of a lease, 0 if none runs. Times of another boot can't be compared with ours, and whoever held the
 * lease did not survive the reboot. Where the boot has no id of its own, a deadline further away than the lease was
 * long shows that the clock started over; the slack keeps a lease granted after our reading from looking like that.
 */
export function leaseLeft(row: LeaseColumns, now: Instant): number {
  if (row['lease_boot'] !== now.bootId) return 0
  const left = (row['lease_until'] as number) - now.monotonic
  if (left > (row['lease_ms'] as number) + now.slackMs) return 0
  return Math.max(0, left)
}

/** The same in SQL, for queries. */
export const LEASE_RUNS = `(lease_boot = ? AND lease_until > ? AND lease_until <= ? + lease_ms)`

export function leaseRunsValues(now: Instant): SqlValue[] {
  return [now.bootId, now.monotonic, now.monotonic + now.slackMs]
}
