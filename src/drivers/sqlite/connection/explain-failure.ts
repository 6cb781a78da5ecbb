import { access, constants, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import {
  CorruptError,
  HoldfastError,
  MissingDependencyError,
  SchemaTooNewError,
  StorageError,
  TooLargeError,
  TransactionError,
  UnavailableError,
} from '../../../core/errors.js'
import { timedOut } from '../../shared/run-transaction.js'
import { ownTables } from '../../shared/sql-check.js'
import { type Failure, SQLITE } from './failure.js'

const MAX_ROW_BYTES = 1_000_000_000
/** SQLite needs room for a few pages to do anything at all. */
const FULL_BELOW_BYTES = 64 * 1024

/**
 * The typed error for a failure. SQLite's codes are coarse, so the file system is asked what really went wrong: after
 * the failure, for the message alone.
 */
export async function explainFailure(failure: Failure, path: string): Promise<HoldfastError> {
  switch (failure.kind) {
    case 'no-engine':
      return new MissingDependencyError(failure.package, `npm install ${failure.package}`, {
        cause: new Error(failure.message),
      })
    case 'foreign':
      return new StorageError(
        `${path} is a database of another application (${failure.found}).`,
        'Give Holdfast a file of its own.',
        { reason: 'foreign-database', written: 'nothing', data: { path } },
      )
    case 'file-gone':
      return fileGone(path, failure.written)
    case 'too-new':
      return new SchemaTooNewError(path, { found: failure.found, supported: failure.supported })
    case 'timeout':
      return timedOut(failure.timeoutMs)
    case 'own-table':
      return ownTables(failure.sql, `the table ${failure.table}`)
    case 'statement':
      return new TransactionError(
        'statement',
        `SQLite refused a statement: ${failure.message}.`,
        'Correct the statement or its values; to allow for rows that are there, use ON CONFLICT.',
        { data: { sql: failure.sql, sqliteCode: failure.errcode } },
      )
    case 'bug':
      return new StorageError(
        `The SQLite driver failed on ${path}: ${failure.message}.`,
        'Please report this with the message; opening the store again starts over.',
        { reason: 'internal', written: failure.written, data: { path } },
      )
    case 'sqlite':
      return explainCode(failure, path)
  }
}

function fileGone(path: string, written: 'nothing' | 'unknown'): StorageError {
  return new StorageError(
    `${path} was deleted, moved or replaced while it was open.`,
    'Close the store in every process that has it open, put the right file back, and open it again.',
    { reason: 'file-gone', written, data: { path } },
  )
}

type SqliteCode = Extract<Failure, { kind: 'sqlite' }>

async function explainCode(failure: SqliteCode, path: string): Promise<HoldfastError> {
  const { errcode, written } = failure
  const cause = new Error(`${failure.message} (SQLite code ${errcode})`)
  const data = { path, sqliteCode: errcode }
  const storage = (reason: string, message: string, remedy: string) =>
    new StorageError(message, remedy, { reason, written, data, cause })

  switch (errcode & 0xff) {
    case SQLITE.BUSY:
    case SQLITE.LOCKED:
    case SQLITE.PROTOCOL:
      return new UnavailableError(`Other processes kept ${path} locked for longer than the busy timeout.`, {
        written,
        data,
        cause,
        remedy: 'Try again, raise busyTimeoutMs, or end the process that holds a transaction open on this file.',
      })
    case SQLITE.NOMEM:
      return new UnavailableError(`SQLite ran out of memory on ${path}.`, {
        written,
        data,
        cause,
        remedy: 'Give the process more memory, or write less at once.',
      })
    case SQLITE.FULL:
      return storage('disk-full', `There is no room left to write ${path}.`, diskFullRemedy)
    case SQLITE.IOERR:
      if (await isDiskFull(path)) {
        return storage('disk-full', `There is no room left to write ${path}.`, diskFullRemedy)
      }
      return storage('io-error', `Reading or writing ${path} failed: ${failure.message}.`, ioRemedy)
    case SQLITE.READONLY:
      if (errcode === SQLITE.READONLY_DBMOVED) return fileGone(path, written)
      return storage('read-only', `${path} can't be written: ${await readOnlyReason(path)}.`, readOnlyRemedy)
    case SQLITE.CANTOPEN:
    case SQLITE.PERM:
      return explainUnopened(failure, path)
    case SQLITE.NOTADB:
      return storage(
        'not-a-database',
        `${path} is not a SQLite database.`,
        'Check the path; Holdfast never overwrites a file it did not create.',
      )
    case SQLITE.CORRUPT:
      return new CorruptError(`${path} is damaged: ${failure.message}.`, { ...data, written }, cause)
    case SQLITE.TOOBIG:
      return new TooLargeError(
        'an entry or blob',
        'bytes',
        MAX_ROW_BYTES,
        undefined,
        'Store it outside and keep a reference to it.',
        { written },
      )
    case SQLITE.CONSTRAINT:
      return new HoldfastError('invalid-value', `SQLite refused a row for ${path}: ${failure.message}.`, {
        data: { field: 'append', written, ...data },
        remedy: 'A field holds a value of the wrong type; this is a mistake in the calling code.',
        cause,
      })
    default:
      return storage('sqlite', `SQLite failed on ${path}: ${failure.message}.`, ioRemedy)
  }
}

const diskFullRemedy = 'Free some space; what was acknowledged is safe and the store continues where it stopped.'
const ioRemedy = 'Check the disk, its mount and its limits, then open the store again.'
const readOnlyRemedy = 'Give this user write permission on the file and on its folder, where SQLite keeps its log.'

async function explainUnopened(failure: SqliteCode, path: string): Promise<HoldfastError> {
  const folder = dirname(path)
  const options = {
    written: failure.written,
    data: { path, sqliteCode: failure.errcode },
    cause: new Error(failure.message),
  }
  if (await isFolder(path)) {
    return new StorageError(`${path} is a folder.`, 'Name a file in it, such as agents.db.', {
      ...options,
      reason: 'is-a-folder',
    })
  }
  if (!(await isFolder(folder))) {
    return new StorageError(`The folder ${folder} does not exist.`, 'Create it first, or check the path.', {
      ...options,
      reason: 'no-such-folder',
    })
  }
  if (!(await mayWrite(folder)) || ((await exists(path)) && !(await mayWrite(path)))) {
    return new StorageError(`${path} can't be written: ${await readOnlyReason(path)}.`, readOnlyRemedy, {
      ...options,
      reason: 'read-only',
    })
  }
  if (await isDiskFull(path)) {
    return new StorageError(`There is no room left to write ${path}.`, diskFullRemedy, {
      ...options,
      reason: 'disk-full',
    })
  }
  return new StorageError(`${path} can't be opened: ${failure.message}.`, ioRemedy, {
    ...options,
    reason: 'cannot-open',
  })
}

async function readOnlyReason(path: string): Promise<string> {
  if ((await exists(path)) && !(await mayWrite(path))) return 'the file is read-only for this user'
  if (!(await mayWrite(dirname(path)))) return 'its folder is read-only for this user'
  return 'the file or its folder is read-only'
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}

async function mayWrite(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => true,
    () => false,
  )
}

async function isDiskFull(path: string): Promise<boolean> {
  return statfs(dirname(path)).then(
    ({ bavail, bsize }) => bavail * bsize < FULL_BELOW_BYTES,
    () => false,
  )
}
