import { readPolicy, type StoreRetentionPolicy, ttlOf } from '../core/retention.js'
import type { Head } from '../log/contract.js'

/** Under this label, a thread carries what its program, or whoever opened it, said about how long it is kept. */
const RETENTION = 'holdfast.retention'
/** Set on a thread whose run failed while it has an open question. */
const ASKS = 'holdfast.asks'

/** The statuses of threads with nothing open. */
export const RESTING: readonly string[] = ['completed', 'limited', 'failed', 'forked']

/**
 * Whether a branch has expired, by its index row alone. What was promised when it was last used counts, and so does a
 * longer life under the store's current policy; only `existing` shortens one.
 */
export function isExpired({ index, lease }: Head, policy: StoreRetentionPolicy, now: number): boolean {
  const { expiresAt, updatedAt, metadata, tags } = index
  if (lease !== null || index.wakeAt !== null || tags.length > 0) return false
  const own = readPolicy(metadata[RETENTION])
  const ttl = ttlOf([own, policy])
  if (ttl === null) return false
  const isPast = updatedAt + ttl <= now
  if (policy.existing && isPast) return expiresAt !== null || (RESTING.includes(index.status) && !(ASKS in metadata))
  if (expiresAt === null || expiresAt > now) return false
  // The default does not lengthen anyone's life: pipelines have a different one.
  return isPast || (own?.ttlMs === undefined && policy.ttlMs === undefined)
}

/** After how long a branch expires that has no recorded time. Undefined: never. */
export function existingTtl(policy: StoreRetentionPolicy): number | undefined {
  return policy.existing ? (ttlOf([policy]) ?? undefined) : undefined
}
