import type { TenantId } from '../core/ids.js'
import type { LogKey } from './contract.js'

/**
 * One item of the store as a driver keeps it. Spaces and keys are well-formed text of 1 to 1,024 bytes of UTF-8 without
 * NUL, compared byte by byte; their meaning is decided above. The value is bytes that a driver never inspects.
 */
export interface StoredItem {
  readonly key: string
  readonly value: Uint8Array
  /** New with every write. At most 64 bytes of ASCII. */
  readonly version: string
  /** Wall times in milliseconds since 1970, given by the writer. `createdAt` survives overwriting, not removal or expiry. */
  readonly createdAt: number
  readonly updatedAt: number
  /** From this moment on (`now >= expiresAt`) the item is absent for every method. */
  readonly expiresAt: number | null
  /** Only from a scan that requested them: as they were written. */
  readonly fields?: NewItem['fields']
}

/** What a write leaves behind. */
export interface NewItem {
  readonly value: Uint8Array
  readonly version: string
  readonly at: number
  readonly expiresAt: number | null
  /** Names and tokens that can narrow a scan. At most 16, each at most 128 bytes, without duplicate names. */
  readonly fields: readonly (readonly [name: string, token: string])[]
}

/** One write of one item. */
export interface ItemWrite {
  readonly space: string
  readonly key: string
  /** `null` removes the item; removing what doesn't exist is no error. */
  readonly item: NewItem | null
  /** Absent: anything. `null`: there must be none. Otherwise: the version that must be current. */
  readonly expect?: string | null
}

/** The outcome of the write of an item. */
export type ItemWriteResult =
  | { readonly status: 'written' }
  /** Nothing was written; `version` is the current version, `null` if there is no item. */
  | { readonly status: 'conflict'; readonly version: string | null }

/** Which items of a space to read, in the order of their keys. */
export interface ItemScan {
  /** Only keys that begin with this, byte by byte: no character in it has a special meaning. */
  readonly prefix?: string
  /** Only keys above this, by their UTF-8 bytes. */
  readonly after?: string
  readonly limit: number
  /**
   * Leaves out items that have a token of that name which is not one of these. An item that has no field of that name
   * stays: it was written before the field was indexed, and only the layer above can tell. A driver may ignore this and
   * return more, never less.
   */
  readonly where?: readonly (readonly [name: string, tokens: readonly string[]])[]
  /** Returns the fields of the items as well, for callers that write them elsewhere. */
  readonly fields?: boolean
}

/** A write that an entry carries, ready to be applied. */
export interface CarriedWrite {
  readonly seq: number
  readonly space: string
  readonly key: string
  /** `null` removes the item. */
  readonly item: NewItem | null
  /** The time of the entry. */
  readonly at: number
}

/** The store's keys: memory that outlives threads. Part of every driver. */
export interface ItemDriver {
  /**
   * Each write is atomic by itself: compared and done in one step, or not at all. Results by index. At most one write
   * per space and key in a call. `now` decides what has expired, and is the time of a removal. As durable as appends.
   */
  writeItems(tenant: TenantId, writes: readonly ItemWrite[], now: number): Promise<readonly ItemWriteResult[]>

  /**
   * The items that exist and have not expired, in any order, each once. With `extendTo`, those that have an expiry get
   * it moved there if that is later, and are returned with it; nothing else about them changes, not even their version.
   */
  readItems(
    tenant: TenantId,
    space: string,
    keys: readonly string[],
    options: { readonly now: number; readonly extendTo?: number },
  ): Promise<readonly StoredItem[]>

  /**
   * Up to `limit` items of a space in the order of their keys' UTF-8 bytes, without expired ones; fewer than `limit`
   * only at the end. An item that exists throughout is returned exactly once when pages follow each other by `after`.
   */
  scanItems(tenant: TenantId, space: string, scan: ItemScan, now: number): Promise<readonly StoredItem[]>

  /**
   * Up to `limit` names of spaces of a tenant that hold items, ascending by UTF-8 bytes, above `after`. May name one
   * whose items are all gone or expired; fewer than `limit` only at the end.
   */
  listSpaces(tenant: TenantId, options: { readonly after?: string; readonly limit: number }): Promise<readonly string[]>

  /** Removes up to `limit` items that have expired, of all tenants, and returns how many. */
  sweepItems(now: number, limit: number): Promise<number>

  /**
   * Only where `capabilities.storeAtomic` is false: applies the writes that entries of a log carry, in order, and then
   * records that all up to `upTo` are applied (`Head.applied`, which never moves back). Where it is true, `append`
   * applies `Append.carried` in the same atomic step, unconditionally, and this is never called. In both cases, at most
   * one write per space and key, and `createdAt` is kept as by `writeItems` (`at` decides what has expired).
   *
   * Applying again changes nothing: an item remembers the newest seq of each log that wrote it (at least of the last 16
   * logs, identified by incarnation), and when and by whom it was last written or removed. A write is skipped if the
   * item holds one from the same log with that seq or a higher one; with `redo`, also if the last change to it was made
   * by anyone but this log at a later time than `at`. So a redo after a crash never undoes what happened since, while a
   * first application is never lost to another machine's clock. Overwriting keeps what an item remembers; a removed or
   * swept item, whoever removed it, is remembered for a day.
   *
   * Returns false, and neither applies nor records anything, if the log is gone or has another incarnation.
   */
  applyWrites(
    log: LogKey,
    incarnation: string,
    writes: readonly CarriedWrite[],
    options: { readonly upTo: number; readonly redo: boolean },
  ): Promise<boolean>
}
