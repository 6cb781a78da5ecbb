import type { Append, AppendResult } from '../../../log/contract.js'
import { encodeArray } from '../values/binary-array.js'
import { carriedValues, carriesItems } from './carried-values.js'
import { parseHead } from '../values/head-row.js'
import { compareKeys } from '../values/key-order.js'
import { labelsOf } from '../values/labels.js'
import { hashBytes, leaseKind, makeSingleAppend, optionalText, parameters } from './single-append.js'
import type { Row, Statement } from '../connection/sessions.js'
import { toText } from '../values/text-form.js'
import { metadataToText } from '../../shared/metadata-text.js'

const PARAMETERS = parameters(34)
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
  const single = batch.length === 1 && only && makeSingleAppend(schema, nameOf, only)
  if (single) return { statement: single, order: [0] }
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
  // One value from record_step, record_carrying and append_several, two from the others.
  const isOne = row.length === 1
  const failed = isOne ? first?.slice(1) : first
  const listening = isOne ? first?.startsWith('+') === true : second === 't'
  const results = order.map((): AppendResult => ({ status: 'appended' }))
  for (const [place, outcome, json] of JSON.parse(failed || '[]') as [number, string, string | null][]) {
    const head = json === null ? undefined : parseHead(json)
    const isHeld = outcome === 'held' && head !== undefined && head.lease !== null
    results[order[place - 1] as number] = isHeld ? { status: 'held', head } : { status: 'conflict', head }
  }
  return { results, listening }
}
