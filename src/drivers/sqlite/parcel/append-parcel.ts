import type { Append, Expect, IndexFields } from '../../../log/contract.js'
import { type CarriedTask, carriedTaskOf, packCarried, unpackCarried } from './item-parcel.js'
import { type Parcel, ParcelReader, ParcelWriter } from './parcel.js'
import { metadataToText } from '../../shared/metadata-text.js'

/** An append as SQLite gets it: what is only stored is the text or the bytes that are stored. */
export interface AppendTask {
  readonly tenant: string
  readonly thread: string
  readonly branch: string
  readonly incarnation: string
  readonly epoch: number
  readonly expect: Expect | null
  readonly requires: { readonly branch: string; readonly incarnation: string } | null
  readonly lease: LeaseTask
  readonly index: IndexTask
  readonly labels: Labels | null
  readonly entries: readonly EntryTask[]
  readonly carried: readonly CarriedTask[]
}

export type LeaseTask =
  | { readonly kind: 'keep' }
  | { readonly kind: 'claim'; readonly owner: string; readonly ms: number; readonly force: boolean }
  | { readonly kind: 'extend'; readonly ms: number }
  | { readonly kind: 'release' }

export interface IndexTask {
  readonly status: string
  readonly createdAt: number
  readonly updatedAt: number
  readonly expiresAt: number | null
  readonly wakeAt: number | null
  readonly origin: string
}

/** Tags and metadata as JSON for the head row, and as rows to search by. */
export interface Labels {
  readonly tags: string
  readonly metadata: string
  readonly rows: readonly LabelRow[]
}

export interface LabelRow {
  readonly name: string
  readonly value: string
}

export interface EntryTask {
  readonly seq: number
  readonly keyframe: number
  readonly hash: string
  readonly header: Uint8Array
  readonly body: Uint8Array
}

const LEASE_KINDS = ['keep', 'claim', 'extend', 'release'] as const

export function appendTaskOf(append: Append): AppendTask {
  const { log, incarnation, epoch, expect, requires = null, lease, index, entries, carried = NOTHING } = append
  return {
    tenant: log.tenant,
    thread: log.thread,
    branch: log.branch,
    incarnation,
    epoch,
    expect,
    requires,
    lease,
    index: indexTaskOf(index),
    labels: append.labelsChanged || expect === null ? labelsOf(index) : null,
    entries,
    carried: carried.map(carriedTaskOf),
  }
}

const NOTHING: NonNullable<Append['carried']> = []

export function packAppends(batch: readonly Append[]): Parcel {
  const parcel = new ParcelWriter()
  parcel.number(batch.length)
  for (const append of batch) packAppend(parcel, appendTaskOf(append))
  return parcel.finish()
}

export function unpackAppends(packed: Parcel): AppendTask[] {
  const parcel = new ParcelReader(packed)
  return times(parcel.number(), () => unpackAppend(parcel))
}

function packAppend(parcel: ParcelWriter, task: AppendTask): void {
  const { expect, requires, lease, labels } = task
  parcel.text(task.tenant)
  parcel.text(task.thread)
  parcel.text(task.branch)
  parcel.text(task.incarnation)
  parcel.number(task.epoch)
  parcel.number(expect === null ? 0 : 1)
  if (expect !== null) {
    parcel.text(expect.incarnation)
    parcel.number(expect.seq)
    parcel.text(expect.hash)
    parcel.number(expect.epoch)
  }
  parcel.number(requires === null ? 0 : 1)
  if (requires !== null) {
    parcel.text(requires.branch)
    parcel.text(requires.incarnation)
  }
  parcel.number(LEASE_KINDS.indexOf(lease.kind))
  if (lease.kind === 'claim') {
    parcel.text(lease.owner)
    parcel.number(lease.force ? 1 : 0)
  }
  if (lease.kind === 'claim' || lease.kind === 'extend') parcel.number(lease.ms)
  packIndex(parcel, task.index)
  parcel.number(labels === null ? 0 : 1)
  if (labels !== null) packLabels(parcel, labels)
  parcel.number(task.entries.length)
  for (const entry of task.entries) {
    parcel.number(entry.seq)
    parcel.number(entry.keyframe)
    parcel.text(entry.hash)
    parcel.bytes(entry.header)
    parcel.bytes(entry.body)
  }
  packCarried(parcel, task.carried)
}

