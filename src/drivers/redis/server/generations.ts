import { probeServer, judgeDurability } from './probe.js'
import type { Survives, Head, LogKey } from '../../../log/contract.js'
import type { RedisLike, Reply } from '../client.js'
import type { ReplicaWait } from '../connection.js'
import { decodeHead } from '../rows/rows.js'
import type { Store } from '../store.js'

/**
 * Counts how often a bucket's server came back, or another took its place, and may have lost its newest writes. A
 * server does not know that it did: what it lost is gone without a trace. So every claim is compared with the run of
 * the server it arrives at, in the same script, and the first to take a log that nobody has owned since is told.
 */
export interface Generation {
  readonly number: number
  /** When it began, by the server's clock. */
  readonly since: number
}

/** What is known about writes that a server acknowledged. */
export interface Trust {
  /** They survive a restart. */
  readonly safe: boolean
  /** A replica that takes over has them. */
  readonly replicated: boolean
}

export function trustOf(durability: Survives, waits: ReplicaWait | undefined, trustRestarts: boolean): Trust {
  return {
    safe: trustRestarts || durability.powerLoss === 'yes',
    replicated: trustRestarts || waits !== undefined,
  }
}

/** The masters, one for a single server. */
export function serversOf(client: RedisLike): readonly RedisLike[] {
  return client.isCluster ? (client.nodes?.('master') ?? []) : [client]
}

/** Marks the buckets of a store or checks their marks, and notes their generations. Returns how many are not ours. */
export async function markBuckets(
  store: Store,
  mode: 'place' | 'check' | 'accept',
  only: readonly number[] = [...store.keys.buckets.keys()],
): Promise<number> {
  const { connection, scripts, keys, marker, trust } = store
  const flag = (value: boolean | undefined): string => (value ? '1' : '0')
  const flags = [flag(trust.safe), flag(trust.replicated), flag(connection.client.isCluster)]
  const replies = await connection.read(
    only.map((bucket) => ({
      script: scripts['mark-bucket'],
      keys: [keys.index(bucket)],
      args: [marker, mode, ...flags],
    })),
  )
  let bad = 0
  for (const [i, reply] of replies.entries()) {
    if (!Array.isArray(reply)) bad += 1
    else store.generations[only[i] as number] = { number: Number(reply[0]), since: Number(reply[1]) }
  }
  return bad
}

/** The settings may be others since the server came back. */
export async function probeAgain(store: Store, waits: ReplicaWait | undefined, trustRestarts: boolean): Promise<void> {
  const probes = await Promise.all(serversOf(store.connection.client).map(probeServer))
  if (probes.length > 0) store.trust = trustOf(judgeDurability(probes, waits), waits, trustRestarts)
}

export function generationOf({ keys, generations }: Store, { tenant, thread }: LogKey): Generation {
  return generations[keys.bucketOf(tenant, thread)] ?? { number: 0, since: 0 }
}

/** A head row, with what may have been lost behind it. */
export function readHeadRow(store: Store, log: LogKey, row: readonly Reply[]): Head {
  const head = decodeHead(log, row)
  const { number: generation, since } = generationOf(store, log)
  if (generation === 0) return { ...head, generation }
  // 'generation of the last owner', and once a guest wrote after the store came back also 'generation seq before it'.
  const [owned, noted, before] = String(row[6] ?? '0')
    .split(' ')
    .map(Number)
  if ((owned ?? 0) >= generation) return { ...head, generation }
  const after = noted === generation && before !== undefined ? before : head.seq
  return { ...head, generation, loss: { at: since, after } }
}
