import type { Append, AppendResult, IndexFields } from '../../../log/contract.js'
import { encodeArray } from '../values/binary-array.js'
import { carriedValues, carriesItems } from './carried-values.js'
import { parseHead } from '../values/head-row.js'
import { compareKeys } from '../values/key-order.js'
import { labelsOf } from '../values/labels.js'
import type { Row, Statement } from '../connection/sessions.js'
import { toText } from '../values/text-form.js'
import { metadataToText } from '../../shared/metadata-text.js'

const PARAMETERS = parameters(34)
const PARAMETERS_STEP = parameters(17)
const PARAMETERS_ONE = parameters(26)
const PARAMETERS_CARRYING = parameters(43)

/** A batch on its way: the call of a function of migrations, and the order its answers come in. */
export interface SortedBatch {
  readonly statement: Statement
  /** For each answer, the index of its append in the batch. */
  readonly order: readonly number[]
}

/** The parameters are those of the function, in its order; see there for what they mean. */
export function makeAppendStatement(
  schema: string,
  nameOf: (operation: string) => string,
  batch: readonly Append[],
): SortedBatch {
  const [only] = batch
  if (only !== undefined && batch.length === 1 && isPlainStep(only) && !carriesItems(batch)) {
    if (isByOwnerOrGuest(only)) {
      const text = `SELECT ${schema}.record_step(${PARAMETERS_STEP})`
      return { statement: { name: nameOf('step'), text, values: stepValues(only) }, order: [0] }
    }
    const text = `SELECT * FROM ${schema}.append_one(${PARAMETERS_ONE})`
    return { statement: { name: nameOf('append1'), text, values: singleValues(only) }, order: [0] }
  }
  const order = batch.map((_, i) => i)
  order.sort((a, b) => compareKeys((batch[a] as Append).log, (batch[b] as Append).log))
  const appends = order.map((i) => batch[i] as Append)
  const entries = appends.flatMap((append) => append.entries)
  let position = 1
  const firsts = appends.map((append) => {
    const first = position
    position += append.entries.length
    return first
  })
  const labels = appends.map((append) => (append.labelsChanged ? labelsOf(append.index) : []))
  const values = [
    encodeArray(
      'text',
      appends.map((append) => append.log.tenant),
    ),
    encodeArray(
      'text',
      appends.map((append) => append.log.thread),
    ),
    encodeArray(
      'text',
      appends.map((append) => append.log.branch),
    ),
    encodeArray(
      'bigint',
      appends.map((append) => append.expect?.seq ?? null),
    ),
    encodeArray(
      'bytea',
      appends.map((append) => hashBytes(append.expect?.hash)),
    ),
    encodeArray(
      'bigint',
      appends.map((append) => append.expect?.epoch ?? null),
    ),
    encodeArray(
      'text',
      appends.map((append) => toText(append.incarnation)),
    ),
    encodeArray(
      'bigint',
      appends.map((append) => append.epoch),
    ),
    encodeArray(
      'text',
      appends.map((append) => append.requires?.branch ?? null),
    ),
    encodeArray(
      'text',
      appends.map((append) => optionalText(append.requires?.incarnation)),
    ),
    encodeArray('text', appends.map(leaseKind)),
    encodeArray(
      'text',
      appends.map(({ lease }) => (lease.kind === 'claim' ? toText(lease.owner) : null)),
    ),
    encodeArray(
      'double',
      appends.map(({ lease }) => ('ms' in lease ? lease.ms : null)),
    ),
    encodeArray(
      'text',
      appends.map(({ index }) => toText(index.status)),
    ),
    encodeArray(
      'double',
      appends.map(({ index }) => index.createdAt),
    ),
    encodeArray(
      'double',
      appends.map(({ index }) => index.updatedAt),
    ),
    encodeArray(
      'double',
      appends.map(({ index }) => index.expiresAt),
    ),
    encodeArray(
      'double',
      appends.map(({ index }) => index.wakeAt),
    ),
    encodeArray(
      'text',
      appends.map(({ index }) => JSON.stringify(index.tags)),
    ),
    encodeArray(
      'text',
      appends.map(({ index }) => metadataToText(index.metadata)),
    ),
    encodeArray(
      'text',
      appends.map(({ index }) => index.origin?.branch ?? null),
    ),
    encodeArray(
      'text',
      appends.map(({ index }) => optionalText(index.origin?.incarnation)),
    ),
    encodeArray(
      'bigint',
      appends.map(({ index }) => index.origin?.seq ?? null),
    ),
    encodeArray(
      'bytea',
      appends.map(({ index }) => hashBytes(index.origin?.hash)),
    ),
    encodeArray('integer', firsts),
    encodeArray(
      'integer',
      appends.map((append, i) => (firsts[i] as number) + append.entries.length - 1),
    ),
    encodeArray(
      'boolean',
      appends.map((append) => append.labelsChanged),
    ),
    encodeArray(
      'bigint',
      entries.map((entry) => entry.seq),
    ),
    encodeArray(
      'bigint',
      entries.map((entry) => entry.keyframe),
    ),
    encodeArray(
      'bytea',
      entries.map((entry) => hashBytes(entry.hash)),
    ),
    encodeArray(
      'bytea',
      entries.map((entry) => entry.header),
    ),
    encodeArray(
      'bytea',
      entries.map((entry) => entry.body),
    ),
    encodeArray(
      'integer',
      labels.flatMap((each, i) => each.map(() => i + 1)),
    ),
    encodeArray('bytea', labels.flat()),
  ]
  if (carriesItems(appends)) {
    const text = `SELECT * FROM ${schema}.append_carrying(${PARAMETERS_CARRYING})`
    return { statement: { name: nameOf('append_items'), text, values: [...values, ...carriedValues(appends)] }, order }
  }
  return { statement: { name: nameOf('append'), text: `SELECT * FROM ${schema}.append(${PARAMETERS})`, values }, order }
}

/** The answers, in the order of the batch, and whether anybody wants to be notified. */
export function readAppendResults(
  row: Row | undefined,
  order: readonly number[],
): { results: AppendResult[]; listening: boolean } {
  if (row === undefined) throw new RangeError('append gave no answer')
  const [first, second] = row
  // One value from record_step, two from the others.
  const isStep = row.length === 1
  const failed = isStep ? first?.slice(1) : first
  const listening = isStep ? first?.startsWith('+') === true : second === 't'
  const results = order.map((): AppendResult => ({ status: 'appended' }))
  for (const [place, outcome, json] of JSON.parse(failed || '[]') as [number, string, string | null][]) {
    const head = json === null ? undefined : parseHead(json)
    const isHeld = outcome === 'held' && head !== undefined && head.lease !== null
    results[order[place - 1] as number] = isHeld ? { status: 'held', head } : { status: 'conflict', head }
  }
  return { results, listening }
}

/** What `append_one` is made for, see migrations/0004-append-one.sql. */
function isPlainStep({ expect, entries, requires, labelsChanged }: Append): boolean {
  return expect !== null && entries.length === 1 && requires === undefined && !labelsChanged
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

function singleValues(append: Append): unknown[] {
  const { log, expect, lease, entries } = append
  const [entry] = entries
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
    entry?.keyframe,
    hashBytes(entry?.hash),
    asBuffer(entry?.header),
    asBuffer(entry?.body),
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

function parameters(count: number): string {
  return Array.from({ length: count }, (_, i) => `$${i + 1}`).join(', ')
}

function leaseKind({ lease }: Append): string {
  return lease.kind === 'claim' && lease.force ? 'force' : lease.kind
}

function optionalText(text: string | undefined): string | null {
  return text === undefined ? null : toText(text)
}
