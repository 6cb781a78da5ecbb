// A process of its own for the tests of the file driver: does one operation and ends, stops or is killed in the
// middle of it. What it reports is written at once, so that it is known also of a process that is killed next.
import { writeSync } from 'node:fs'
import { openFile } from '#src/drivers/file/open-file.js'
import { expectAfter, makeAppend, makeBytes, makeHash } from '#src/testing/entries.js'
import { itemOperations } from './file-child-items.mjs'

const {
  folder,
  operation,
  log,
  signal,
  skip = [],
  at = 0,
  count = 0,
  name = 'child',
  fsync = true,
} = JSON.parse(process.argv[2])

/** How often the operation passed a fault point; -1 before it begins. */
let passed = -1

function report(message) {
  writeSync(1, `${JSON.stringify(message)}\n`)
}

function faults(point) {
  if (passed < 0 || skip.includes(point) || ++passed !== at) return
  report({ at: point })
  process.kill(process.pid, signal)
}

const claim = { kind: 'claim', owner: name, ms: 60_000, force: false }

const operations = {
  ...itemOperations({ log, name, count, report }),

  async append(driver, head) {
    return appendOne(driver, makeAppend(log, head, { count: 2, seed: name }))
  },
  async create(driver) {
    return appendOne(driver, makeAppend({ ...log, thread: 'new' }, null, { count: 2, seed: name, incarnation: name }))
  },
  async fork(driver, head) {
    const requires = { branch: log.branch, incarnation: head.incarnation }
    return appendOne(driver, makeAppend({ ...log, branch: 'fork' }, null, { seed: name, incarnation: name, requires }))
  },
  async claim(driver, head) {
    return appendOne(driver, makeAppend(log, head, { seed: name, lease: claim }))
  },
  renew: (driver, head) => driver.renew(log, head.incarnation, head.epoch, 60_000),
  prune: (driver, head) => driver.prune(log, head.incarnation, head.seq - 1),
  reindex: (driver, head) => driver.reindex(log, head, { ...head.index, status: 'reindexed' }),
  erase: (driver) => driver.erase({ tenant: log.tenant, thread: log.thread, tombstone: null }),
  bury: (driver) => driver.erase({ tenant: log.tenant, thread: log.thread, tombstone: { at: 1, reason: 'test' } }),
  blob: (driver) => driver.putBlobs(log.tenant, [{ hash: makeHash(name), bytes: makeBytes(name, 100) }]),

  /** Appends `count` times to a log that others append to as well, and reports what was acknowledged. */
  async race(driver, head) {
    let end = head
    for (let i = 0; i < count; ) {
      const append = makeAppend(log, end, { count: 1 + (i % 3), seed: `${name}-${i}`, keyframe: 0 })
      const [result] = await driver.append([append])
      if (result.status === 'conflict') {
        end = result.head
        continue
      }
      end = expectAfter(append)
      report({ acknowledged: append.entries.map((entry) => entry.hash) })
      i++
    }
  },
}

async function appendOne(driver, append) {
  const [result] = await driver.append([append])
  return result.status
}

try {
  const driver = await openFile(folder, { faults, fsync })
  const head = await driver.head(log)
  passed = 0
  const result = await operations[operation](driver, head)
  const points = passed
  passed = -1
  await driver.close()
  report({ result: result ?? 'done', points })
} catch (error) {
  report({ error: error.code ?? String(error), data: error.data, message: error.message })
}
