import type { StoreWrite } from '../log/items/store-write.js'
import type { FieldInput } from './field.js'
import type { Filter } from './filter.js'

/** An item as it is read. */
export interface Item<Value> {
  readonly key: string
  readonly value: Value
  /** New with every write; pass it as `expect` to write only over this one. */
  readonly version: string
  readonly createdAt: Date
  readonly updatedAt: Date
  readonly expiresAt: Date | null
  /** With `query` only: how near it is, -1 to 1. */
  readonly score?: number
}

/** One page of items. */
export interface ItemPage<Value> {
  readonly items: readonly Item<Value>[]
  /** Present when more follow. */
  readonly cursor?: string
}

/** What a put left behind. */
export interface Written {
  readonly key: string
  readonly version: string
  readonly updatedAt: Date
  readonly expiresAt: Date | null
}

/** How long an item lives, and what must be there for it to be written. */
export interface PutOptions {
  /** How long the item lives; null: for ever. Default: what the collection says. */
  readonly ttlMs?: number | null
  /** The version that must be there; null: there must be none. Default: whatever is there. */
  readonly expect?: string | null
}

export interface DeleteOptions {
  readonly expect?: string | null
}

/** One write of a batch. */
export type BatchOperation<Input> =
  | ({ readonly put: string; readonly value: Input } & PutOptions)
  | ({ readonly delete: string } & DeleteOptions)

/** What became of one write of a batch; the others are not concerned. */
export type BatchResult =
  /** `written` is null for a delete. */
  | { readonly status: 'written'; readonly written: Written | null }
  /** `version` is what is there, null for nothing. */
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
  /** With `query`: leaves out what is further away. */
  readonly minScore?: number
}

/** Makes writes that travel in the entry of a step. */
export interface StoreWriter<Input> {
  put(key: string, value: Input, options?: Pick<PutOptions, 'ttlMs'>): Promise<StoreWrite>
  delete(key: string): StoreWrite
}
