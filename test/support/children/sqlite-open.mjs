// Opens a file, appends one entry to a log of its own, says so, closes.   node sqlite-open.mjs <file> <thread>
import { openSqlite } from '#src/drivers/sqlite/open-sqlite.js'
import { makeAppend, mustAppend } from '#src/testing/entries.js'

const [file, thread] = process.argv.slice(2)
const driver = await openSqlite(file, { busyTimeoutMs: 60_000 })
await mustAppend(driver, makeAppend({ tenant: 't', thread, branch: 'main' }, null))
await driver.close()
console.log('done')
