import type { DataKey } from '../../codec/secret/data-key.js'
import { corruptItem, encodeItem, type ItemPlace, type VerifiedItem, verifyItem } from '../../codec/item.js'
import { type FieldPath, fieldAt, fieldName, fieldToken, type Scalar } from '../../codec/item-field.js'
import type { Limits } from '../../codec/limits.js'
import type { Encoded } from '../../codec/value.js'
import { andThen } from '../../core/async/at-once.js'
import { CorruptError, MissingKeyError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import { PLAIN_REMEDY } from '../entry/entry-opening.js'
import type { KeySource } from '../keys/keys.js'
import type { ItemScan, NewItem, StoredItem } from '../store-contract.js'

/** An item to be written. */
export interface ItemDraft {
  readonly space: string
  readonly key: string
  readonly content: Pick<Encoded, 'json' | 'value'>
  readonly expiresAt: number | null
  /** Reading it may put its end off. */
  readonly renewable?: boolean | undefined
  /** Fields that a driver may narrow by. */
  readonly index?: readonly FieldPath[] | undefined
  readonly vector?: Float32Array | undefined
  readonly version: string
  readonly at: number
}

/** Turns items into what drivers keep and back: sealed under the tenant's key where there is one. */
export class ItemSealer {
  readonly #limits: Limits
  readonly #keys: KeySource | undefined

  constructor(limits: Limits, keys: KeySource | undefined) {
    this.#limits = limits
    this.#keys = keys
  }

  /** It takes time only if a key has to be fetched or much has to be packed. */
  seal(tenant: TenantId, draft: ItemDraft): NewItem | Promise<NewItem> {
    const dataKey = this.#keys ? this.#keys.current(tenant) : null
    if (dataKey instanceof Promise || (this.#keys && draft.index?.length)) return this.#sealWithKeys(tenant, draft)
    return this.#seal(tenant, draft, dataKey)
  }

  async #sealWithKeys(tenant: TenantId, draft: ItemDraft): Promise<NewItem> {
    const dataKey = (await this.#keys?.current(tenant)) ?? null
    const indexKey = draft.index?.length ? (await this.#keys?.index(tenant))?.macKey : undefined
    return this.#seal(tenant, draft, dataKey, indexKey)
  }

  #seal(
    tenant: TenantId,
    draft: ItemDraft,
    dataKey: DataKey | null,
    indexKey?: DataKey['macKey'],
  ): NewItem | Promise<NewItem> {
    const { space, key, version, at, expiresAt, renewable = false, index = [], vector } = draft
    const { json, value } = draft.content
    const place = { tenant, space, key }
    const facts = { version, at, expiresAt, renewable }
    const fields = index.map(
      (path) => [fieldName(path, indexKey), fieldToken(space, path, fieldAt(value, path), indexKey)] as const,
    )
    const encoding = encodeItem(place, facts, { json, vector }, dataKey, this.#keys?.encrypt ?? false)
    return andThen(encoding, (bytes) => ({ value: bytes, version, at, expiresAt, fields }))
  }

  /** Verifies an item. Rejects with CorruptError if it is not what was written there. */
  async open(tenant: TenantId, space: string, stored: StoredItem): Promise<VerifiedItem> {
    const { key, version, updatedAt: at } = stored
    const place = { tenant, space, key }
    try {
      const item = await verifyItem(place, { version, at }, stored.value, this.#limits, (id, at) =>
        this.#findKey(tenant, place, id, at),
      )
      return { vector: item.vector, size: item.size, endsAt: item.endsAt, read: () => readNamed(item, place) }
    } catch (error) {
      throw named(error, place)
    }
  }

  /**
   * What narrows a scan to items whose field is one of these values. Items that were written before the field was
   * indexed, or before there were keys, carry no such name and are not left out.
   */
  async narrow(
    tenant: TenantId,
    space: string,
    fields: readonly (readonly [FieldPath, readonly Scalar[]])[],
  ): Promise<NonNullable<ItemScan['where']>> {
    const key = fields.length === 0 || !this.#keys ? undefined : await this.#keys.index(tenant)
    // A tenant without keys has no items that carry names under one.
    if (this.#keys && key === undefined) return []
    return fields.map(([path, values]) => [
      fieldName(path, key?.macKey),
      [...new Set(values.map((value) => fieldToken(space, path, value, key?.macKey)))],
    ])
  }

  #findKey(tenant: TenantId, place: ItemPlace, id: string | null, at: number): null | Promise<DataKey | null> {
    const keys = this.#keys
    if (id !== null) {
      if (keys) return keys.find(tenant, id)
      throw new MissingKeyError(
        `An item was written under the data key "${id}", but this store was opened without keys.`,
        { key: id },
      )
    }
    if (!keys) return null
    return keys.plainUntil(tenant).then((until) => {
      if (until !== null && at <= until) return null
      throw corruptItem(
        place,
        'is not authenticated: keys are configured, and it was written without one',
        undefined,
        PLAIN_REMEDY,
      )
    })
  }
}

async function readNamed(item: VerifiedItem, place: ItemPlace) {
  try {
    return await item.read()
  } catch (error) {
    throw named(error, place)
  }
}

/** What the codec found wrong, with the item it was found in. */
function named(error: unknown, place: ItemPlace): unknown {
  const isNamed = !(error instanceof CorruptError) || error.data.space !== undefined
  return isNamed ? error : corruptItem(place, 'is damaged', error)
}
