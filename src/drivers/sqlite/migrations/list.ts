import type { Migration } from '../connection/migrate.js'
import { createTables } from './0001-create-tables.js'
import { createItems } from './0002-create-items.js'
import { findDue } from './0003-find-due.js'
import { takeTurns } from './0004-take-turns.js'
import { updateByMinute } from './0005-update-by-minute.js'

/** In order, forever: a migration that was released is never changed, the next one mends it. */
export const MIGRATIONS: readonly Migration[] = [createTables, createItems, findDue, takeTurns, updateByMinute]
