import { InvalidOptionError } from '../../core/errors.js'

/**
 * Where each tenant's own secret is kept, apart from the store and its backups. A tenant's data keys can be unwrapped
 * only with it, so that destroying it makes every copy of the store unreadable for that tenant. Create one with
 * `fileVault`, or from three functions over your secret manager.
 */
export interface KeyVault {
  /** The tenant's secret, 32 bytes; undefined if it has none, or it was destroyed. */
  read(tenant: string): Promise<Uint8Array | undefined>
  /**
   * Keeps a secret for a tenant that has none and returns the one that is kept, which may be another process's. Must
   * reject for a tenant whose secret was destroyed.
   */
  create(tenant: string, secret: Uint8Array): Promise<Uint8Array>
  /** Removes a tenant's secret for good, with every copy of it. */
  destroy(tenant: string): Promise<void>
}

export function checkVault(given: unknown): KeyVault {
  const vault = (given ?? {}) as Partial<Record<keyof KeyVault, unknown>>
  const methods = ['read', 'create', 'destroy'] as const
  if (methods.every((name) => typeof vault[name] === 'function')) return given as KeyVault
  throw new InvalidOptionError(
    'keys.vault',
    'is not a vault',
    "Pass fileVault('/elsewhere/vault'), or { read, create, destroy } of your own.",
  )
}
