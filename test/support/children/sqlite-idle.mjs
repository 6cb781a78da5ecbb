// Leaves a driver open and ends. With "pending" it leaves an append under way, whose end it must live to see.
//   node sqlite-idle.mjs <file> [pending]
import { openSqlite } from '#src/drivers/sqlite/open-sqlite.js'
import { makeAppend } from '#src/testing/entries.js'

const [file, pending] = process.argv.slice(2)
const driver = await openSqlite(file)
const log = { tenant: 't', thread: 'idle', branch: 'main' }
if (pending) {
  driver.append([makeAppend(log, null)]).then(([result]) => console.log(result.status))
} else {
  await driver.head(log)
  console.log('idle')
}
