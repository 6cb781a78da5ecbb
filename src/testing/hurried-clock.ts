import { type Clock, systemClock } from '../driver.js'

/**
 * A clock by which intervals pass so many times as fast, for the process that runs a thread and not for the store. It
 * looks after its lease every few hundred milliseconds, and the lease in the store is as long as it was asked for: a
 * machine that stands still for seconds does not lose it, and no test has to wait for a third of a long one.
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
