import type { CarriedWrite, ItemWrite, NewItem, StoredItem } from '../../../log/store-contract.js'
import type { Row } from '../connection/engine.js'
import { fieldLines, readFieldLines } from '../items/item-fields.js'
import { type Parcel, ParcelReader, ParcelWriter } from './parcel.js'

/** A write as the worker sees it: what is only stored arrives as the text or bytes that are stored. */
export interface ItemTask {
  readonly space: string
  readonly key: string
  readonly item: ItemContent | null
}

interface ItemContent {
  readonly version: string
  readonly at: number
  readonly expiresAt: number | null
  readonly fields: string
  readonly value: Uint8Array
}

/** A write of `writeItems`. `expect` is undefined where it goes over whatever is there. */
export interface ItemWriteTask extends ItemTask {
  readonly expect: string | null | undefined
}

/** A write that an entry carries. `at` decides what has expired. */
export interface CarriedTask extends ItemTask {
  readonly at: number
}

const EXPECT_ANYTHING = 0
const EXPECT_NOTHING = 1
const EXPECT_VERSION = 2

export function packItemWrites(writes: readonly ItemWrite[]): Parcel {
  const parcel = new ParcelWriter()
  parcel.number(writes.length)
  for (const { space, key, item, expect } of writes) {
    packPlace(parcel, { space, key, item: contentOf(item) })
    if (expect === undefined) parcel.number(EXPECT_ANYTHING)
    else if (expect === null) parcel.number(EXPECT_NOTHING)
    else {
      parcel.number(EXPECT_VERSION)
      parcel.text(expect)
    }
  }
  return parcel.finish()
}

export function unpackItemWrites(packed: Parcel): ItemWriteTask[] {
  const parcel = new ParcelReader(packed)
  const tasks: ItemWriteTask[] = []
  for (let left = parcel.number(); left > 0; left--) {
    tasks.push({ ...unpackPlace(parcel), expect: unpackExpect(parcel) })
  }
  return tasks
}

function unpackExpect(parcel: ParcelReader): string | null | undefined {
  switch (parcel.number()) {
    case EXPECT_NOTHING:
      return null
    case EXPECT_VERSION:
      return parcel.text()
    default:
      return undefined
  }
}

export function carriedTaskOf({ space, key, item, at }: CarriedWrite): CarriedTask {
  return { space, key, item: contentOf(item), at }
}

/** Packed inside the parcel of its append. */
export function packCarried(parcel: ParcelWriter, carried: readonly CarriedTask[]): void {
  parcel.number(carried.length)
  for (const task of carried) {
    packPlace(parcel, task)
    parcel.number(task.at)
  }
}

export function unpackCarried(parcel: ParcelReader): CarriedTask[] {
  const tasks: CarriedTask[] = []
  for (let left = parcel.number(); left > 0; left--) {
    tasks.push({ ...unpackPlace(parcel), at: parcel.number() })
  }
  return tasks
}

function contentOf(item: NewItem | null): ItemContent | null {
  if (item === null) return null
  const { version, at, expiresAt, fields, value } = item
  return { version, at, expiresAt, fields: fieldLines(fields), value }
}

function packPlace(parcel: ParcelWriter, { space, key, item }: ItemTask): void {
  parcel.text(space)
  parcel.text(key)
  parcel.number(item === null ? 0 : 1)
  if (item === null) return
  parcel.text(item.version)
  parcel.number(item.at)
  parcel.number(item.expiresAt ?? Number.NaN)
  parcel.text(item.fields)
  parcel.bytes(item.value)
}

function unpackPlace(parcel: ParcelReader): ItemTask {
  return {
    space: parcel.text(),
    key: parcel.text(),
    item: parcel.number() === 0 ? null : unpackContent(parcel),
  }
}

function unpackContent(parcel: ParcelReader): ItemContent {
  return {
    version: parcel.text(),
    at: parcel.number(),
    expiresAt: numberOrNull(parcel.number()),
    fields: parcel.text(),
    value: parcel.bytes(),
  }
}

/** Rows of the table `items` on their way from the worker. */
export function packItems(rows: readonly Row[]): Parcel {
  const parcel = new ParcelWriter()
  parcel.number(rows.length)
  for (const row of rows) {
    parcel.text(row['key'] as string)
    parcel.text(row['version'] as string)
    parcel.number(row['created_at'] as number)
    parcel.number(row['updated_at'] as number)
    parcel.number((row['expires_at'] as number | null) ?? Number.NaN)
    parcel.text((row['fields'] as string | undefined) ?? '')
    parcel.bytes(row['value'] as Uint8Array)
  }
  return parcel.finish()
}

export function unpackItems(packed: Parcel): StoredItem[] {
  const parcel = new ParcelReader(packed)
  const items: StoredItem[] = []
  for (let left = parcel.number(); left > 0; left--) {
    const item = {
      key: parcel.text(),
      version: parcel.text(),
      createdAt: parcel.number(),
      updatedAt: parcel.number(),
      expiresAt: numberOrNull(parcel.number()),
    }
    const lines = parcel.text()
    items.push({ ...item, value: parcel.bytes(), ...(lines && { fields: readFieldLines(lines) }) })
  }
  return items
}

function numberOrNull(value: number): number | null {
  return Number.isNaN(value) ? null : value
}
