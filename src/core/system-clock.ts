import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { Clock } from './clock.js'

/** The machine's own clock. */
export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic: () => Number(process.hrtime.bigint() / 1000n) / 1000,
    bootId: readBootId(),
    sleep: async (ms, signal) => {
      try {
        await delay(ms, undefined, signal ? { signal } : {})
      } catch (error) {
        // Node wraps the reason in an error of its own; who waits asks for the reason itself.
        throw signal?.aborted ? signal.reason : error
      }
    },
  }
}

// Without an id of the boot itself, the host's name stands in. A lease then outlives a reboot at most by its own
// length, because a deadline further away than the lease it was granted for counts as expired.
function readBootId(): string {
  try {
    if (process.platform === 'linux') return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    if (process.platform === 'darwin') {
      return execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' }).trim()
    }
  } catch {
    // A sandbox may hide both; the fallback below is safe.
  }
  return `host:${hostname()}`
}
