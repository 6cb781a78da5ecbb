import {
  formatPolicy,
  type RetentionPolicy,
  readPolicy,
  type StoreRetentionPolicy,
  ttlOf,
} from '../../../core/retention.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { IndexPatch } from '../../../log/entry/index-state.js'
import { type Op, set } from '../../../log/entry/ops.js'
import type { ProgramPlan } from '../../program/program.js'
import { CAPPED, RETENTION } from './labels.js'
import type { RunState } from './run-state.js'

/** Who says how long a thread lives. */
export interface Expiry {
  readonly store: StoreRetentionPolicy
  /** Given for this thread alone. */
  readonly own?: RetentionPolicy | undefined
}

type ExpiryPatch = Pick<IndexPatch, 'expiresAt'>

/**
 * For the first entry of a thread: that it was started under a policy. What was started before there was one, or under
 * 'keep', stays until a policy covers it.
 */
export function beginUnder({ store }: Expiry, { seq }: Fold): readonly Op[] {
  return seq < 0 && store.ttlMs !== 'never' ? [set('retention', true)] : []
}

/** The label that tells every process what the program, or whoever opened the thread, said about it. */
export function retentionLabel({ own }: Expiry, { index }: Fold, plan: ProgramPlan): string | undefined {
  const known = index.metadata[RETENTION]
  if (own !== undefined) return formatPolicy(own, true)
  if (readPolicy(known)?.isOwn) return known as string
  return plan.retention && formatPolicy(plan.retention, false)
}

/** The labels that change with what is said of a thread's life. */
export function retentionLabels(
  label: string | undefined,
  metadata: Fold['index']['metadata'],
): IndexPatch['metadata'] {
  const caps = readPolicy(label)?.caps
  const isCapped = caps !== undefined && caps !== 'none'
  return {
    ...(label === metadata[RETENTION] ? {} : { [RETENTION]: label ?? null }),
    ...(isCapped === CAPPED in metadata ? {} : { [CAPPED]: isCapped || null }),
  }
}

/** For an entry after which nothing in the thread is open: when it expires if nobody uses it. */
export function expiresWhenAtRest(
  { store }: Expiry,
  { index, state }: Fold,
  plan: ProgramPlan | undefined,
  now: number,
): ExpiryPatch {
  const policy = readPolicy(index.metadata[RETENTION])
  const isUnder = (state as RunState).retention === true || policy?.ttlMs !== undefined
  const ttl = isUnder ? ttlOf([policy, store], plan?.defaultTtlMs) : null
  return ttl === null ? staysOpen(index) : { expiresAt: now + ttl }
}

/**
 * For an entry after which something is open: nothing expires during a run, or with an open question or waiting input.
 */
export function staysOpen({ expiresAt }: Pick<Fold['index'], 'expiresAt'>): ExpiryPatch {
  return expiresAt === null ? {} : { expiresAt: null }
}
