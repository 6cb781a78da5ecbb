import { cloneValue } from '../../codec/clone.js'
import { isDeepStrictEqual } from 'node:util'
import major from 'semver/functions/major.js'
import minor from 'semver/functions/minor.js'
import satisfies from 'semver/functions/satisfies.js'
import valid from 'semver/functions/valid.js'
import { IncompatibleError } from '../../core/errors.js'
import type { State } from '../../log/entry/ops.js'
import type { Migration, Migrations } from '../program/program.js'
import { isPlainObject } from '../program/state/reduce-key.js'
import type { Update } from '../program/state/state-shape.js'

/** The state in version `to`, migrated from version `from` by one migration after the other. */
export function migrateState(state: State, from: number, to: number, migrations: Migrations): State {
  checkNotNewer(from, to)
  // All of them before any is called, so that a missing one is found before user code has seen the state.
  const missing = versionsAfter(from, to).find((version) => !Object.hasOwn(migrations, version))
  if (missing !== undefined) throw migrationMissing(from, to, missing)
  // Migrations that change what they are given are common, and what is recorded must stay.
  let migrated = from === to ? state : cloneValue(state)
  for (const version of versionsAfter(from, to)) {
    const migration = migrations[version] as Migration
    const step = typeof migration === 'function' ? migration : migration.state
    migrated = call(() => step(migrated), 'state', { from, to, version })
  }
  return migrated
}

/**
 * A recorded update of version `from` as one of version `to`. If a migration says nothing about updates, one that
 * changes only what the migration leaves alone stays as it is; any other would be misread, and is refused.
 */
export function migrateUpdate(update: Update, from: number, to: number, migrations: Migrations): Update {
  checkNotNewer(from, to)
  const missing = versionsAfter(from, to).find((version) => !Object.hasOwn(migrations, version))
  if (missing !== undefined) throw migrationMissing(from, to, missing)
  let migrated = from === to ? update : (cloneValue(update as State) as Update)
  for (const version of versionsAfter(from, to)) {
    const migration = migrations[version] as Migration
    const step = typeof migration === 'function' ? undefined : migration.update
    if (step) migrated = call(() => step(migrated), 'update', { from, to, version })
    else checkUntouched(migrated, typeof migration === 'function' ? migration : migration.state, { from, to, version })
  }
  return migrated
}

function checkUntouched(update: Update, step: (state: State) => State, data: Data): void {
  const touched = findTouched(update, step)
  if (touched === undefined) return
  throw new IncompatibleError(
    `There is a change of "${touched}", whose meaning the migration to state version ${data.version} changes without saying how to migrate such a change.`,
    'update-not-migrated',
    `Say how to migrate it: migrations: { ${data.version}: { state, update: (update) => … } }.`,
    { ...data, key: touched },
  )
}

/** The first key of an update whose values a state migration does not leave as they are, as far as can be told. */
function findTouched(update: Update, step: (state: State) => State): string | undefined {
  const keys = Object.keys(update)
  if (keys.length === 0) return undefined
  try {
    const after: unknown = step(cloneValue(update as State))
    if (!isPlainObject(after)) return keys[0]
    return keys.find((key) => !Object.hasOwn(after, key) || !isDeepStrictEqual(after[key], update[key]))
  } catch {
    // It needs more of a state than an update has.
    return keys[0]
  }
}

/** Refuses what only a newer program can read. */
function checkNotNewer(from: number, to: number): void {
  if (from <= to) return
  throw new IncompatibleError(
    `The state has version ${from}, but this program knows versions up to ${to}.`,
    'state-too-new',
    'Run the newer version of the program on this thread, or fork from a checkpoint made before the upgrade.',
    { from, to },
  )
}

function migrationMissing(from: number, to: number, missing: number): IncompatibleError {
  return new IncompatibleError(
    `The state has version ${from} and this program needs ${to}, but no migration leads from ${missing - 1} to ${missing}.`,
    'migration-missing',
    `Add migrations: { ${missing}: (state) => … }, or run a version of the program with state version ${from}.`,
    { from, to, missing },
  )
}

type Data = {
  readonly from: number
  readonly to: number
  readonly version: number
}

function call<Result>(step: () => Result, what: string, data: Data): Result {
  let result: Result
  try {
    result = step()
  } catch (error) {
    throw new IncompatibleError(
      `The migration to state version ${data.version} failed: ${error instanceof Error ? error.message : String(error)}`,
      'migration-failed',
      'Fix the migration; nothing was written.',
      data,
    )
  }
  if (isPlainObject(result)) return result
  throw new IncompatibleError(
    `The migration to state version ${data.version} did not return an object.`,
    'migration-failed',
    `Return the whole ${what} in its new form, synchronously.`,
    data,
  )
}

/** Whether the current program may continue a thread recorded by this version. */
export function isCompatible(
  recorded: string,
  program: { readonly version: string; readonly compatibleWith: string | undefined },
): boolean {
  if (recorded === program.version) return true
  if (valid(recorded) === null) return false
  const range = program.compatibleWith ?? sameMajor(program.version)
  return satisfies(recorded, range, { includePrerelease: true })
}

// Both older and newer versions of the same major: programs are also rolled back. Below 1.0 the minor, below 0.1 every
// version may break, as in a caret range.
function sameMajor(version: string): string {
  if (major(version) > 0) return `^${major(version)}.0.0-0`
  return minor(version) > 0 ? `~0.${minor(version)}.0-0` : `=${version}`
}

function versionsAfter(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from }, (_, index) => from + index + 1)
}
