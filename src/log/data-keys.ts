import { randomBytes } from 'node:crypto'
import { type DataKey, deriveDataKey, SECRET_BYTES } from '../codec/data-key.js'
import { type MasterKey, unwrapSecret, wrapSecret } from '../codec/master-key.js'
import type { Value } from '../codec/value.js'
import { CorruptError, MissingKeyError } from '../core/errors.js'
import type { TenantId } from '../core/ids.js'
import { showName } from '../core/secrets.js'
import type { Fold } from './fold.js'
import type { Masters } from './key-options.js'
import { type Op, type State, set } from './ops.js'

/** A data key as the key log holds it. */
interface WrappedKey {
  readonly at: number
  readonly master: string
  readonly wrapped: Uint8Array
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
  readonly #unwrapped = new Map<string, DataKey>()

  constructor(tenant: TenantId, fold: Fold, masters: Masters) {
    this.state = readState(tenant, fold.state)
    this.seq = fold.seq
    this.incarnation = fold.incarnation
    this.#tenant = tenant
    this.#masters = masters
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

  /** What wraps every data key anew under the current master. */
  rewrap(): Op[] {
    return Object.entries(this.state.keys).map(([id, { at }]) =>
      set(['keys', id], wrap(this.#masters.current, this.#tenant, id, at, this.#secret(id))),
    )
  }

  #secret(id: string): Uint8Array {
    const { master, wrapped } = this.state.keys[id] as WrappedKey
    return unwrapSecret(findMaster(this.#masters, master, this.#tenant), wrapped, { tenant: this.#tenant, id })
  }
}

/** What adds a new random data key and makes it the one to write with. */
export function newDataKey(masters: Masters, tenant: TenantId, at: number, isFirst = false): Op[] {
  // Entries name their key, so its id is short; 48 random bits are plenty among the keys of one tenant.
  const id = newId()
  const ops = [set(['keys', id], wrap(masters.current, tenant, id, at, randomBytes(SECRET_BYTES))), set('current', id)]
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
  throw new MissingKeyError(message, { key, tenant })
}

function wrap(master: MasterKey, tenant: TenantId, id: string, at: number, secret: Uint8Array): Record<string, Value> {
  return { at, master: master.id, wrapped: wrapSecret(master, secret, { tenant, id }) }
}

// It verified under a master key, so a misfit means another version's rules, not an attack.
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
  const { at, master, wrapped } = (value ?? {}) as Partial<WrappedKey>
  return typeof at === 'number' && typeof master === 'string' && wrapped instanceof Uint8Array
}
