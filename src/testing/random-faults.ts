import { setTimeout as sleep } from 'node:timers/promises'
import type { ChaosFault, ChaosProxy } from './chaos-proxy.js'

export interface RandomFaultOptions {
  /** Default: all of them. */
  readonly faults?: readonly ChaosFault[]
  /** Healthy time between two faults, from and to. Default 50 to 300 ms. */
  readonly everyMs?: readonly [number, number]
  /** How long a fault that lasts (stall, half-open, slow, refuse) lasts, from and to. Default 20 to 200 ms. */
  readonly holdMs?: readonly [number, number]
}

export interface RandomFaults extends AsyncDisposable {
  readonly seed: number
  /** What was applied so far, in order: together with the seed, what a failed run has to report. */
  readonly applied: readonly ChaosFault[]
  /** Ends the faults and heals. Rejects if a fault could not be applied. */
  stop(): Promise<void>
}

const everyFault: readonly ChaosFault[] = ['cut', 'reset', 'stall', 'halfOpen', 'dropAfterRequest', 'slow', 'refuse']

/** The same seed gives the same faults with the same delays; which request each one hits is up to the machine. */
export function applyRandomFaults(
  proxy: ChaosProxy,
  seed: number,
  { faults = everyFault, everyMs = [50, 300], holdMs = [20, 200] }: RandomFaultOptions,
): RandomFaults {
  const random = seededRandom(seed)
  const between = ([from, to]: readonly [number, number]) => Math.round(from + random() * (to - from))
  const applied: ChaosFault[] = []
  const stopping = new AbortController()
  const pause = (ms: number) => sleep(ms, undefined, { signal: stopping.signal, ref: false }).catch(() => {})

  async function run(): Promise<void> {
    while (!stopping.signal.aborted && faults.length > 0) {
      await pause(between(everyMs))
      if (stopping.signal.aborted) return
      const fault = faults[Math.floor(random() * faults.length)] as ChaosFault
      // Drawn for every fault, needed or not, so that one kind of fault doesn't shift the sequence of the others.
      const hold = between(holdMs)
      const bytesPerSecond = between([500, 20_000])
      applied.push(fault)
      if (fault === 'cut' || fault === 'reset') proxy[fault]()
      else {
        if (fault === 'slow') proxy.slow({ bytesPerSecond })
        else if (fault === 'dropAfterRequest') void proxy.dropAfterRequest()
        else await proxy[fault]()
        await pause(hold)
        await proxy.heal()
      }
    }
  }

  const running = run()
  // Told by stop(); without this a failure before that would end the process instead.
  running.catch(() => {})
  async function stop(): Promise<void> {
    stopping.abort()
    await running
    await proxy.heal()
  }
  return { seed, applied, stop, [Symbol.asyncDispose]: stop }
}

/** mulberry32: small, seedable, and good enough to choose among faults. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}
