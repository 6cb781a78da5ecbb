// @ts-check
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { openHoldfast } from 'holdfast'
import { spawnChild } from './spawn-child.mjs'

/** @typedef {{ thread: string, seq: number, hash: string }} Acknowledgement */

/**
 * A child that appends to four threads until it is killed, and what it was told so far.
 * @param {string} url @param {string} prefix
 */
export function startAppender(url, prefix) {
  /** @type {Acknowledgement[]} */
  const acknowledged = []
  const appender = spawnChild(['append', url, prefix], {
    onLine: (text) => {
      const [word, thread = '', seq, hash = ''] = text.split(' ')
      if (word === 'ack') acknowledged.push({ thread, seq: Number(seq), hash })
    },
  })
  return { ...appender, acknowledged }
}

/**
 * Opens the store after a crash: every thread verifies and can be taken over at once. Returns the acknowledged entries
 * that are not there.
 * @param {string} url @param {string} prefix @param {readonly Acknowledgement[]} acknowledged
 * @returns {Promise<Acknowledgement[]>}
 */
export async function findLost(url, prefix, acknowledged) {
  /** @type {Acknowledgement[]} */
  const lost = []
  const hf = await openHoldfast(url)
  try {
    for (let i = 0; i < 4; i++) {
      const thread = `${prefix}-${i}`
      const log = await hf.log(thread)
      const kept = new Map()
      if (log.exists) {
        assert.deepEqual((await hf.verify(thread))?.problems, [], `${thread} verifies after the crash`)
        for await (const entry of log.entries()) kept.set(entry.header.seq, entry.hash)
      }
      lost.push(...acknowledged.filter((ack) => ack.thread === thread && kept.get(ack.seq) !== ack.hash))
      await log.claim({ owner: 'checker', ms: 1000, force: true })
    }
  } finally {
    await hf.close()
  }
  return lost
}

/**
 * One round: a child appends and prints each acknowledgement, is killed with SIGKILL at a random moment after it printed
 * this, and what it was told is compared with what the store holds.
 * @param {{ url: string, prefix: string, after?: 'ready' | 'ack', longestMs?: number }} options
 */
export async function crashRound({ url, prefix, after = 'ready', longestMs = 400 }) {
  const { child, exited, errors, line, acknowledged } = startAppender(url, prefix)
  await line(after)
  await sleep(Math.random() * longestMs)
  child.kill('SIGKILL')
  assert.equal(await exited, null, `the child ended by itself: ${errors()}`)
  assert.deepEqual(await findLost(url, prefix, acknowledged), [], 'every acknowledged entry is there')
  return { acknowledged: acknowledged.length }
}

/**
 * One round: a child inserts rows of its own and records each in the same transaction, is killed with SIGKILL at a
 * random moment after it printed this, and what the table holds is compared with what the log does.
 * @param {{ url: string, thread: string, table: string, readIds: () => Promise<string[]>, after?: 'ready' | 'ack',
 *   longestMs?: number }} options
 */
export async function transactRound({ url, thread, table, readIds, after = 'ready', longestMs = 250 }) {
  const { child, exited, errors, line, lines } = spawnChild(['transact', url, thread, table])
  await line(after)
  await sleep(Math.random() * longestMs)
  child.kill('SIGKILL')
  assert.equal(await exited, null, `the child ended by itself: ${errors()}`)
  const hf = await openHoldfast(url)
  try {
    // Takes the log over, which ends whatever the server may still be doing for the child.
    const { log } = await (await hf.log(thread)).claim({ owner: 'checker', ms: 1000, force: true })
    const recorded = /** @type {string[]} */ (log.fold.state.ids ?? [])
    assert.deepEqual(
      [...(await readIds())].sort(),
      [...recorded].sort(),
      'each row is recorded, each record has its row',
    )
    const acknowledged = lines.flatMap((text) => (text.startsWith('ack ') ? [text.slice('ack '.length)] : []))
    for (const id of acknowledged) assert.ok(recorded.includes(id), `${id} was acknowledged`)
    assert.deepEqual((await hf.verify(thread))?.problems, [])
    return { acknowledged: acknowledged.length, recorded: recorded.length }
  } finally {
    await hf.close()
  }
}

/**
 * Several processes append to one thread at the same time. The log is gap-free, holds every acknowledged append exactly
 * once, and its order is linearizable: what was acknowledged before another began has the lower seq.
 * @param {{ url: string, thread: string, processes?: number, count: number }} options
 */
