import type { StoreWrite } from '../log/items/store-write.js'
import type { FieldInput } from './search/field.js'
import type { Filter } from './search/filter.js'

/** An item as returned by a read. */
export interface Item<Value> {
  readonly key: string
  readonly value: Value
  /** New with every write; pass it as `expect` to overwrite only this version. */
  readonly version: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly expiresAt: Date | null
  /** With `query` only: how similar it is, -1 to 1. */
  readonly score?: number
}

/** One page of items. */
export interface ItemPage<Value> {
  readonly items: readonly Item<Value>[]
  /** Present when more follow. */
  readonly cursor?: string
}

/** The result of a put. */
export interface Written {
  readonly key: string
  readonly version: string
  readonly updatedAt: Date
  readonly expiresAt: Date | null
}

/** How long an item lives, and what must exist for it to be written. */
export interface PutOptions {
  /** How long the item lives; null: forever. Default: what the collection says. */
  readonly ttlMs?: number | null
  /** The version that must be current; null: there must be no item. Default: anything. */
  readonly expect?: string | null
}

export interface DeleteOptions {
  readonly expect?: string | null
}

/** One write of a batch. */
export type BatchOperation<Input> =
  | ({ readonly put: string; readonly value: Input } & PutOptions)
  | ({ readonly delete: string } & DeleteOptions)

/** The outcome of one write of a batch; the others are not affected. */
export type BatchResult =
  /** `written` is null for a delete. */
  | { readonly status: 'written'; readonly written: Written | null }
  /** `version` is the current version, null if there is no item. */
  | { readonly status: 'conflict'; readonly version: string | null }

/** Which keys to list, in their order. */
export interface ListQuery {
  /** Only keys that begin with this. */
  readonly prefix?: string
  /** Default 100. */
  readonly limit?: number
  readonly cursor?: string
}

/** Which items to find, and in which order. */
export interface SearchQuery extends ListQuery {
  readonly filter?: Filter
  /** Default: by key. */
  readonly orderBy?: FieldInput
  readonly direction?: 'asc' | 'desc'
  /** Finds what is nearest to this text in meaning, nearest first. Needs the option `embed`. */
  readonly query?: string
  /** With `query`: leaves out what is less similar. */
  readonly minScore?: number
}

/** Creates writes that are part of the entry of a step. */
export interface StoreWriter<Input> {
  put(key: string, value: Input, options?: Pick<PutOptions, 'ttlMs'>): Promise<StoreWrite>
  delete(key: string): StoreWrite
}
