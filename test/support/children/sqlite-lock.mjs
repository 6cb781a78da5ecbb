// Holds the write lock of a file from when it prints "locked" until its input ends.   node sqlite-lock.mjs <file>
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'

const sqlite = (await loadSqlite())(process.argv[2])
sqlite.exec('BEGIN IMMEDIATE')
console.log('locked')
process.stdin.resume()
process.stdin.on('end', () => {
  sqlite.exec('ROLLBACK')
  sqlite.close()
})
