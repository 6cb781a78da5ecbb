import { InvalidValueError, TooLargeError } from '../../core/errors.js'
import type { IndexFields, MetadataValue, Origin } from '../contract.js'
import { setOwn } from '../../codec/value.js'

/**
 * The part of a fold that the thread index shows. Kept in the log like everything else, so the index can be rebuilt.
 */
export interface IndexState {
  readonly status: string
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly wakeAt: number | null
  readonly metadata: Readonly<Record<string, MetadataValue>>
  /** Tag names and the seq each one marks. */
  readonly tags: Readonly<Record<string, number>>
}

/** What an entry changes of it. `null` removes. */
export interface IndexPatch {
  readonly status?: string
  /** Later appends by anyone but the owner postpone this, by as long as the log had left at the entry before. */
  readonly expiresAt?: number | null
  readonly wakeAt?: number | null
  readonly metadata?: Readonly<Record<string, MetadataValue | null>>
  readonly tags?: Readonly<Record<string, number | null>>
}

export const MAX_LABELS = 64
export const MAX_LABEL_NAME_BYTES = 128
export const MAX_LABEL_VALUE_BYTES = 1024
export const MAX_STATUS_BYTES = 64

export const EMPTY_INDEX: IndexState = {
  status: '',
  createdAt: 0,
  expiresAt: null,
  wakeAt: null,
  metadata: {},
  tags: {},
}

/** The index after a patch; the parts it does not name are kept by reference. */
export function applyIndexPatch(index: IndexState, patch: IndexPatch | undefined): IndexState {
  if (patch === undefined) return index
  return {
    status: patch.status ?? index.status,
    createdAt: index.createdAt,
    expiresAt: patch.expiresAt === undefined ? index.expiresAt : patch.expiresAt,
    wakeAt: patch.wakeAt === undefined ? index.wakeAt : patch.wakeAt,
    metadata: patch.metadata ? merge(index.metadata, patch.metadata) : index.metadata,
    tags: patch.tags ? merge(index.tags, patch.tags) : index.tags,
  }
}

/** The row of the thread index that follows from a fold. */
export function indexFields(index: IndexState, updatedAt: number, origin: Origin | null): IndexFields {
  return {
    status: index.status,
    createdAt: index.createdAt,
    updatedAt,
    expiresAt: index.expiresAt,
    wakeAt: index.wakeAt,
    tags: Object.keys(index.tags).sort(),
    metadata: index.metadata,
    origin,
  }
}

/** Refuses a patch that the index could not hold, before anything is written. */
export function checkIndexPatch(patch: IndexPatch, head: number): void {
  if (patch.status !== undefined) checkText('status', patch.status, MAX_STATUS_BYTES)
  checkTime('expiresAt', patch.expiresAt)
  checkTime('wakeAt', patch.wakeAt)
  if (patch.metadata !== undefined) checkRecord('metadata', patch.metadata)
  if (patch.tags !== undefined) checkRecord('tags', patch.tags)
  for (const [name, value] of Object.entries(patch.metadata ?? {})) {
    checkName('metadata', name)
    if (value === null || typeof value === 'boolean') continue
    if (typeof value === 'string') checkText(`metadata.${name}`, value, MAX_LABEL_VALUE_BYTES)
    else if (typeof value !== 'number' || !Number.isFinite(value)) {
      throw new InvalidValueError(
        `metadata.${name}`,
        'is not text, a finite number or a boolean',
        'Keep metadata plain.',
      )
    }
  }
  for (const [name, seq] of Object.entries(patch.tags ?? {})) {
    checkName('tags', name)
    if (seq !== null && (!Number.isSafeInteger(seq) || seq < 0 || seq > head)) {
      throw new InvalidValueError(
        `tags.${name}`,
        `marks ${String(seq)}, which is not an entry of this log`,
        'Tag an entry that exists.',
      )
    }
  }
}

/** Bounds the number of labels that a patch leaves behind. */
export function checkIndexSize(index: IndexState): void {
  for (const field of ['metadata', 'tags'] as const) {
    const count = Object.keys(index[field]).length
    if (count > MAX_LABELS)
      throw new TooLargeError(
        field,
        'names',
        MAX_LABELS,
        count,
        'Keep searchable labels few; put the rest into the state.',
      )
  }
}

function merge<T>(
  old: Readonly<Record<string, T>>,
  patch: Readonly<Record<string, T | null>>,
): Readonly<Record<string, T>> {
  const merged: Record<string, T> = { ...old }
  for (const name of Object.keys(patch)) {
    const value = patch[name]
    if (value === null || value === undefined) delete merged[name]
    else setOwn(merged, name, value)
  }
  return merged
}

/** Refuses what only looks like an object of named values: a list, a date, a number. */
export function checkRecord(field: string, value: unknown): void {
  if (typeof value === 'object' && value !== null) {
    const prototype = Object.getPrototypeOf(value) as object | null
    if (prototype === null || Object.hasOwn(prototype, 'hasOwnProperty')) return
  }
  throw new InvalidValueError(field, 'is not an object', 'Pass a plain object.')
}

function checkName(field: string, name: string): void {
  if (name === '') throw new InvalidValueError(field, 'has an empty name', 'Name every label.')
  checkText(`${field}.${name}`, name, MAX_LABEL_NAME_BYTES)
}

function checkText(field: string, value: unknown, limit: number): void {
  // Not every backend's text can hold a NUL, and what one of them can't hold none may accept.
  if (typeof value !== 'string' || !value.isWellFormed() || value.includes('\0')) {
    throw new InvalidValueError(field, 'is not well-formed text', 'Pass a string of valid Unicode without NUL.')
  }
  const bytes = Buffer.byteLength(value)
  if (bytes > limit)
    throw new TooLargeError(field, 'bytes', limit, bytes, 'Shorten it; long values belong in the state.')
}

function checkTime(field: string, time: number | null | undefined): void {
  if (time !== undefined && time !== null && !Number.isSafeInteger(time)) {
    throw new InvalidValueError(field, 'is not a time in milliseconds', 'Pass whole milliseconds since 1970, or null.')
  }
}
