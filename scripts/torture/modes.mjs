// @ts-check
import { openDriver } from 'holdfast/driver'
import { seconds } from '../table.mjs'
import { fleetRound } from './fleet-round.mjs'
import { crashRound, fenceRound, openRound, raceRound } from './log-rounds.mjs'
import { pollAmongIdle } from './idle-threads.mjs'
import { showProgress } from './progress.mjs'
import { runSessions } from './session-rounds.mjs'
import { runPipelines } from './pipeline-rounds.mjs'
import { takeoverRound } from './takeover-round.mjs'

/** @typedef {{ backend: string, storeUrl: (part: string) => string, rounds: number, sessions: number, idle: number, documents: number, workers: number, killEveryMs: number, leaseMs: number, concurrency: number, seed: number }} ModeSettings */
/** @typedef {{ backend: string, row: Record<string, string | number>, error?: unknown, [figure: string]: unknown }} ModeResult */

const modes = {
  log: tortureLog,
  sessions: tortureSessions,
  takeover: measureTakeover,
  idle: measureIdle,
  documents: torturePipeline,
  fleet: tortureFleet,
}

/** Runs one mode on one backend. A failure is part of the result. @param {keyof typeof modes} mode @param {ModeSettings} settings @returns {Promise<ModeResult>} */
export async function runMode(mode, settings) {
  const { backend } = settings
  try {
    return { backend, ...(await modes[mode](settings)) }
  } catch (error) {
    return { backend, row: {}, error }
  }
}

/** @param {ModeSettings} settings */
async function tortureLog({ backend, storeUrl, rounds }) {
  const started = Date.now()
  let acknowledged = 0
  for (let done = 0; done < rounds; done++) {
    // A new store every hundred rounds, so that it grows but the rounds stay quick.
    const url = storeUrl(`s${Math.floor(done / 100)}`)
    acknowledged += (await crashRound({ url, prefix: `r${done}` })).acknowledged
    if (done % 50 === 0) await fenceRound({ url, thread: `fenced-${done}` })
    if (done % 100 === 0) await raceRound({ url, thread: `raced-${done}`, processes: 3, count: 300 })
    if (done % 100 === 0) await openRound({ url: storeUrl(`open${done}`) })
    showProgress(backend, done + 1, rounds, `kills, ${acknowledged} acknowledged entries, none lost`)
  }
  return { row: { kills: rounds, acknowledged, lost: 0, took: seconds(Date.now() - started) } }
}

/** @param {ModeSettings} settings */
async function tortureSessions({ backend, storeUrl, sessions, workers, killEveryMs, leaseMs, concurrency, seed }) {
  const result = await runSessions({
    url: storeUrl('sessions'),
    sessions,
    workers,
    seed,
    killEveryMs,
    leaseMs,
    concurrency,
    onProgress: (done, kills) => showProgress(backend, done, sessions, `sessions, ${kills} kills`),
  })
  const { slow = 0, lostBefore = 0, lostAfter = 0, refused = 0 } = result.faults
  const row = {
    sessions,
    kills: result.kills,
    answered: result.answered,
    entries: result.entries,
    calls: result.calls,
    faults: slow + lostBefore + lostAfter + refused,
    effects: result.effects,
    twice: 0,
    rows: result.rows,
    ran: seconds(result.ranMs),
    'per second': (sessions / (result.ranMs / 1000)).toFixed(1),
  }
  return { row, ...result }
}

/** @param {ModeSettings} settings */
async function tortureFleet({ backend, storeUrl, sessions, workers, killEveryMs, leaseMs, seed }) {
  const result = await fleetRound({
    url: storeUrl('fleet'),
    sessions,
    workers,
    killEveryMs,
    leaseMs,
    seed,
    onProgress: (done, kills) => showProgress(backend, done, sessions, `conversations, ${kills} kills`),
  })
  const { turns, kills, takeovers, takeoverMsP50, takeoverMsP99, effects, turnsPerSecond } = result
  const row = {
    conversations: sessions,
    turns,
    kills,
    takeovers,
    'takeover p50': `${takeoverMsP50 ?? '-'} ms`,
    'takeover p99': `${takeoverMsP99 ?? '-'} ms`,
    effects,
    lost: 0,
    twice: 0,
    ran: seconds(result.seconds * 1000),
    'turns per second': turnsPerSecond,
  }
  return { row, ...result }
}

/** @param {ModeSettings} settings */
async function torturePipeline({ backend, storeUrl, documents, workers, concurrency, leaseMs, seed }) {
  const result = await runPipelines({
    url: storeUrl('pipeline'),
    documents,
    chunks: 20,
    workers,
    concurrency,
    leaseMs,
    seed,
    onProgress: (rows, all, kills) => showProgress(backend, rows, all, `chunks, ${kills} kills`),
  })
  const { chunks, kills, embedded, peakMb, memory, ms } = result
  const row = {
    documents,
    chunks,
    kills,
    twice: 0,
    lost: 0,
    embedded,
    'MB first quarter': memory?.firstMb ?? '',
    'MB last quarter': memory?.lastMb ?? '',
    'peak MB': peakMb,
    took: seconds(ms),
    'chunks per second': Math.round(chunks / (ms / 1000)),
  }
  return { row, ...result }
}

/** @param {ModeSettings} settings */
async function measureTakeover({ backend, storeUrl, rounds, workers, leaseMs, seed }) {
  const result = await takeoverRound({
    url: storeUrl('takeover'),
    kills: rounds,
    workers,
    leaseMs,
    seed,
    onProgress: (done) => showProgress(backend, done, rounds, 'kills'),
  })
  const { p50, p99, most } = result.afterKillMs
  return {
    row: {
      kills: rounds,
      threads: result.takenOver,
      lease: `${leaseMs} ms`,
      p50: `${p50} ms`,
      p99: `${p99} ms`,
      max: `${most} ms`,
    },
    ...result,
  }
}

/** @param {ModeSettings} settings */
async function measureIdle({ backend, storeUrl, idle }) {
  const driver = await openDriver(storeUrl('idle'))
  try {
    const result = await pollAmongIdle(driver, idle, (done) => showProgress(backend, done, idle, 'threads at rest'))
    const ms = (/** @type {number[]} */ times, /** @type {number} */ part) =>
      `${times[Math.floor(times.length * part)]?.toFixed(2)} ms`
    const row = {
      idle,
      made: seconds(result.madeMs),
      found: result.found,
      'p50 alone': ms(result.emptyMs, 0.5),
      'p90 alone': ms(result.emptyMs, 0.9),
      'p50 among them': ms(result.idleMs, 0.5),
      'p90 among them': ms(result.idleMs, 0.9),
    }
    return { row, ...result }
  } finally {
    await driver.close()
  }
}
