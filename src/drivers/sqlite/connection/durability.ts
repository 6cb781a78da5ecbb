import type { Survives } from '../../../log/contract.js'
import type { OpenedDatabase } from '../protocol.js'

const LEVELS = ['OFF', 'NORMAL', 'FULL', 'EXTRA']

/** By then the operating system has written what it was given, whether anybody synced it or not (Linux: 30 s + 5 s). */
const WRITE_BACK_MS = 35_000

/** What a commit survives under the settings that SQLite reports, which need not be those that were asked for. */
export function describeDurability({ journalMode, synchronous, sqliteVersion }: OpenedDatabase): Survives {
  const level = LEVELS[synchronous] ?? String(synchronous)
  const wal = journalMode === 'wal'
  const settings = { journal_mode: journalMode, synchronous: level, sqlite_version: sqliteVersion }
  const fallback = wal ? '' : ` WAL is not available on this file system; the journal mode is ${journalMode}.`
  // In WAL mode every FULL commit is synced; with a rollback journal the sync of its deletion needs EXTRA.
  if (synchronous >= (wal ? 2 : 3)) {
    return {
      processKill: 'yes',
      osCrash: 'yes',
      powerLoss: 'yes',
      failover: 'not-applicable',
      settings,
      note: `Every acknowledged append was synced to the disk before it was acknowledged.${fallback}`,
    }
  }
  return {
    processKill: 'yes',
    osCrash: 'recent-loss',
    powerLoss: 'recent-loss',
    failover: 'not-applicable',
    lossWindowMs: WRITE_BACK_MS,
    settings,
    note:
      'An acknowledged append survives the end of the process; when the machine goes down, those that the operating ' +
      `system had not yet written may be lost, newest first, and the file stays whole.${fallback}`,
  }
}
