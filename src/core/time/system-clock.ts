import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Clock } from './clock.js'
import { onAbort } from '../async/on-abort.js'

/** The machine's own clock. */
export function systemClock(): Clock {
  return {
    now: () => Date.now(),
    monotonic,
    bootId: readBootId(),
    canBeWrong: true,
    sleep: systemSleep,
  }
}

// Counted from the same moment in all processes of a machine, as leases need; performance.now() is not.
function monotonic(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1000 + Math.floor(nanoseconds / 1000) / 1000
}

/** Timers set to more than this fire immediately. */
export const LONGEST_MS = 2 ** 31 - 1

// Rejects with the reason itself. Node's own sleep creates an error with a stack each time, and most sleeps here are
// time limits that end early.
export function systemSleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const timer = setTimeout(
      () => {
        letGo()
        resolve()
      },
      Math.min(ms, LONGEST_MS),
    )
    const letGo = onAbort(signal, () => {
      clearTimeout(timer)
      reject(signal?.reason)
    })
  })
}

// Without a boot id, the host's name stands in. A lease then outlives a reboot at most by its own length, because a
// deadline further away than the lease it was granted for counts as expired.
function readBootId(): string {
  try {
    if (process.platform === 'linux') return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    if (process.platform === 'darwin') {
      // Loaded only where it is needed: it takes longer than anything else here.
      const { execFileSync } = process.getBuiltinModule('node:child_process')
      return execFileSync('sysctl', ['-n', 'kern.bootsessionuuid'], { encoding: 'utf8' }).trim()
    }
  } catch {
    // A sandbox may hide both; the fallback below is safe.
  }
  return `host:${hostname()}`
}
