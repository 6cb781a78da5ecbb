// @ts-check
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { isHoldfastError, openHoldfast } from 'holdfast'
import { queueInput } from './queue-input.mjs'
import { seededRandom } from './random.mjs'
import { connectService } from './service-client.mjs'
import { makePrograms } from './session-programs.mjs'
import { makeUserRows } from './user-rows.mjs'
import { startFleet, startService } from './worker-fleet.mjs'

/** @typedef {{ url: string, sessions: number, workers?: number, seed?: number, killEveryMs?: number, leaseMs?: number, concurrency?: number, longestMs?: number, onProgress?: (done: number, kills: number) => void }} SessionsOptions */

const QUEUED_AT_ONCE = 300
const ANSWERED_AT_ONCE = 20
const CHECKED_AT_ONCE = 20
const SLEEP_MS = 1500
const STEPS = ['pay', 'ship', 'mail']

/**
 * Runs sessions to their end while their workers are killed, answers from the service's own truth what only a person
 * can, and then compares what the logs, the service, the user's table and the store say. Throws on the first thing that
 * is not as promised.
 * @param {SessionsOptions} options
 */
export async function runSessions({
  url,
  sessions,
  workers = 3,
  seed = 1,
  killEveryMs = 1500,
  leaseMs = 2000,
  concurrency = 20,
  longestMs = 3_600_000,
  onProgress,
}) {
  const random = seededRandom(seed)
  const began = Date.now()
  const service = await startService(seed)
  const hf = await openHoldfast(url)
  const rows = await makeUserRows(hf, url)
  const programs = makePrograms({ service: service.url })
  const completed = new Set()
  const fleet = startFleet(
    {
      url,
      service: service.url,
      leaseMs,
      concurrency,
      pollMs: 200,
      // Killed so often, a thread without luck would count as one that kills its workers.
      maxCrashes: 1000,
      ...(rows === undefined ? {} : { table: rows.table, mark: rows.mark }),
    },
    (worker, event, thread, status) => {
      if (event === 'ended' && status === 'completed') completed.add(thread)
      if (event === 'taken') onTaken(worker)
    },
  )
  const names = Array.from({ length: sessions }, (_, i) => `s-${seed}-${i}`)
  const over = new AbortController()
  /** @type {(worker: import('./worker-fleet.mjs').FleetWorker | undefined) => void} */
  let onTaken = () => {}
  over.signal.addEventListener('abort', () => onTaken(undefined), { once: true })
  let kills = 0
  let answered = 0
  try {
    await Promise.all(Array.from({ length: workers }, () => fleet.add()))
    const killing = keepKilling()
    killing.catch(() => over.abort())
    await queueAll()
    for (;;) {
      const lookedAt = Date.now()
      // However late this process hears of it, one was killed with a thread in its hands.
      if (over.signal.aborted || (kills > 0 && (await isAllOver()))) break
      answered += await answerPauses(hf, connectService(service.url))
      onProgress?.(completed.size, kills)
      assert.ok(Date.now() - began < longestMs, `${names.length - completed.size} sessions hang after ${longestMs} ms`)
      // Looking must not take the time that the workers need: files have no index.
      await sleep(Math.max(250, 4 * (Date.now() - lookedAt)))
    }
    over.abort()
    await killing
    const ranMs = Date.now() - began
    await fleet.stop()
    onProgress?.(names.length, kills)
    const checked = await checkSessions({ hf, names, service: service.url, rows })
    await rows?.drop()
    return { sessions, kills, answered, ranMs, tookMs: Date.now() - began, ...checked }
  } finally {
    over.abort()
    await fleet.abandon()
    await service.stop()
    await hf.close()
  }

  async function queueAll() {
    for (let i = 0; i < names.length; i += QUEUED_AT_ONCE) {
      const part = names.slice(i, i + QUEUED_AT_ONCE)
      await Promise.all(
        part.map((session, at) => {
          const input = { session }
          if (at % 2 === 0)
            return queueInput(hf, programs.flow, session, at % 20 === 0 ? { ...input, sleepMs: SLEEP_MS } : input)
          return queueInput(hf, programs.graph, session, input)
        }),
      )
      onProgress?.(completed.size, kills)
    }
  }

  // A new worker takes the place of each that is killed, so that there are always as many.
  async function keepKilling() {
    for (let victim = await nextVictim(); victim !== undefined; victim = await nextVictim()) {
      await fleet.kill(victim)
      kills++
      await fleet.add()
      await sleep(killEveryMs * (0.5 + random()), undefined, { signal: over.signal }).catch(() => {})
    }
  }

  // One with threads in its hands. On a machine that needs longer than the pause between two kills to start a worker and
  // find its work, killing any would let none of them come to work, and the round would never end.
  async function nextVictim() {
    if (over.signal.aborted) return undefined
    const busy = fleet.workers.filter(({ holds }) => holds.size > 0)
    if (busy.length > 0) return busy[Math.floor(random() * busy.length)]
    return new Promise((resolve) => {
      onTaken = resolve
    })
  }

  // What workers said before they were killed may not be all; the index knows.
  async function isAllOver() {
    const { threads } = await hf.threads({ status: ['active', 'waiting', 'waiting_human'], limit: 1 })
    return threads.length === 0
  }
}

