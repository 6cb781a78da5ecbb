import { randomBytes } from 'node:crypto'
import { type DataKey, SECRET_BYTES } from '../../codec/secret/data-key.js'
import { decodeHeader } from '../../codec/header.js'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { masterIdOf } from '../../codec/secret/master-key.js'
import { CorruptError, HoldfastError, isHoldfastError } from '../../core/errors.js'
import { MAIN_BRANCH, type TenantId } from '../../core/ids.js'
import type { Head, LogKey } from '../contract.js'
import { DataKeys, findMaster, newDataKey } from './data-keys.js'
import type { Masters } from './key-options.js'
import { isReservedThread, KEY_THREAD, type KeySource } from './keys.js'
import { Log } from '../log.js'
import type { LogEnvironment } from '../log-environment.js'
import { set } from '../entry/ops.js'

/**
 * Where the data keys of each tenant are kept: an ordinary log in a reserved thread, wrapped and authenticated under
 * the operator's master keys. Because it is a log, it exists on every backend, and if many processes create it at once,
 * exactly one wins and the others use its key.
 */
export class KeyLog {
  readonly #environment: LogEnvironment
  readonly #masters: Masters

  constructor(environment: LogEnvironment, masters: Masters) {
    this.#masters = masters
    // A small limit or threshold set by the user must not send keys to blobs or refuse them.
    const blobThreshold = Number.MAX_SAFE_INTEGER
    this.#environment = { ...environment, limits: DEFAULT_LIMITS, blobThreshold, keys: chainKeys(masters) }
  }

  /** The tenant's data keys, or undefined if it never had any. */
  async read(tenant: TenantId): Promise<DataKeys | undefined> {
    const log = await this.#open(tenant)
    return log.exists ? this.#keysOf(tenant, log) : undefined
  }

  /** The tenant's data keys, with a first one made if there is none. */
  async create(tenant: TenantId): Promise<DataKeys> {
    const log = await this.#open(tenant)
    if (!log.exists) {
      const plainUntil = await this.#findCutOver(tenant, log)
      const secret = await this.#makeSecret(tenant)
      await log.update(({ seq }) => {
        if (seq >= 0) return undefined
        const first = newDataKey(this.#masters, tenant, this.#now(), secret, true)
        return [{ kind: 'keys', ops: [set('plainUntil', plainUntil), ...first] }]
      })
    }
    return this.#keysOf(tenant, log)
  }

  /** Adds a data key for new entries. */
  async rotate(tenant: TenantId): Promise<DataKeys> {
    const log = await this.#open(tenant)
    if (!log.exists) return this.create(tenant)
    const secret = await this.#makeSecret(tenant)
    await log.update(() => [{ kind: 'rotate', ops: newDataKey(this.#masters, tenant, this.#now(), secret) }])
    return this.#keysOf(tenant, log)
  }

  /**
   * Wraps every data key under the current master. The entry is a keyframe and what comes before it is removed, so that
   * nothing in the key log needs an older master anymore.
   */
  async rewrap(tenant: TenantId): Promise<DataKeys> {
    const log = await this.#open(tenant)
    if (!log.exists) return this.create(tenant)
    const secret = await this.#makeSecret(tenant)
    const { entries } = await log.update((fold) => {
      const ops = new DataKeys(tenant, fold, this.#masters, secret).rewrap()
      return [{ kind: 'rewrap', ops, keyframe: true }]
    })
    const [rewrapped] = entries
    if (rewrapped) await this.#environment.driver.prune(log.key, log.fold.incarnation, rewrapped.seq)
    return this.#keysOf(tenant, log)
  }

  async #open(tenant: TenantId): Promise<Log> {
    try {
      return await Log.open(this.#environment, keyLogOf(tenant))
    } catch (error) {
      throw isHoldfastError(error, 'corrupt') ? unverified(tenant, error) : error
    }
  }

  /**
   * Null for a tenant without logs and items: it never had any without a key. Otherwise the time from which on they
   * need one: now, or the date of the newest log if some clock ran ahead.
   */
  async #findCutOver(tenant: TenantId, log: Log): Promise<number | null> {
    const { driver } = this.#environment
    const page = await driver.heads({ tenant, order: 'updated', limit: 2 })
    const newest = page.heads.find((head) => !isReservedThread(head.log.thread))
    if (newest === undefined) {
      const spaces = await driver.listSpaces?.(tenant, { limit: 1 })
      return spaces === undefined || spaces.length === 0 ? null : this.#now()
    }
    const key = await this.#keyOfHead(newest)
    // Unless another process was faster: then its key log is there by now.
    if (key !== null && (await log.refresh()).seq < 0) {
      throw new CorruptError(
        `Tenant ${JSON.stringify(tenant)} has entries under data key "${key}", but its key log is gone.`,
        { tenant, key },
      )
    }
    return Math.max(this.#now(), newest.index.updatedAt)
  }

  async #keyOfHead({ log }: Head): Promise<string | null> {
    const [newest] = await this.#environment.driver.headers(log, { limit: 1 })
    try {
      return newest === undefined ? null : decodeHeader(newest.header).key
    } catch (error) {
      // One damaged thread must not keep the others from being written.
      if (isHoldfastError(error, 'corrupt')) return null
      throw error
    }
  }

  async #keysOf(tenant: TenantId, log: Log): Promise<DataKeys> {
    return new DataKeys(tenant, log.fold, this.#masters, await this.#masters.vault?.read(tenant))
  }

  /** The tenant's secret from the vault, made if it has none; undefined without a vault. */
  async #makeSecret(tenant: TenantId): Promise<Uint8Array | undefined> {
    const { vault } = this.#masters
    return vault && ((await vault.read(tenant)) ?? (await vault.create(tenant, randomBytes(SECRET_BYTES))))
  }

  #now(): number {
    return this.#environment.clock.now()
  }
}

export function keyLogOf(tenant: TenantId): LogKey {
  return { tenant, thread: KEY_THREAD, branch: MAIN_BRANCH }
}

/** The keys of the key logs themselves: derived from the masters, and there is no past without them. */
function chainKeys(masters: Masters): KeySource {
  return {
    encrypt: false,
    current: async (): Promise<DataKey> => masters.current.chainKey,
    find: async (tenant, id) => {
      const master = masterIdOf(id)
      if (master === undefined)
        throw new CorruptError(`A key log names "${id}", which is not a master key.`, { tenant })
      return findMaster(masters, master, tenant).chainKey
    },
    index: async () => undefined,
    // A rewrap under an older master that came back is not an error.
    generation: () => undefined,
    plainUntil: async () => null,
  }
}

// Not a CorruptError: a thread whose keys can't be read is not damaged, and forking it would lose what is good.
function unverified(tenant: TenantId, cause: HoldfastError): HoldfastError {
  return new HoldfastError('corrupt', `The key log of tenant ${JSON.stringify(tenant)} does not verify.`, {
    data: { ...cause.data, tenant },
    cause,
    remedy:
      'Check that each master key is the one that was used under its id; if it is, the key log was altered: restore it from a backup.',
  })
}
