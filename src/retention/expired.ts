import { readPolicy, type StoreRetentionPolicy, ttlOf } from '../core/retention.js'
import type { Head } from '../log/contract.js'

/** Under this label a thread carries what its program, or whoever opened it, said of how long it is kept. */
const RETENTION = 'holdfast.retention'
/** Set on a thread whose run failed while a question of it is open. */
const ASKS = 'holdfast.asks'

/** The statuses of threads of which nothing is open. */
export const RESTING: readonly string[] = ['completed', 'limited', 'failed', 'forked']

/**
 * Whether a branch has expired, by the row of the index alone. What was promised when it was last used holds, and so does
 * a longer life that the store's policy gives today; only `existing` shortens one.
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
  // The default is nobody's word for a longer life: pipelines have another one.
  return isPast || (own?.ttlMs === undefined && policy.ttlMs === undefined)
}

/** After how long a branch expires of which no time is recorded. Undefined: never. */
export function existingTtl(policy: StoreRetentionPolicy): number | undefined {
  return policy.existing ? (ttlOf([policy]) ?? undefined) : undefined
}
