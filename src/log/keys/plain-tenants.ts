import type { Clock } from '../../core/time/clock.js'
import { decodeHeader } from '../../codec/header.js'
import { masterIdOf } from '../../codec/secret/master-key.js'
import { MissingKeyError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import type { Driver } from '../contract.js'
import { showName } from '../../core/wording/secrets.js'
import { keyLogOf } from './key-log.js'

/** How long a process without keys continues without checking whether the tenant has some now. */
const LOOK_AGAIN_MS = 60 * 1000
const MAX_TENANTS = 10_000

/**
 * Keeps a process without keys away from tenants that use them. Otherwise one service with a forgotten setting would
 * write in plain text, and what it wrote would be refused by all others.
 */
export class PlainTenants {
  readonly #driver: Driver
  readonly #clock: Clock
  readonly #seen = new Map<TenantId, number>()

  constructor(driver: Driver, clock: Clock) {
    this.#driver = driver
    this.#clock = clock
  }

  /** Whether the tenant was found without keys a moment ago. */
  isAdmitted(tenant: TenantId): boolean {
    const seen = this.#seen.get(tenant)
    return seen !== undefined && this.#clock.monotonic() - seen < LOOK_AGAIN_MS
  }

  /** Rejects if the tenant's entries have keys. */
  async admit(tenant: TenantId): Promise<void> {
    if (this.isAdmitted(tenant)) return
    const now = this.#clock.monotonic()
    if ((await this.#driver.head(keyLogOf(tenant))) !== undefined) {
      const message = `The data of tenant ${JSON.stringify(tenant)} has keys, but this store was opened without any.`
      throw new MissingKeyError(message, { tenant }, await this.#remedy(tenant))
    }
    if (this.#seen.size >= MAX_TENANTS) this.#seen.clear()
    this.#seen.set(tenant, now)
  }

  /** Names the master key that is needed: the user has that one, and has never seen the name of a data key. */
  async #remedy(tenant: TenantId): Promise<string | undefined> {
    try {
      const [newest] = await this.#driver.headers(keyLogOf(tenant), { limit: 1 })
      const id = masterIdOf((newest && decodeHeader(newest.header).key) ?? '')
      return id === undefined ? undefined : `Open it with { keys: ${showKeys(id)} }.`
    } catch {
      return undefined
    }
  }
}

function showKeys(id: string): string {
  const master = showName(id)
  return `{ current: '${master}', masters: { '${master}': <its 32 bytes> } }`
}
