import type { ChildProcess } from 'node:child_process'
import { setTimeout } from 'node:timers/promises'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'

/** Stops a process, though not in the middle of a write: on SQLite everybody would wait for its lock. */
export async function freeze(child: ChildProcess, url: string): Promise<void> {
  const db = url.startsWith('sqlite:') ? (await loadSqlite())(url.slice('sqlite:'.length)) : undefined
  try {
    for (;;) {
      child.kill('SIGSTOP')
      await setTimeout(20)
      try {
        db?.exec('BEGIN IMMEDIATE; ROLLBACK')
        return
      } catch {
        child.kill('SIGCONT')
        await setTimeout(50)
      }
    }
  } finally {
    db?.close()
  }
}
