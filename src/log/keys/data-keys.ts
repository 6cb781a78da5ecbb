import { randomBytes } from 'node:crypto'
import { type DataKey, deriveDataKey, SECRET_BYTES } from '../../codec/secret/data-key.js'
import { joinSecret, type MasterKey, unwrapSecret, wrapSecret } from '../../codec/secret/master-key.js'
import type { Value } from '../../codec/value.js'
import { CorruptError, HoldfastError, MissingKeyError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import { showName } from '../../core/wording/secrets.js'
import type { Fold } from '../entry/fold.js'
import type { Masters } from './key-options.js'
import { type Op, type State, set } from '../entry/ops.js'

/** A data key as the key log holds it. */
interface WrappedKey {
  readonly at: number
  readonly master: string
  readonly wrapped: Uint8Array
  /** It can be unwrapped only with the tenant's secret from the vault. Absent in key logs that never had one. */
  readonly vault?: true
}

/** The state of a key log. */
interface KeyState {
  readonly plainUntil: number | null
  readonly current: string
  /** The first key: the one that fields of items are named by, which must not change with the current one. */
  readonly first: string
  readonly keys: Readonly<Record<string, WrappedKey>>
}

/** The data keys of one tenant, as its key log holds them at one moment. Each is unwrapped when first used. */
export class DataKeys {
  readonly state: KeyState
  /** The entry of the key log that this is the state after. */
  readonly seq: number
  readonly incarnation: string
  readonly #tenant: TenantId
  readonly #masters: Masters
  readonly #secretOfTenant: Uint8Array | undefined
  readonly #unwrapped = new Map<string, DataKey>()

  constructor(tenant: TenantId, fold: Fold, masters: Masters, secretOfTenant: Uint8Array | undefined) {
    this.state = readState(tenant, fold.state)
    this.seq = fold.seq
    this.incarnation = fold.incarnation
    this.#tenant = tenant
    this.#masters = masters
    this.#secretOfTenant = secretOfTenant
  }

  current(): DataKey {
    return this.find(this.state.current) as DataKey
  }

  first(): DataKey {
    return this.find(this.state.first) as DataKey
  }

  /** Undefined if the key log does not hold that key. */
  find(id: string): DataKey | undefined {
    const known = this.#unwrapped.get(id)
    if (known !== undefined || !Object.hasOwn(this.state.keys, id)) return known
    const key = deriveDataKey(id, this.#secret(id))
    this.#unwrapped.set(id, key)
    return key
  }

  /** How many keys were made before this one; undefined if the key log does not hold it. */
  generation(id: string): number | undefined {
    // In the order in which they were added, which objects keep for all but whole numbers.
    const at = Object.keys(this.state.keys).indexOf(id)
    return at === -1 ? undefined : at
  }

  /** Rewraps every data key under the current master. */
  rewrap(): Op[] {
    return Object.entries(this.state.keys).map(([id, { at }]) =>
      set(['keys', id], wrap(this.#masters, this.#tenant, { id, at, secret: this.#secret(id) }, this.#secretOfTenant)),
    )
  }

  #secret(id: string): Uint8Array {
    const { master, wrapped, vault } = this.state.keys[id] as WrappedKey
    const found = findMaster(this.#masters, master, this.#tenant)
    if (vault && this.#secretOfTenant === undefined) throw withoutSecret(this.#tenant, this.#masters)
    const opening = vault ? joinSecret(found, this.#secretOfTenant as Uint8Array) : found
    return unwrapSecret(opening, wrapped, { tenant: this.#tenant, id })
  }
}

/** Adds a new random data key and makes it the one to write with. */
export function newDataKey(
  masters: Masters,
  tenant: TenantId,
  at: number,
  secretOfTenant: Uint8Array | undefined,
  isFirst = false,
): Op[] {
  // Entries name their key, so its id is short; 48 random bits are plenty among the keys of one tenant.
  const id = newId()
  const key = wrap(masters, tenant, { id, at, secret: randomBytes(SECRET_BYTES) }, secretOfTenant)
  const ops = [set(['keys', id], key), set('current', id)]
  return isFirst ? [...ops, set('first', id)] : ops
}

// Not all digits: an object would put such a name before the others, and their order is that of their age.
function newId(): string {
  const id = randomBytes(6).toString('base64url')
  return /^\d+$/.test(id) ? newId() : id
}

export function findMaster(masters: Masters, id: string, tenant: TenantId): MasterKey {
  const master = masters.all.get(id)
  if (master !== undefined) return master
  const key = showName(id)
  const message = `The data keys of tenant ${JSON.stringify(tenant)} need the master key "${key}", which is not configured.`
  const remedy = `Add it to keys.masters: { '${key}': <its 32 bytes> }. Keep old master keys until keys.rewrap() is done.`
  throw new MissingKeyError(message, { key, tenant }, remedy)
}

function wrap(
  { current: master, vault }: Masters,
  tenant: TenantId,
  { id, at, secret }: { readonly id: string; readonly at: number; readonly secret: Uint8Array },
  secretOfTenant: Uint8Array | undefined,
): Record<string, Value> {
  if (vault === undefined) return { at, master: master.id, wrapped: wrapSecret(master, secret, { tenant, id }) }
  if (secretOfTenant === undefined)
    throw new MissingKeyError(`The vault has no secret of tenant "${tenant}".`, { tenant })
  const wrapped = wrapSecret(joinSecret(master, secretOfTenant), secret, { tenant, id })
  return { at, master: master.id, wrapped, vault: true }
}

function withoutSecret(tenant: TenantId, { vault }: Masters): HoldfastError {
  const name = JSON.stringify(tenant)
  const message = vault
    ? `The vault has no secret of tenant ${name}: it was destroyed, or this is another vault.`
    : `The data keys of tenant ${name} open only with a vault, and none is configured.`
  const remedy = vault ? 'If it was destroyed, its data is gone for good.' : 'Set keys.vault as when they were made.'
  return new HoldfastError('missing-key', message, { data: { tenant }, remedy })
}

// It verified under a master key, so a mismatch means another version's rules, not an attack.
function readState(tenant: TenantId, state: State): KeyState {
  const { plainUntil, current, first, keys } = state as Partial<Record<keyof KeyState, unknown>>
  const fits =
    (plainUntil === null || typeof plainUntil === 'number') &&
    typeof current === 'string' &&
    typeof first === 'string' &&
    typeof keys === 'object' &&
    keys !== null &&
    Object.hasOwn(keys, current) &&
    Object.hasOwn(keys, first) &&
    Object.values(keys).every(isWrappedKey)
  if (!fits) throw new CorruptError(`The key log of tenant ${JSON.stringify(tenant)} has an unknown form.`, { tenant })
  return state as unknown as KeyState
}

function isWrappedKey(value: unknown): boolean {
  const { at, master, wrapped, vault } = (value ?? {}) as Partial<WrappedKey>
  if (vault !== undefined && vault !== true) return false
  return typeof at === 'number' && typeof master === 'string' && wrapped instanceof Uint8Array
}
