import { InvalidOptionError } from '../core/errors.js'
import type { TenantId } from '../core/ids.js'
import type { KeyRing, KeyStatus } from './key-ring.js'

/** The keys of one tenant, for operators. */
export class TenantKeys {
  readonly #tenant: TenantId
  readonly #ring: KeyRing | undefined

  constructor(tenant: TenantId, ring: KeyRing | undefined) {
    this.#tenant = tenant
    this.#ring = ring
  }

  /**
   * Makes a new data key. This process writes new entries with it at once, others within five minutes; everything
   * older stays readable.
   */
  async rotate(): Promise<KeyStatus> {
    return this.#configured().rotate(this.#tenant)
  }

  /**
   * Wraps every data key of this tenant under the current master key. Entries are not rewritten. When it is done for
   * every tenant, older master keys can be dropped.
   */
  async rewrap(): Promise<KeyStatus> {
    return this.#configured().rewrap(this.#tenant)
  }

  /** Which data keys there are, and under which master key each is wrapped. No secrets. */
  async status(): Promise<KeyStatus> {
    return this.#configured().status(this.#tenant)
  }

  #configured(): KeyRing {
    if (this.#ring) return this.#ring
    throw new InvalidOptionError('keys', 'is not set', 'Open the store with the option keys to use keys.')
  }
}
