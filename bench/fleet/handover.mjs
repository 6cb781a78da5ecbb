// @ts-check
import { setTimeout as sleep } from 'node:timers/promises'
import { openHoldfast } from 'holdfast'
import { machineMs, makePrograms } from './program.mjs'
import { startWorker } from './worker-child.mjs'

/** What one worker holds when it leaves: all of its places. */
const THREADS = 10
/** What the other one has run before: in a fleet, nobody is new to the work. */
const WARM_UP = 50
/** How long they walk before their worker leaves: long enough for all to be at it, and no story to read. */
const WALK_MS = 50

/**
 * How long threads wait that were in the middle of their steps when their worker left: from the signal until another worker
 * with free places takes the next step of each. With SIGTERM the first one records what it does and releases them; after
 * SIGKILL the lease has to run out.
 * @param {string} url @param {{ signal: 'SIGTERM' | 'SIGKILL', rounds: number, leaseMs: number }} options
 */
export async function measureHandover(url, { signal, rounds, leaseMs }) {
  const hf = await openHoldfast(url)
  const { walking, short } = makePrograms(() => {}).programs
  /** @type {number[]} */
  const delays = []
  try {
    let holder = await startWorker(url, { leaseMs })
    // The first finds its programs uncompiled.
    for (let round = 0; round <= rounds; round++) {
      const ids = Array.from({ length: THREADS }, (_, i) => round * THREADS + i)
      const taken = holder.hearAll(ids)
      await hf.enqueue(ids.map((id) => ({ program: walking, thread: `walking ${id}`, input: id })))
      await taken
      const next = await startWorker(url, { leaseMs })
      const first = Array.from({ length: WARM_UP }, (_, i) => round * WARM_UP + i)
      await hf.enqueue(first.map((id) => ({ program: short, thread: `short ${id}`, input: id })))
      await Promise.all(first.map((id) => hf.thread(short, `short ${id}`).waitFor()))
      const heard = next.hearAll(ids)
      holder.walk()
      await sleep(WALK_MS)
      const left = machineMs()
      holder.kill(signal)
      for (const at of await heard) if (round > 0) delays.push(at - left)
      await holder.exited
      holder = next
      await Promise.all(ids.map((id) => hf.thread(walking, `walking ${id}`).cancel()))
    }
    await holder.stop()
    return delays
  } finally {
    await hf.close()
  }
}
