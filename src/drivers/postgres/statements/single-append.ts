import type { Append, IndexFields, StoredEntry } from '../../../log/contract.js'
import type { CarriedWrite } from '../../../log/store-contract.js'
import type { Statement } from '../connection/sessions.js'
import { encodeArray } from '../values/binary-array.js'
import { fieldsText } from '../values/item-fields.js'
import { toText } from '../values/text-form.js'
import { metadataToText } from '../../shared/metadata-text.js'

const PARAMETERS_STEP = parameters(17)
const PARAMETERS_CARRYING = parameters(25)
const PARAMETERS_ONE = parameters(26)

/** The append to a single log as plain parameters of the function that is made for it; undefined if there is none. */
export function makeSingleAppend(
  schema: string,
  nameOf: (operation: string) => string,
  append: Append,
): Statement | undefined {
  if (!isPlain(append)) return undefined
  const { carried = [], entries } = append
  const [write] = carried
  if (write !== undefined) {
    if (carried.length > 1 || entries.length > 1 || !isByOwnerOrGuest(append)) return undefined
    const text = `SELECT ${schema}.record_carrying(${PARAMETERS_CARRYING})`
    return { name: nameOf('carrying'), text, values: [...stepValues(append), ...itemValues(write)] }
  }
  if (entries.length > 1) {
    const text = `SELECT ${schema}.append_several(${PARAMETERS_ONE})`
    return { name: nameOf('several'), text, values: severalValues(append) }
  }
  if (isByOwnerOrGuest(append)) {
    const text = `SELECT ${schema}.record_step(${PARAMETERS_STEP})`
    return { name: nameOf('step'), text, values: stepValues(append) }
  }
  const text = `SELECT * FROM ${schema}.append_one(${PARAMETERS_ONE})`
  return { name: nameOf('append1'), text, values: singleValues(append) }
}

/** What `append_one` and `append_several` are made for, see migrations/0004-append-one.sql and 0020-append-several.sql. */
function isPlain({ expect, requires, labelsChanged }: Append): boolean {
  return expect !== null && requires === undefined && !labelsChanged
}

/** What of that `record_step` is made for, see migrations/0019-record-step.sql. */
function isByOwnerOrGuest({ lease, epoch, expect }: Append): boolean {
  return lease.kind !== 'claim' && epoch === expect?.epoch
}

function stepValues({ log, expect, incarnation, lease, index, entries }: Append): unknown[] {
  const [entry] = entries
  return [
    log.tenant,
    log.thread,
    log.branch,
    expect?.seq,
    hashBytes(expect?.hash),
    expect?.epoch,
    toText(incarnation),
    lease.kind === 'release' ? 0 : 'ms' in lease ? lease.ms : null,
    toText(index.status),
    index.createdAt,
    index.updatedAt,
    index.expiresAt,
    index.wakeAt,
    entry?.keyframe,
    hashBytes(entry?.hash),
    asBuffer(entry?.header),
    asBuffer(entry?.body),
  ]
}

function itemValues({ space, key, at, item }: CarriedWrite): unknown[] {
  const fields = item && fieldsText(item.fields)
  return [space, key, at, item && toText(item.version), item?.at, item?.expiresAt, fields, item && asBuffer(item.value)]
}

function singleValues(append: Append): unknown[] {
  const [entry] = append.entries
  return [...logValues(append), entry?.keyframe, hashBytes(entry?.hash), asBuffer(entry?.header), asBuffer(entry?.body)]
}

function severalValues(append: Append): unknown[] {
  const { entries } = append
  const bytesOf = (part: (entry: StoredEntry) => Uint8Array) => encodeArray('bytea', entries.map(part))
  return [
    ...logValues(append),
    encodeArray(
      'bigint',
      entries.map((entry) => entry.keyframe),
    ),
    bytesOf((entry) => hashBytes(entry.hash)),
    bytesOf((entry) => entry.header),
    bytesOf((entry) => entry.body),
  ]
}

function logValues(append: Append): unknown[] {
  const { log, expect, lease } = append
  return [
    log.tenant,
    log.thread,
    log.branch,
    expect?.seq,
    hashBytes(expect?.hash),
    expect?.epoch,
    toText(append.incarnation),
    append.epoch,
    leaseKind(append),
    lease.kind === 'claim' ? toText(lease.owner) : null,
    'ms' in lease ? lease.ms : null,
    ...indexValues(append.index),
  ]
}

/** An index row as plain parameters, in the order that the functions for a single log have. */
export function indexValues(index: IndexFields): unknown[] {
  return [
    toText(index.status),
    index.createdAt,
    index.updatedAt,
    index.expiresAt,
    index.wakeAt,
    JSON.stringify(index.tags),
    metadataToText(index.metadata),
    index.origin?.branch ?? null,
    optionalText(index.origin?.incarnation),
    index.origin?.seq ?? null,
    hashBytes(index.origin?.hash),
  ]
}

export function hashBytes(hash: string): Buffer
export function hashBytes(hash: string | undefined): Buffer | null
export function hashBytes(hash: string | undefined): Buffer | null {
  return hash === undefined ? null : Buffer.from(hash, 'hex')
}

// `pg` sends a Buffer as it is; other bytes it would have to convert.
function asBuffer(bytes: Uint8Array | undefined): Buffer | undefined {
  return bytes && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

export function parameters(count: number): string {
  return Array.from({ length: count }, (_, i) => `$${i + 1}`).join(', ')
}

export function leaseKind({ lease }: Append): string {
  return lease.kind === 'claim' && lease.force ? 'force' : lease.kind
}

export function optionalText(text: string | undefined): string | null {
  return text === undefined ? null : toText(text)
}