/**
 * Answers every open question about an effect from what the service knows.
 * @param {import('holdfast').Holdfast} hf @param {ReturnType<typeof connectService>} service
 */
async function answerPauses(hf, service) {
  const { threads } = await hf.threads({ status: 'waiting_human', limit: 500 })
  let answered = 0
  // One after another they would be what a large round waits for at its end.
  for (let i = 0; i < threads.length; i += ANSWERED_AT_ONCE) {
    await Promise.all(threads.slice(i, i + ANSWERED_AT_ONCE).map(({ thread }) => answerAll(hf.inspect(thread), thread)))
  }
  return answered

  /** @param {ReturnType<import('holdfast').Holdfast['inspect']>} view @param {unknown} thread */
  async function answerAll(view, thread) {
    for (const { id, kind, question } of await view.pauses()) {
      assert.equal(kind, 'unknown-effect', `${thread} waits for a person for no reason of policy`)
      const { idempotencyKey, effect } = /** @type {{ idempotencyKey: string, effect: string }} */ (question)
      assert.ok(effect === 'once' || effect === 'reconcilable', `an effect of kind ${effect} needs no person`)
      const truth = await service.outcome(idempotencyKey)
      try {
        await view.answer(
          id,
          truth.executed ? { outcome: 'succeeded', result: truth.receipt } : { outcome: 'not-executed' },
        )
        answered++
      } catch (error) {
        if (!isHoldfastError(error, 'pause-closed')) throw error
      }
    }
  }
}

/** @param {{ hf: import('holdfast').Holdfast, names: readonly string[], service: string, rows: Awaited<ReturnType<typeof makeUserRows>> }} options */
async function checkSessions({ hf, names, service, rows }) {
  const ledger = await connectService(service).ledger()
  /** @type {Map<string, string[]>} */
  const happened = new Map()
  for (const { session, step, receipt } of ledger.effects) {
    const place = `${session}/${step}`
    happened.set(place, [...(happened.get(place) ?? []), receipt])
  }
  const counts = await rows?.counts()
  let entries = 0
  for (let i = 0; i < names.length; i += CHECKED_AT_ONCE) {
    await Promise.all(
      names.slice(i, i + CHECKED_AT_ONCE).map(async (name) => {
        const outcome = await hf.inspect(name).waitFor({ timeoutMs: 0 })
        assert.equal(outcome.status, 'completed', `${name} ${JSON.stringify(outcome)}`)
        const { receipts } = /** @type {any} */ (outcome).output
        for (const step of STEPS) {
          assert.deepEqual(
            happened.get(`${name}/${step}`),
            [receipts[step]],
            `${name}/${step} happened once, as recorded`,
          )
        }
        if (counts) assert.equal(counts.get(name), 1, `${name} has one row`)
        const item = await hf.store.scope({ session: name }).collection('seen').get('look')
        assert.deepEqual(item?.value, { session: name }, `${name} has its item in the store`)
        const verification = await hf.verify(name)
        assert.deepEqual(verification?.problems, [], `${name} verifies`)
        entries += verification?.entries ?? 0
      }),
    )
  }
  assert.equal(ledger.effects.length, names.length * STEPS.length, 'nothing happened that belongs to no session')
  return {
    entries,
    effects: ledger.effects.length,
    calls: ledger.calls.length,
    rows: counts?.size ?? 0,
    faults: ledger.faults,
  }
}
