// @ts-check
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { openHoldfast } from 'holdfast'
import { queueInput } from './queue-input.mjs'
import { seededRandom } from './random.mjs'
import { connectService } from './service-client.mjs'
import { startFleet, startService } from './worker-fleet.mjs'
import { makeWorkerPrograms } from './worker-programs.mjs'

/** @typedef {{ url: string, kills: number, workers?: number, leaseMs?: number, seed?: number, threads?: number, onProgress?: (done: number) => void }} TakeoverOptions */

/**
 * Kills a worker in the middle of its steps, which end only after the kill, again and again, and waits until others
 * have taken all of its threads over. Every thread goes on at the next epoch with another owner, and ends. Returns how
 * long after the kill the entries were written that took them over.
 * @param {TakeoverOptions} options
 */
export async function takeoverRound({ url, kills, workers = 3, leaseMs = 2000, seed = 1, threads = 6, onProgress }) {
  const random = seededRandom(seed)
  const service = await startService()
  const hf = await openHoldfast(url)
  const outside = connectService(service.url)
  const { slow } = makeWorkerPrograms({ service: service.url })
  const fleet = startFleet({ url, service: service.url, leaseMs, pollMs: 500, maxCrashes: 1000 })
  /** @type {number[]} */
  const afterKill = []
  try {
    await Promise.all(Array.from({ length: workers }, () => fleet.add()))
    // A round in which others had the threads before the kill came does not count. Whoever calls this limits its time.
    for (let round = 0, done = 0; done < kills; round++) {
      let takenOver = 0
      const names = Array.from({ length: threads }, (_, i) => `round-${round}-${i}`)
      const hold = `round ${round}`
      await Promise.all(names.map((name) => queueInput(hf, slow, name, { session: name, hold })))
      const { victim, inside } = await untilInTheMiddle(fleet.workers, outside)
      await sleep(random() * 300)
      const killedAt = Date.now()
      await fleet.kill(victim)
      await outside.release(hold)
      const held = [...victim.holds]
      await fleet.add()
      for (const name of names) {
        const outcome = await hf.inspect(name).waitFor({ timeoutMs: leaseMs + 60_000 })
        assert.equal(outcome.status, 'completed', `${name} completed`)
        const { after } = /** @type {any} */ (outcome).output
        if (held.includes(name)) assert.notEqual(after, victim.name, `${name} was ended by another`)
      }
      for (const name of held) {
        const taken = await nextOwner(hf, name, killedAt)
        // Taken but not yet claimed when the kill came.
        if (!inside.includes(name) && taken?.epochBefore === 0) continue
        // On a machine that stands still for a lease, others have it before the kill comes.
        if (taken === undefined) continue
        takenOver++
        // Nearly always the next; one who claims and then stands still for a lease leaves no entry of its epoch.
        assert.ok(taken.epoch > taken.epochBefore, `${name} went on at a later epoch`)
        afterKill.push(taken.at - killedAt)
      }
      if (takenOver > 0) done++
      onProgress?.(done)
    }
    await fleet.stop()
    afterKill.sort((a, b) => a - b)
    const at = (/** @type {number} */ part) =>
      afterKill[Math.min(afterKill.length - 1, Math.floor(afterKill.length * part))] ?? 0
    return { kills, takenOver: afterKill.length, afterKillMs: { p50: at(0.5), p99: at(0.99), most: at(1) } }
  } finally {
    await fleet.abandon()
    await service.stop()
    await hf.close()
  }
}

/**
 * The worker that is in the middle of most steps, and their threads: the service has their calls.
 * @param {readonly import('./worker-fleet.mjs').FleetWorker[]} workers @param {ReturnType<typeof connectService>} service
 */
async function untilInTheMiddle(workers, service) {
  for (;;) {
    const called = new Set((await service.ledger()).effects.map(({ session }) => session))
    const [busiest] = workers
      .map((victim) => ({ victim, inside: [...victim.holds].filter((name) => called.has(name)) }))
      .sort((a, b) => b.inside.length - a.inside.length)
    if (busiest && busiest.inside.length > 0) return busiest
    await sleep(20)
  }
}

/** The first entry of the next epoch after a time. @param {import('holdfast').Holdfast} hf @param {string} name @param {number} killedAt */
async function nextOwner(hf, name, killedAt) {
  const history = (await (await hf.log(name)).history({ limit: 100 })).map(({ header }) => header).reverse()
  const at = history.findIndex((header, i) => header.at >= killedAt && header.epoch !== history[i - 1]?.epoch)
  const entry = history[at]
  return entry && { at: entry.at, epoch: entry.epoch, epochBefore: history[at - 1]?.epoch ?? 0 }
}