export async function raceRound({ url, thread, processes = 2, count }) {
  const children = Array.from({ length: processes }, (_, i) =>
    spawnChild(['race', url, thread, `p${i}`, String(count)]),
  )
  const codes = await Promise.all(children.map(({ exited }) => exited))
  children.forEach(({ errors }, i) => assert.equal(codes[i], 0, errors()))
  const ops = children.flatMap(({ lines }) =>
    lines.map((line) => {
      const [, id, i, seq, start, end] = line.split(' ')
      return { name: `${id}-${i}`, seq: Number(seq), start: BigInt(start ?? 0), end: BigInt(end ?? 0) }
    }),
  )
  assert.equal(ops.length, processes * count)
  const hf = await openHoldfast(url)
  try {
    const log = await hf.log(thread)
    assert.deepEqual((await hf.verify(thread))?.problems, [])
    const items = /** @type {string[]} */ (log.fold.state.items)
    assert.equal(items.length, processes * count, 'every append is there exactly once')
    for (const { name, seq } of ops) assert.equal(items[seq], name, 'each is where its writer was told')
    checkLinearizable(ops)
    return { appends: ops.length, turns: countTurns(items) }
  } finally {
    await hf.close()
  }
}

/** @param {readonly { seq: number, start: bigint, end: bigint }[]} ops */
function checkLinearizable(ops) {
  const bySeq = [...ops].sort((a, b) => a.seq - b.seq)
  // Walking backwards, nothing later in the log may have ended before this one began.
  let earliestEnd = 2n ** 63n
  for (const op of bySeq.reverse()) {
    assert.ok(op.start < earliestEnd, `entry ${op.seq} began after a later entry had ended`)
    if (op.end < earliestEnd) earliestEnd = op.end
  }
}

/** How often the writers alternated: 1 per process means that nothing ever raced. @param {readonly string[]} items */
function countTurns(items) {
  return items.filter((item, i) => i === 0 || item.split('-')[0] !== items[i - 1]?.split('-')[0]).length
}

/** Many processes open a store that does not exist yet, at the same moment. @param {{ url: string, processes?: number }} options */
export async function openRound({ url, processes = 20 }) {
  const children = Array.from({ length: processes }, (_, i) => spawnChild(['open', url, String(i)]))
  const codes = await Promise.all(children.map(({ exited }) => exited))
  children.forEach(({ errors, lines }, i) => {
    assert.equal(codes[i], 0, errors())
    assert.deepEqual(lines, ['opened 0'])
  })
}

/**
 * A worker is frozen in mid-work, another takes its thread over when the lease has run out, and the first wakes up: it
 * changes nothing any more.
 * @param {{ url: string, thread: string, leaseMs?: number }} options
 */
export async function fenceRound({ url, thread, leaseMs = 300 }) {
  const frozen = spawnChild(['hold', url, thread, String(leaseMs)])
  assert.equal(await frozen.line('claimed'), 'claimed 1')
  const hf = await openHoldfast(url)
  try {
    frozen.child.kill('SIGSTOP')
    const log = await hf.log(thread)
    const claim = await claimWhenFree(log, leaseMs)
    assert.equal(claim.epoch, 2)
    await claim.update(() => [{ kind: 'step', ops: [['push', ['items'], ['second']]] }])
    frozen.child.kill('SIGCONT')
    const refused = frozen.line('refused')
    frozen.child.stdin.write('late\n')
    assert.equal(await refused, 'refused fenced')
    assert.deepEqual((await hf.log(thread)).fold.state.items, ['first', 'second'])
    assert.deepEqual((await hf.verify(thread))?.problems, [])
  } finally {
    frozen.child.kill('SIGKILL')
    await frozen.exited
    await hf.close()
  }
}

/** @param {import('holdfast/log').Log} log @param {number} leaseMs */
async function claimWhenFree(log, leaseMs) {
  const deadline = Date.now() + leaseMs + 60_000
  for (;;) {
    try {
      return await log.claim({ owner: 'successor', ms: 10_000 })
    } catch (error) {
      const held = /** @type {{ code?: string, data?: { remainingMs: number } }} */ (error)
      if (held.code !== 'held' || Date.now() > deadline) throw error
      await sleep(Math.min(held.data?.remainingMs ?? 50, 100))
    }
  }
}
