import { InvalidOptionError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import { type Adopted, adoptPlain } from './adopt-plain.js'
import type { KeyRing, KeyStatus } from './key-ring.js'
import type { LogEnvironment } from '../log-environment.js'

/** The keys of one tenant, for operators. */
export class TenantKeys {
  readonly #tenant: TenantId
  readonly #ring: KeyRing | undefined
  readonly #environment: LogEnvironment

  readonly #forget: () => void

  /** `forget` drops what is in memory of the tenant. */
  constructor(tenant: TenantId, ring: KeyRing | undefined, environment: LogEnvironment, forget: () => void) {
    this.#tenant = tenant
    this.#ring = ring
    this.#environment = environment
    this.#forget = forget
  }

  /**
   * Creates a new data key. This process uses it for new entries immediately, others within five minutes; everything
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

  /**
   * Puts a key on what this tenant wrote before it had keys, as far as `keys.adoptPlain` accepts it. When it is done,
   * remove `adoptPlain`: from then on nothing without a key counts.
   */
  async adopt(): Promise<Adopted> {
    this.#configured()
    return adoptPlain(this.#environment, this.#tenant)
  }

  /**
   * Destroys the tenant's secret in `keys.vault`, for good: nothing that this tenant wrote can be read anymore, in the
   * store or in any copy of it. This process forgets its keys immediately, others within five minutes.
   */
  async destroy(): Promise<void> {
    await this.#configured().destroy(this.#tenant)
    this.#forget()
  }

  /** Which data keys there are, and under which master key each is wrapped. No secrets. */
  async status(): Promise<KeyStatus> {
    return this.#configured().status(this.#tenant)
  }

  #configured(): KeyRing {
    if (this.#ring) return this.#ring
    throw new InvalidOptionError(
      'keys',
      'is not set',
      'Open the store with { keys: { current, masters } }; the command line reads them from holdfast.config.mjs.',
    )
  }
}
