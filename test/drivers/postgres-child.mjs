// Another process for the Postgres tests.
//   node postgres-child.mjs open <url> <schema> <thread>    opens, creates a log of its own, closes
//   node postgres-child.mjs race <url> <schema> <count>     appends to one log until <count> of its entries landed, and
//                                                           prints [seq, hash, seq before, hash before] of each
//   node postgres-child.mjs hold <url> <schema> <ms>        claims a log, says so, and appends once at every line it
//                                                           reads, saying how that went
import { createInterface } from 'node:readline'
import { openPostgres } from '#src/drivers/postgres/open-postgres.js'
import { expectAfter, makeAppend, mustAppend } from '#src/testing/entries.js'

const [command, url, schema, argument] = process.argv.slice(2)
const driver = await openPostgres(url, { schema, poolSize: 2, connectTimeoutMs: 60_000 })
const say = (message) => console.log(JSON.stringify(message))

if (command === 'open') {
  await mustAppend(driver, makeAppend({ tenant: 't', thread: argument, branch: 'main' }, null))
  say('done')
}

if (command === 'race') {
  const log = { tenant: 't', thread: 'race', branch: 'main' }
  let head = await driver.head(log)
  for (let done = 0; done < Number(argument); ) {
    const append = makeAppend(log, head ?? null)
    const [result] = await driver.append([append])
    if (result.status === 'appended') {
      const [{ seq, hash }] = append.entries
      say([seq, hash, head?.seq ?? -1, head?.hash ?? ''])
      head = expectAfter(append)
      done++
    } else {
      head = result.head
    }
  }
}

if (command === 'hold') {
  const log = { tenant: 't', thread: 'held', branch: 'main' }
  const claim = { kind: 'claim', owner: 'first', ms: Number(argument), force: false }
  let head = await mustAppend(driver, makeAppend(log, null, { lease: claim }))
  say('claimed')
  for await (const _line of createInterface({ input: process.stdin })) {
    const append = makeAppend(log, head, { lease: { kind: 'extend', ms: Number(argument) } })
    const [result] = await driver.append([append])
    say({ status: result.status, epoch: result.head?.epoch })
    if (result.status === 'appended') head = expectAfter(append)
  }
}

await driver.close()
