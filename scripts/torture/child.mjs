// @ts-check
// A process that works on a store until it is done or killed. Every line it prints was true when it was printed.
//   node child.mjs append <url> <prefix>          appends to four threads for ever; prints "ack <thread> <seq> <hash>"
//   node child.mjs race <url> <thread> <id> <n>   n appends to one thread; prints "op <id> <i> <seq> <start> <end>"
//   node child.mjs open <url> <id>                opens the store and appends once; prints "opened <seq>"
//   node child.mjs transact <url> <thread> <table>  inserts rows and records them for ever; prints "ack <id>"
//   node child.mjs hold <url> <thread> <ms>       claims, appends, then appends whenever a line comes in on stdin
import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { isHoldfastError, openHoldfast } from 'holdfast'
import { ops } from 'holdfast/log'

const { push, set } = ops

const [mode, url, ...args] = process.argv.slice(2)
const say = (/** @type {string} */ line) => writeSync(1, `${line}\n`)
const modes = { append, race, open, hold, transact }

const hf = await openHoldfast(/** @type {string} */ (url))
await modes[/** @type {keyof typeof modes} */ (mode)](...args)
await hf.close()

/** @param {string} prefix */
async function append(prefix) {
  say('ready')
  await Promise.all([0, 1, 2, 3].map((i) => appendTo(`${prefix}-${i}`, i)))
}

/** @param {string} thread @param {number} i */
async function appendTo(thread, i) {
  const log = await hf.log(thread)
  // Half of the threads are run by a claim, whose lease the next process must not have to wait for: it forces.
  const writer = i % 2 === 0 ? log : await log.claim({ owner: `pid ${process.pid}`, ms: 10_000, force: true })
  for (let n = 0; ; n++) {
    const text = 'x'.repeat(2 ** Math.floor(Math.random() * 14))
    const { entries } = await writer.update(() => [{ kind: 'step', ops: [push('items', { n, text }), set('last', n)] }])
    for (const { seq, hash } of entries) say(`ack ${thread} ${seq} ${hash}`)
  }
}

/** @param {string} thread @param {string} id @param {string} count */
async function race(thread, id, count) {
  const log = await hf.log(thread)
  for (let i = 0; i < Number(count); i++) {
    const start = process.hrtime.bigint()
    const { entries } = await log.update(() => [{ kind: 'step', ops: [push('items', `${id}-${i}`)] }])
    say(`op ${id} ${i} ${entries[0]?.seq} ${start} ${process.hrtime.bigint()}`)
  }
}

/** @param {string} id */
async function open(id) {
  const log = await hf.log(`opener-${id}`)
  const { entries } = await log.update(() => [{ kind: 'step', ops: [set('id', id)] }])
  say(`opened ${entries[0]?.seq}`)
}

/** @param {string} thread @param {string} ms */
async function hold(thread, ms) {
  const log = await hf.log(thread)
  const claim = await log.claim({ owner: `pid ${process.pid}`, ms: Number(ms) })
  await claim.update(() => [{ kind: 'step', ops: [push('items', 'first')] }])
  say(`claimed ${claim.epoch}`)
  for await (const line of createInterface({ input: process.stdin })) {
    try {
      await claim.update(() => [{ kind: 'step', ops: [push('items', line)] }])
      say(`wrote ${line}`)
    } catch (error) {
      say(`refused ${isHoldfastError(error) ? error.code : String(error)}`)
    }
  }
}

/** @param {string} thread @param {string} table */
async function transact(thread, table) {
  const log = await hf.log(thread)
  const claim = await log.claim({ owner: `pid ${process.pid}`, ms: 10_000, force: true })
  say('ready')
  void disturb(thread)
  for (let n = 0; ; n++) {
    const id = `${process.pid}-${n}`
    await claim.transact(
      async (sql) => {
        await sql.query(`INSERT INTO ${table} (id, n) VALUES ('${id}', 0)`)
        // Most of the time is spent in the middle, which is where a kill should come.
        await sleep(Math.random() * 5)
        await sql.query(`UPDATE ${table} SET n = n + 1 WHERE id = '${id}'`)
        return id
      },
      (_, recorded) => [{ kind: 'step', ops: [push('ids', recorded)] }],
    )
    say(`ack ${id}`)
  }
}

/** Appends as a guest, so that the owner's transactions conflict. @param {string} thread */
async function disturb(thread) {
  const guest = await hf.log(thread)
  for (let n = 0; ; n++) {
    await guest.update(() => [{ kind: 'input', ops: [set('input', n)] }])
    await sleep(Math.random() * 20)
  }
}
