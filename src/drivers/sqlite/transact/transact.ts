import { InvalidValueError } from '../../../core/errors.js'
import type { AppendResult, Driver } from '../../../log/contract.js'
import { checkBatch } from '../../shared/checks.js'
import { runTransaction } from '../../shared/run-transaction.js'
import { checkStatement, ownTables, SQLITE_DIALECT } from '../../shared/sql-check.js'
import type { PackedResult } from '../append.js'
import { packAppends } from '../parcel/append-parcel.js'
import type { SqlParam } from '../connection/engine.js'
import { unpackHead } from '../rows/head-row.js'
import { type Parcel, ParcelWriter, transferOf } from '../parcel/parcel.js'
import type { WorkerLink } from '../worker-link.js'

/** One transaction with the user's own SQL, statement by statement in the worker. */
export async function transact(
  link: WorkerLink,
  work: Parameters<NonNullable<Driver['transact']>>[0],
  timeoutMs: number,
): Promise<AppendResult> {
  return link.hold(async (call) => {
    const id = await call('begin', [timeoutMs])
    return runTransaction(
      {
        blobs: {
          touchBlobs: (tenant, hashes) => call('touchBlobsIn', [id, tenant, hashes]),
          putBlobs: async (tenant, blobs) => {
            const parcel = packBlobs(blobs)
            await call('putBlobsIn', [id, tenant, parcel], transferOf(parcel))
          },
        },
        async query(sql, params) {
          checkSql(sql, params.length)
          return call('query', [id, sql, params.map(toParam)])
        },
        async commit(append) {
          try {
            checkBatch([append])
          } catch (error) {
            await call('rollBack', [id])
            throw error
          }
          const parcel = packAppends([append])
          return unpackResult(await call('commit', [id, parcel], transferOf(parcel)))
        },
        // A thread that ended has released everything.
        rollBack: () => call('rollBack', [id]).then(undefined, () => {}),
      },
      work,
      timeoutMs,
    )
  })
}

export function packBlobs(blobs: Parameters<Driver['putBlobs']>[1]): Parcel {
  const parcel = new ParcelWriter()
  parcel.number(blobs.length)
  for (const { hash, bytes } of blobs) {
    parcel.text(hash)
    parcel.bytes(bytes)
  }
  return parcel.finish()
}

export function unpackResult(result: PackedResult): AppendResult {
  if (typeof result === 'number') return { status: 'appended' }
  if (result.status === 'held') return { status: 'held', head: unpackHead(result.head) }
  return { status: 'conflict', head: result.head === null ? undefined : unpackHead(result.head) }
}

/** What statements that only change the schema reach is not in their program, but in their words. */
const OWN_NAMES =
  /^(logs|entries|labels|blobs|blob_bytes|last_touch|tombstones|items|schema_versions)(_name|_created|_tenant_created|_tenant_updated|_status|_wake|_expiry|_leased|_place|_value)?$/
const NAMES_FOLLOW = new Set(['table', 'index', 'view', 'trigger', 'exists', 'on', 'to', '.'])

function checkSql(sql: string, given: number): void {
  const { first, tokens } = checkStatement(sql, SQLITE_DIALECT)
  if (first === 'create' || first === 'alter' || first === 'drop') {
    const own = tokens.find((token, i) => OWN_NAMES.test(token) && NAMES_FOLLOW.has(tokens[i - 1] ?? ''))
    if (own !== undefined) throw ownTables(sql, own)
    return
  }
  if (tokens.some((token) => token === ':' || token === '@' || token === '$')) {
    throw new InvalidValueError('sql', 'names its placeholders', 'Write each as ? and pass the values in their order.')
  }
  // SQLite takes a missing value for NULL.
  const wanted = tokens.filter((token) => token === '?').length
  const numbered = tokens.some((token, i) => token === '?' && /^\d/.test(tokens[i + 1] ?? ''))
  if (!numbered && wanted !== given) {
    throw new InvalidValueError('params', `has ${given} values for ${wanted} placeholders`, 'Pass one for each ?.')
  }
}

function toParam(value: unknown, i: number): SqlParam {
  if (value === null || ['string', 'number', 'bigint'].includes(typeof value)) return value as SqlParam
  if (value instanceof Uint8Array) return value
  throw new InvalidValueError(
    `params[${i}]`,
    'is not a value that SQLite can store',
    'Pass a string, number, bigint, Uint8Array or null; true as 1, a date as text or number.',
  )
}
