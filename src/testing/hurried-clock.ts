import { type Clock, systemClock } from '../driver.js'

/**
 * A clock on which intervals pass several times as fast, for the process that runs a thread and not for the store. The
 * process checks its lease every few hundred milliseconds, while the lease in the store is as long as requested: a
 * machine that stalls for seconds does not lose it, and no test has to wait for a third of a long one.
 */
export function hurriedClock(factor = 20): Clock {
  const system = systemClock()
  return {
    bootId: system.bootId,
    now: () => system.now(),
    monotonic: () => system.monotonic() * factor,
    sleep: (ms, signal) => system.sleep(ms / factor, signal),
  }
}
