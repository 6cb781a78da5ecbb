// Reads the head of one log, prints "ready" and waits for a line. Then appends until this many of its own entries landed,
// trying again after each conflict. Prints for each entry [seq, hash, seq before, hash before] and, at the end, how often
// it lost.
//   node sqlite-race.mjs <file> <count>
import { once } from 'node:events'
import { openSqlite } from '#src/drivers/sqlite/open-sqlite.js'
import { makeAppend } from '#src/testing/entries.js'

const [file, count] = process.argv.slice(2)
const log = { tenant: 't', thread: 'race', branch: 'main' }
const driver = await openSqlite(file, { synchronous: 'normal', busyTimeoutMs: 60_000 })
let head = await driver.head(log)
console.log('ready')
await once(process.stdin, 'data')
process.stdin.destroy()
let conflicts = 0
for (let done = 0; done < Number(count); ) {
  const append = makeAppend(log, head ?? null)
  const [result] = await driver.append([append])
  if (result.status === 'appended') {
    const [{ seq, hash }] = append.entries
    console.log(JSON.stringify([seq, hash, head?.seq ?? -1, head?.hash ?? '']))
    head = { incarnation: append.incarnation, seq, hash, epoch: append.epoch }
    done++
  } else {
    conflicts++
    head = result.head
  }
}
console.log(JSON.stringify({ conflicts }))
await driver.close()