function unpackAppend(parcel: ParcelReader): AppendTask {
  return {
    tenant: parcel.text(),
    thread: parcel.text(),
    branch: parcel.text(),
    incarnation: parcel.text(),
    epoch: parcel.number(),
    expect: parcel.number() === 0 ? null : unpackExpect(parcel),
    requires: parcel.number() === 0 ? null : { branch: parcel.text(), incarnation: parcel.text() },
    lease: unpackLease(parcel),
    index: unpackIndex(parcel),
    labels: parcel.number() === 0 ? null : unpackLabels(parcel),
    entries: times(parcel.number(), () => ({
      seq: parcel.number(),
      keyframe: parcel.number(),
      hash: parcel.text(),
      header: parcel.bytes(),
      body: parcel.bytes(),
    })),
    carried: unpackCarried(parcel),
  }
}

function unpackExpect(parcel: ParcelReader): Expect {
  return { incarnation: parcel.text(), seq: parcel.number(), hash: parcel.text(), epoch: parcel.number() }
}

function unpackLease(parcel: ParcelReader): LeaseTask {
  const kind = LEASE_KINDS[parcel.number()] ?? 'keep'
  switch (kind) {
    case 'claim':
      return { kind, owner: parcel.text(), force: parcel.number() === 1, ms: parcel.number() }
    case 'extend':
      return { kind, ms: parcel.number() }
    default:
      return { kind }
  }
}

function packIndex(parcel: ParcelWriter, index: IndexTask): void {
  parcel.text(index.status)
  parcel.number(index.createdAt)
  parcel.number(index.updatedAt)
  parcel.number(index.expiresAt ?? Number.NaN)
  parcel.number(index.wakeAt ?? Number.NaN)
  parcel.text(index.origin)
}

function unpackIndex(parcel: ParcelReader): IndexTask {
  return {
    status: parcel.text(),
    createdAt: parcel.number(),
    updatedAt: parcel.number(),
    expiresAt: numberOrNull(parcel.number()),
    wakeAt: numberOrNull(parcel.number()),
    origin: parcel.text(),
  }
}

function packLabels(parcel: ParcelWriter, { tags, metadata, rows }: Labels): void {
  parcel.text(tags)
  parcel.text(metadata)
  parcel.number(rows.length)
  for (const { name, value } of rows) {
    parcel.text(name)
    parcel.text(value)
  }
}

function unpackLabels(parcel: ParcelReader): Labels {
  return {
    tags: parcel.text(),
    metadata: parcel.text(),
    rows: times(parcel.number(), () => ({ name: parcel.text(), value: parcel.text() })),
  }
}

export function indexTaskOf(index: IndexFields): IndexTask {
  const { status, createdAt, updatedAt, expiresAt, wakeAt, origin } = index
  return { status, createdAt, updatedAt, expiresAt, wakeAt, origin: JSON.stringify(origin) }
}

export function labelsOf({ tags, metadata }: Pick<IndexFields, 'tags' | 'metadata'>): Labels {
  return {
    tags: JSON.stringify(tags),
    metadata: metadataToText(metadata),
    rows: [...tags.map(tagRow), ...Object.entries(metadata).map(([key, value]) => metadataRow(key, value))],
  }
}

// JSON keeps 1, '1' and true apart, and escapes NUL and lone surrogates, which SQLite text would not carry.
export function tagRow(tag: string): LabelRow {
  return { name: `t${JSON.stringify(tag)}`, value: '' }
}

export function metadataRow(key: string, value: string | number | boolean): LabelRow {
  return { name: `m${JSON.stringify(key)}`, value: JSON.stringify(value) }
}

function numberOrNull(value: number): number | null {
  return Number.isNaN(value) ? null : value
}

function times<T>(count: number, make: () => T): T[] {
  const made: T[] = []
  for (let i = 0; i < count; i++) made.push(make())
  return made
}
