import type { DataKey } from '../../codec/secret/data-key.js'
import { CorruptError, DataLossError, InvalidOptionError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import type { DataKeys } from './data-keys.js'
import { KeyLog } from './key-log.js'
import type { Adoption, KeyVault, Masters } from './key-options.js'
import type { KeySource } from './keys.js'
import type { LogEnvironment } from '../log-environment.js'

/** After this long, a process checks whether another one rotated the tenant's key, or destroyed it. */
const LOOK_AGAIN_MS = 5 * 60 * 1000
/** The keys of more tenants than this are not held at once. */
const MAX_TENANTS = 10_000

interface Held {
  readonly keys: DataKeys
  readonly since: number
}

/** What can be known about a tenant's keys without their secrets. */
export interface KeyStatus {
  /** The data key that new entries are written with; undefined before the first. */
  readonly current: string | undefined
  readonly dataKeys: readonly { readonly id: string; readonly createdAt: Date; readonly master: string }[]
  /**
   * When this tenant's first key was created, if it had plain data by then; null: it had none. Undefined before the
   * first key. Plain data counts only where `adoptPlain` accepts it, or below an entry with a key.
   */
  readonly plainUntil: Date | null | undefined
}

/** The data keys of all tenants, held in memory and read from their key logs when needed. */
export class KeyRing implements KeySource {
  readonly encrypt: boolean
  readonly #adoption: Adoption | undefined
  readonly #vault: KeyVault | undefined
  readonly #clock: LogEnvironment['clock']
  readonly #log: KeyLog
  readonly #held = new Map<TenantId, Held>()
  readonly #reading = new Map<TenantId, Promise<DataKeys | undefined>>()
  readonly #creating = new Map<TenantId, Promise<DataKeys | undefined>>()

  constructor(environment: LogEnvironment, masters: Masters) {
    this.encrypt = masters.encrypt
    this.#adoption = masters.adoption
    this.#vault = masters.vault
    this.#clock = environment.clock
    this.#log = new KeyLog(environment, masters)
  }

  async current(tenant: TenantId): Promise<DataKey> {
    const keys = this.#fresh(tenant) ?? (await this.#read(tenant)) ?? (await this.#create(tenant))
    return keys.current()
  }

  async find(tenant: TenantId, id: string): Promise<DataKey> {
    const known = (this.#fresh(tenant) ?? (await this.#read(tenant)))?.find(id)
    if (known) return known
    // Another process may have rotated since. A read in progress may have started before that, so it won't do.
    const key = (await this.#learn(tenant, await this.#log.read(tenant)))?.find(id)
    if (key) return key
    throw new CorruptError(
      `Data key "${id}" is not in the key log of tenant ${JSON.stringify(tenant)}: what names it was altered, or the key log is older.`,
      { tenant, key: id },
    )
  }

  generation(tenant: TenantId, id: string): number | undefined {
    return this.#held.get(tenant)?.keys.generation(id)
  }

  async index(tenant: TenantId): Promise<DataKey | undefined> {
    return (this.#held.get(tenant)?.keys ?? (await this.#read(tenant)))?.first()
  }

  async plainUntil(tenant: TenantId): Promise<number | null> {
    // By the configuration alone: what the store says about its past is the word of anyone who can write to it.
    const adoption = this.#adoption
    if (!adoption?.covers(tenant) || this.#clock.now() >= adoption.acceptUntil) return null
    const keys = this.#held.get(tenant)?.keys ?? (await this.#read(tenant))
    // A key log can only narrow it: a tenant that began with keys has no plain past.
    const cutOver = keys ? keys.state.plainUntil : Number.POSITIVE_INFINITY
    return cutOver === null ? null : Math.min(cutOver, adoption.writtenBefore - 1)
  }

  /** A new data key for new entries; all older entries stay readable. */
  async rotate(tenant: TenantId): Promise<KeyStatus> {
    return statusOf(this.#hold(tenant, await this.#log.rotate(tenant)))
  }

  /** Wraps the tenant's data keys under the current master, so that older masters can go. Entries stay as they are. */
  async rewrap(tenant: TenantId): Promise<KeyStatus> {
    return statusOf(this.#hold(tenant, await this.#log.rewrap(tenant)))
  }

  /** Destroys what opens the tenant's data keys. This process forgets them at once. */
  async destroy(tenant: TenantId): Promise<void> {
    if (this.#vault === undefined) {
      const remedy = 'Open the store with keys.vault; without one, every backup holds the keys too.'
      throw new InvalidOptionError('keys.vault', 'is not set', remedy)
    }
    await this.#vault.destroy(tenant)
    this.#held.delete(tenant)
  }

  async status(tenant: TenantId): Promise<KeyStatus> {
    return statusOf(await this.#learn(tenant, await this.#log.read(tenant)))
  }

  // Not forever: another process may have rotated the key, or destroyed it.
  #fresh(tenant: TenantId): DataKeys | undefined {
    const held = this.#held.get(tenant)
    return held && this.#clock.monotonic() - held.since <= LOOK_AGAIN_MS ? held.keys : undefined
  }

  #read(tenant: TenantId): Promise<DataKeys | undefined> {
    return this.#once(this.#reading, tenant, () => this.#log.read(tenant))
  }

  async #create(tenant: TenantId): Promise<DataKeys> {
    return (await this.#once(this.#creating, tenant, () => this.#log.create(tenant))) as DataKeys
  }

  // Many logs of a tenant that start at once ask once. Failure and absence are not cached: the next one looks again.
  async #once(
    underWay: Map<TenantId, Promise<DataKeys | undefined>>,
    tenant: TenantId,
    ask: () => Promise<DataKeys | undefined>,
  ): Promise<DataKeys | undefined> {
    const other = underWay.get(tenant)
    if (other) return other
    const asking = ask()
    underWay.set(tenant, asking)
    try {
      return await this.#learn(tenant, await asking)
    } finally {
      underWay.delete(tenant)
    }
  }

  /**
   * Keeps what was read, unless it is older than what this process knows: answers may overtake each other, so a second
   * look decides. An older key log would make a retired key the current one again.
   */
  async #learn(tenant: TenantId, keys: DataKeys | undefined): Promise<DataKeys | undefined> {
    if (!isOlder(keys, this.#held.get(tenant)?.keys)) return this.#hold(tenant, keys)
    const again = await this.#log.read(tenant)
    if (!isOlder(again, this.#held.get(tenant)?.keys)) return this.#hold(tenant, again)
    const name = JSON.stringify(tenant)
    const remedy = 'Find out who changed the store, and restore the key log from a current backup.'
    throw new DataLossError(`The key log of tenant ${name} is older than it was, or another.`, { tenant }, remedy)
  }

  #hold(tenant: TenantId, keys: DataKeys | undefined): DataKeys | undefined {
    if (keys === undefined) return undefined
    const held = this.#held.get(tenant)?.keys
    // Answers may overtake each other: the newer one stays.
    const newest = held && held.seq > keys.seq ? held : keys
    this.#held.delete(tenant)
    this.#held.set(tenant, { keys: newest, since: this.#clock.monotonic() })
    const [oldest] = this.#held.keys()
    if (this.#held.size > MAX_TENANTS && oldest !== undefined) this.#held.delete(oldest)
    return newest
  }
}

function isOlder(keys: DataKeys | undefined, held: DataKeys | undefined): boolean {
  if (held === undefined) return false
  return keys === undefined || keys.incarnation !== held.incarnation || keys.seq < held.seq
}

function statusOf(keys: DataKeys | undefined): KeyStatus {
  if (keys === undefined) return { current: undefined, dataKeys: [], plainUntil: undefined }
  const { current, plainUntil } = keys.state
  const dataKeys = Object.entries(keys.state.keys)
    .map(([id, { at, master }]) => ({ id, createdAt: new Date(at), master }))
    .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime())
  return { current, dataKeys, plainUntil: plainUntil === null ? null : new Date(plainUntil) }
}
