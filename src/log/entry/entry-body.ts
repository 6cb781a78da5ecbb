import type { EntryHeader } from '../../codec/header.js'
import { isRecord, type Value } from '../../codec/value.js'
import { CorruptError } from '../../core/errors.js'
import type { EntryBody } from './fold.js'
import { isOp } from './ops.js'
import { isStoreWrite } from '../items/store-write.js'

const FIELDS = new Set(['ops', 'index', 'data', 'store', 'fold'])
const ORIGIN_FIELDS = ['branch', 'hash', 'incarnation', 'seq'].join()
const INDEX_FIELDS = ['createdAt', 'expiresAt', 'metadata', 'status', 'tags', 'wakeAt'].join()

/** Checks the shape of a decoded body. It verified, so a mismatch means another writer with different rules. */
export function readBody(value: Value, header: EntryHeader): EntryBody {
  if (!isRecord(value)) throw misfit(header, 'is not an object')
  for (const field of Object.keys(value))
    if (!FIELDS.has(field)) throw misfit(header, `has the unknown field "${field}"`)
  const { ops, index, store, fold } = value
  if (ops !== undefined && !(Array.isArray(ops) && ops.every(isOp))) throw misfit(header, 'holds an unknown operation')
  if (index !== undefined && !(isRecord(index) && isPatch(index))) throw misfit(header, 'holds a malformed index')
  if (store !== undefined && !(Array.isArray(store) && store.length > 0 && store.every(isStoreWrite))) {
    throw misfit(header, 'holds an unknown write to the store')
  }
  const isKeyframe = header.keyframe === header.seq
  const startsFromNothing = header.seq === 0 && header.base === null
  if ((fold !== undefined) !== (isKeyframe && !startsFromNothing)) {
    throw misfit(header, isKeyframe ? 'is a keyframe without a fold' : 'holds a fold but is not a keyframe')
  }
  if (fold !== undefined) {
    if (!isRecord(fold) || !isRecord(fold.state) || !isRecord(fold.index))
      throw misfit(header, 'holds a malformed fold')
    const { createdAt, ...rest } = fold.index
    if (Object.keys(fold.index).sort().join() !== INDEX_FIELDS || typeof createdAt !== 'number' || !isPatch(rest)) {
      throw misfit(header, 'holds a malformed fold')
    }
    const { state: _, index: __, origin, stored = -1, ...unknown } = fold
    if (
      !Number.isSafeInteger(stored) ||
      Object.keys(unknown).length > 0 ||
      (origin !== undefined && !isOrigin(origin))
    ) {
      throw misfit(header, 'holds a malformed fold')
    }
  }
  return value as EntryBody
}

/** Whether a body is one of the runtime's, which says what happened: most of it is names that many others have. */
export function hasRecords({ data }: EntryBody): boolean {
  return isRecord(data) && Array.isArray(data.events)
}

/** The drivers put these into columns, so each must be what the column holds. */
function isPatch(index: { readonly [key: string]: Value }): boolean {
  return Object.entries(index).every(([field, value]) => {
    switch (field) {
      case 'status':
        return typeof value === 'string'
      case 'expiresAt':
      case 'wakeAt':
        return value === null || Number.isSafeInteger(value)
      case 'metadata':
        return isRecord(value) && Object.values(value).every(isLabel)
      case 'tags':
        return isRecord(value) && Object.values(value).every((seq) => seq === null || Number.isSafeInteger(seq))
      default:
        return false
    }
  })
}

function isOrigin(origin: Value): boolean {
  return (
    isRecord(origin) &&
    Object.keys(origin).sort().join() === ORIGIN_FIELDS &&
    Number.isSafeInteger(origin.seq) &&
    [origin.branch, origin.incarnation, origin.hash].every((part) => typeof part === 'string')
  )
}

function isLabel(value: Value): boolean {
  return value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)
}

function misfit(header: EntryHeader, problem: string): CorruptError {
  return new CorruptError(`The body of entry ${header.seq} ${problem}.`, { seq: header.seq })
}
