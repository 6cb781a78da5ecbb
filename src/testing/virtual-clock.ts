import type { Clock } from '../core/time/clock.js'

/** A clock that stands still until it is told to continue. */
export interface VirtualClock extends Clock {
  /**
   * Lets `ms` pass: sleepers wake in the order of their times, each seeing the time it asked for, and what they do
   * before they sleep again is done before the next wakes.
   */
  advance(ms: number): Promise<void>
  /** Moves the wall clock alone, as a clock that was set by hand does. Monotonic time and sleepers don't notice. */
  setNow(now: number): void
}

interface Sleeper {
  readonly at: number
  wake(): void
}

/** Fake time for leases, waits and expiry. Starts at `now`, by default 2025-01-01. */
export function virtualClock(options: { readonly now?: number; readonly bootId?: string } = {}): VirtualClock {
  let elapsed = 0
  let start = options.now ?? Date.UTC(2025, 0, 1)
  // In the order of falling asleep, so that of two with the same time the first to sleep wakes first.
  let sleepers: Sleeper[] = []

  return {
    bootId: options.bootId ?? 'virtual',
    now: () => Math.floor(start + elapsed),
    // Not 0 at the start: code that takes 0 for "no time" would pass here and fail on a real machine.
    monotonic: () => 1000 + elapsed,

    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) {
          reject(signal.reason)
          return
        }
        const abort = () => {
          sleepers = sleepers.filter((other) => other !== sleeper)
          reject(signal?.reason)
        }
        const sleeper: Sleeper = {
          at: elapsed + Math.max(0, ms),
          wake: () => {
            signal?.removeEventListener('abort', abort)
            resolve()
          },
        }
        signal?.addEventListener('abort', abort, { once: true })
        sleepers.push(sleeper)
      })
    },

    async advance(ms) {
      if (!(ms >= 0)) throw new RangeError(`Time goes forward only: advance(${ms}).`)
      const end = elapsed + ms
      for (;;) {
        await settle()
        const next = sleepers.reduce<Sleeper | undefined>(
          (first, sleeper) => (first === undefined || sleeper.at < first.at ? sleeper : first),
          undefined,
        )
        if (next === undefined || next.at > end) break
        sleepers = sleepers.filter((other) => other !== next)
        elapsed = Math.max(elapsed, next.at)
        next.wake()
      }
      elapsed = end
    },

    setNow(now) {
      start = now - elapsed
    },
  }
}

// A macrotask lets every chain of resolved promises run to its end, including those that go on to sleep again.
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve)
  })
}
