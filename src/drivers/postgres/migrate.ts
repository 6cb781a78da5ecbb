import { SchemaTooNewError } from '../../core/errors.js'
import { MIGRATIONS, readMigration } from './migrations.js'
import type { Settings } from './options.js'
import type { Row, Sessions, Statement } from './connection/sessions.js'

type Query = (statement: Statement) => Promise<readonly Row[]>

/** A migration may have to rewrite large tables, and nineteen other processes may wait for it. */
const MIGRATION_TIMEOUT_MS = 120_000

/**
 * Updates the schema. A schema that is up to date is only read, so a role without permission to create anything can
 * work with it. Otherwise one process at a time proceeds, under a lock that ends with its transaction.
 */
export async function migrate(sessions: Sessions, settings: Settings): Promise<void> {
  if (await isUpToDate((statement) => sessions.read(statement), settings)) return
  while (!(await sessions.transaction(MIGRATION_TIMEOUT_MS, (query) => applyMigrations(query, settings))));
}

/** Returns whether all are applied. */
async function applyMigrations(query: Query, settings: Settings): Promise<boolean> {
  // First of all: `CREATE SCHEMA IF NOT EXISTS` in two sessions at once fails in one of them.
  await query({
    text: 'SELECT pg_advisory_xact_lock(hashtextextended($1, 0))',
    values: [`holdfast migrate ${settings.schema}`],
  })
  if (await isUpToDate(query, settings)) return true
  await createSchema(query, settings)
  const done = await appliedVersions(query, settings)
  const open = MIGRATIONS.filter(({ version }) => !done.has(version))
  for (const [i, migration] of open.entries()) {
    if (migration.after && i > 0) return false
    const sql = await readMigration(migration, settings.quotedSchema)
    // The version row before the change: anyone who got past the lock somehow collides here and not halfway.
    await query({
      text: `INSERT INTO ${settings.quotedSchema}.migrations (version, name, breaking) VALUES ($1, $2, $3)`,
      values: [migration.version, migration.file, migration.breaking],
    })
    await query({ text: sql, values: [] })
  }
  return true
}

async function isUpToDate(query: Query, settings: Settings): Promise<boolean> {
  const [row] = await query({
    text: 'SELECT to_regclass($1) IS NOT NULL',
    values: [`${settings.quotedSchema}.migrations`],
  })
  if (row?.[0] !== 't') return false
  const versions = await appliedVersions(query, settings)
  return MIGRATIONS.every(({ version }) => versions.has(version))
}

/** Refuses a schema that was changed by newer code in a way that we don't understand. */
async function appliedVersions(query: Query, settings: Settings): Promise<ReadonlySet<number>> {
  const rows = await query({ text: `SELECT version, breaking FROM ${settings.quotedSchema}.migrations`, values: [] })
  const supported = Math.max(...MIGRATIONS.map(({ version }) => version))
  const breaking = rows.filter(([version, breaks]) => Number(version) > supported && breaks === 't')
  if (breaking.length > 0) {
    const found = Math.max(...breaking.map(([version]) => Number(version)))
    throw new SchemaTooNewError(`The Postgres schema "${settings.schema}"`, { found, supported })
  }
  return new Set(rows.map(([version]) => Number(version)))
}

async function createSchema(query: Query, settings: Settings): Promise<void> {
  // Looked up, because "IF NOT EXISTS" requires permission to create schemas even if there is nothing to create.
  const [row] = await query({ text: 'SELECT to_regnamespace($1) IS NOT NULL', values: [settings.quotedSchema] })
  if (row?.[0] !== 't') await query({ text: `CREATE SCHEMA ${settings.quotedSchema}`, values: [] })
  await query({
    text: `CREATE TABLE IF NOT EXISTS ${settings.quotedSchema}.migrations (
      version integer PRIMARY KEY,
      name text NOT NULL,
      breaking boolean NOT NULL,
      applied_at timestamptz NOT NULL DEFAULT now()
    )`,
    values: [],
  })
}
