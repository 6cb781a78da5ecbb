import type { VerifiedItem } from '../../codec/item.js'
import type { FieldPath, Scalar } from '../../codec/item-field.js'
import type { Redactor } from '../../codec/secret/redactor.js'
import { DataLossError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import { itemDriver } from './carried-writes.js'
import type { ItemDraft } from './item-sealer.js'
import type { LogEnvironment } from '../log-environment.js'
import type { StoreClock } from '../store-clock.js'
import { retry } from '../write/retry.js'
import type { ItemDriver, ItemScan, ItemWrite, ItemWriteResult, StoredItem } from '../store-contract.js'

/** A change of one item. */
export interface ItemChange {
  readonly space: string
  readonly key: string
  /** `null` removes it. */
  readonly item: Omit<ItemDraft, 'space' | 'key' | 'version' | 'at'> | null
  readonly expect?: string | null | undefined
}

export type ChangeResult =
  | { readonly status: 'written'; readonly version: string | null; readonly at: number }
  | { readonly status: 'conflict'; readonly version: string | null }

/** An item as it was read, and verified. */
export type OpenItem = Omit<StoredItem, 'value'> &
  VerifiedItem & {
    /** Its time is over, whatever the driver says: it counts as absent. */
    readonly ended: boolean
  }

const CLEARED_AT_ONCE = 100
/** A conflict at an attempt that is not the first may be one with the attempt before. */
const OWN_WORK = 1

/** The items of one backend, sealed on the way in and verified on the way out. What they mean is decided above. */
export class ItemStore {
  readonly clock: StoreClock
  /** Takes out of values what must not be kept. */
  readonly redactor: Redactor | undefined
  /** The most bytes of JSON that a value may have here. */
  readonly maxBytes: number
  /** The most bytes of JSON that the values of one page may have together. */
  readonly maxReadBytes: number
  readonly #environment: LogEnvironment
  /** Only with keys: without them whoever can put an old version back can as well make a new one. */
  readonly #seen: SeenVersions | undefined
  readonly #admit: (tenant: TenantId) => Promise<void>

  constructor(environment: LogEnvironment, redactor: Redactor | undefined, admit: (tenant: TenantId) => Promise<void>) {
    this.redactor = redactor
    this.clock = environment.clock
    this.maxBytes = environment.limits.maxBytes
    this.maxReadBytes = environment.limits.maxReadBytes
    this.#environment = environment
    this.#seen = environment.keys && new SeenVersions()
    this.#admit = admit
  }

  /**
   * Seals all, then writes. Each is atomic by itself. When a reply is lost the same bytes go again, so a write is done
   * as asked or, after an error, perhaps; a conflict with our own earlier attempt is recognized by its version.
   */
  async write(tenant: TenantId, changes: readonly ItemChange[]): Promise<readonly ChangeResult[]> {
    await this.#admit(tenant)
    const { items, randomId } = this.#environment
    const at = this.clock.now()
    const writes: ItemWrite[] = []
    for (const { space, key, item, expect } of changes) {
      const sealed = item && (await items.seal(tenant, { ...item, space, key, version: randomId(), at }))
      writes.push({ space, key, item: sealed, ...(expect === undefined ? {} : { expect }) })
    }
    const results = await retry(this.#environment, async (attempt) => {
      const done = await this.#driver().writeItems(tenant, writes, at)
      return attempt < OWN_WORK ? done : done.map((result, i) => ownWork(writes[i] as ItemWrite, result))
    })
    return results.map((result, i) => {
      if (result.status === 'conflict') return result
      const write = writes[i] as ItemWrite
      this.#environment.anchors?.noteItem(tenant, { ...write, at })
      this.#seen?.note(idOf(tenant, write.space, write.key), write.item?.version ?? null)
      return { status: 'written', version: writes[i]?.item?.version ?? null, at }
    })
  }

  /** Those that are there and have not ended. */
  async read(
    tenant: TenantId,
    space: string,
    keys: readonly string[],
    options: { readonly extendTo?: number } = {},
  ): Promise<readonly OpenItem[]> {
    await this.#admit(tenant)
    const now = this.clock.now()
    const found = await this.#driver().readItems(tenant, space, keys, { now, ...options })
    return (await this.#open(tenant, space, found, now)).filter(({ ended }) => !ended)
  }

  /** One page in the order of keys, with what has ended. Shorter than its limit only at the end. */
  async scan(
    tenant: TenantId,
    space: string,
    scan: ItemScan,
    now: number = this.clock.now(),
  ): Promise<readonly OpenItem[]> {
    await this.#admit(tenant)
    return this.#open(tenant, space, await this.#driver().scanItems(tenant, space, scan, now), now)
  }

  /** What narrows a scan to items whose fields hold one of these values each. */
  narrow(tenant: TenantId, space: string, fields: readonly (readonly [FieldPath, readonly Scalar[]])[]) {
    return this.#environment.items.narrow(tenant, space, fields)
  }

  async spaces(
    tenant: TenantId,
    options: { readonly after?: string; readonly limit: number },
  ): Promise<readonly string[]> {
    await this.#admit(tenant)
    return this.#driver().listSpaces(tenant, options)
  }

  /**
   * Removes all items of a space, also those that can't be read anymore, and says how many there were. What is written
   * in the meantime may stay.
   */
  async clear(tenant: TenantId, space: string): Promise<number> {
    await this.#admit(tenant)
    let removed = 0
    for (let after: string | undefined; ; ) {
      const now = this.clock.now()
      const scan = { limit: CLEARED_AT_ONCE, ...(after === undefined ? {} : { after }) }
      const page = await retry(this.#environment, () => this.#driver().scanItems(tenant, space, scan, now))
      const writes = page.map(({ key }) => ({ space, key, item: null }))
      if (writes.length > 0) await retry(this.#environment, () => this.#driver().writeItems(tenant, writes, now))
      for (const { key } of page) this.#seen?.note(idOf(tenant, space, key), null)
      removed += page.length
      if (page.length < CLEARED_AT_ONCE) return removed
      after = page.at(-1)?.key
    }
  }

  async sweep(limit: number): Promise<number> {
    return this.#driver().sweepItems(this.clock.now(), limit)
  }

  async #open(
    tenant: TenantId,
    space: string,
    found: readonly StoredItem[],
    now: number,
  ): Promise<readonly OpenItem[]> {
    const opened: OpenItem[] = []
    for (const one of found) {
      const verified = await this.#environment.items.open(tenant, space, one)
      const newest = this.#seen ? await this.#newest(this.#seen, tenant, space, one, now) : one
      // Removed in the meantime. It stays in its page, whose length tells whether others follow.
      const stored = newest ?? one
      const { key, version, createdAt, updatedAt } = stored
      const { vector, size, endsAt, read } =
        stored === one ? verified : await this.#environment.items.open(tenant, space, stored)
      await this.#environment.anchors?.checkItem(tenant, space, stored)
      // The row's own date may be later only by the hand of whoever can write to the store.
      const expiresAt = endsAt === undefined ? stored.expiresAt : Math.min(stored.expiresAt ?? endsAt, endsAt)
      const ended = newest === undefined || (endsAt !== undefined && endsAt <= now)
      opened.push({ key, version, createdAt, updatedAt, expiresAt, ended, vector, size, endsAt, read })
    }
    return opened
  }

  /** An item that verified, unless it was replaced before: a read may be overtaken by a write, so a second look decides. */
  async #newest(
    seen: SeenVersions,
    tenant: TenantId,
    space: string,
    stored: StoredItem,
    now: number,
  ): Promise<StoredItem | undefined> {
    const { key } = stored
    const id = idOf(tenant, space, key)
    if (!seen.isReplaced(id, stored.version)) {
      seen.note(id, stored.version)
      return stored
    }
    const [again] = await this.#driver().readItems(tenant, space, [key], { now })
    if (again === undefined || !seen.isReplaced(id, again.version)) return again
    const message = `The backend holds an older version of item ${JSON.stringify(key)} of ${JSON.stringify(space)} again.`
    const remedy = 'Find out who changed the store; write the item again, or restore a current backup.'
    throw new DataLossError(message, { space, key, version: again.version }, remedy)
  }

  #driver(): ItemDriver {
    return itemDriver(this.#environment.driver)
  }
}

function idOf(tenant: TenantId, space: string, key: string): string {
  return JSON.stringify([tenant, space, key])
}

// Our version is there: the attempt whose reply was lost wrote it. What we wanted gone is gone.
function ownWork({ item, expect }: ItemWrite, result: ItemWriteResult): ItemWriteResult {
  if (result.status === 'written') return result
  const isOurs = item === null ? result.version === null && expect !== null : result.version === item.version
  return isOurs ? { status: 'written' } : result
}

/** This many items, and as many replaced versions, are remembered. */
const MAX_ITEMS = 20_000
const MAX_REPLACED = 100_000

/**
 * The versions of items that this process has seen replaced. A version is new with every write, so one that reappears
 * was put back by hand. Remembers the most recent ones, in this process only.
 */
class SeenVersions {
  readonly #current = new Map<string, string | null>()
  readonly #replaced = new Set<string>()

  /** An item has this version now; null: it was removed. */
  note(item: string, version: string | null): void {
    const before = this.#current.get(item)
    this.#current.delete(item)
    this.#current.set(item, version)
    if (before !== undefined && before !== null && before !== version) this.#replaced.add(nameOf(item, before))
    dropOldest(this.#current, MAX_ITEMS)
    dropOldest(this.#replaced, MAX_REPLACED)
  }

  /** True for a version that was there before the one that this process saw last. */
  isReplaced(item: string, version: string): boolean {
    return this.#replaced.has(nameOf(item, version))
  }
}

function nameOf(item: string, version: string): string {
  return `${version}\n${item}`
}

function dropOldest(kept: Map<string, unknown> | Set<string>, most: number): void {
  if (kept.size <= most) return
  const [oldest] = kept.keys()
  if (oldest !== undefined) kept.delete(oldest)
}
