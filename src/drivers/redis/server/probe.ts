import { StorageError } from '../../../core/errors.js'
import type { Survives, Survival } from '../../../log/contract.js'
import type { RedisLike } from '../client.js'
import type { ReplicaWait } from '../connection.js'
import { toDriverError } from './errors.js'

const SETTINGS = [
  'appendonly',
  'appendfsync',
  'save',
  'maxmemory-policy',
  'min-replicas-to-write',
  'min-replicas-max-lag',
  'cluster-node-timeout',
] as const

/** The newest writes that `everysec` may lose: one second's worth, and another while a slow fsync delays the next. */
const EVERYSEC_WINDOW = 2000

/** After this long, Linux writes out data on its own. Used if a server hides how often it syncs. */
const UNKNOWN_WINDOW = 30_000

export interface Probe {
  readonly version: string
  readonly isCluster: boolean
  readonly role: string
  readonly replicas: number
  /** Settings as found; one that could not be read is absent. */
  readonly settings: Readonly<Record<string, string>>
}

/** What a server says about itself. CONFIG is often forbidden on managed services; INFO reveals a part of it. */
export async function probeServer(client: RedisLike): Promise<Probe> {
  const info = parseInfo(await ask(client, 'info'))
  const found = await Promise.all(SETTINGS.map((name) => readSetting(client, name)))
  const settings: Record<string, string> = {}
  for (const [i, name] of SETTINGS.entries()) {
    const value = found[i]
    if (value !== undefined) settings[name] = value
  }
  if (info['aof_enabled'] !== undefined) settings['appendonly'] ??= info['aof_enabled'] === '1' ? 'yes' : 'no'
  if (info['maxmemory_policy'] !== undefined) settings['maxmemory-policy'] ??= info['maxmemory_policy']
  return {
    version: info['redis_version'] ?? '0',
    isCluster: info['cluster_enabled'] === '1',
    role: info['role'] ?? 'unknown',
    replicas: Number(info['connected_slaves'] ?? 0),
    settings,
  }
}

async function ask(client: RedisLike, command: string): Promise<string> {
  try {
    return String(await client.call(command))
  } catch (error) {
    throw toDriverError(error, false)
  }
}

async function readSetting(client: RedisLike, name: string): Promise<string | undefined> {
  try {
    const reply = await client.call('config', 'get', name)
    const value = Array.isArray(reply) ? reply[1] : (reply as Record<string, unknown> | null)?.[name]
    return typeof value === 'string' ? value : undefined
  } catch {
    return undefined
  }
}

export function parseInfo(text: string): Record<string, string> {
  const lines = text.split(/\r?\n/).filter((line) => line.includes(':'))
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
}

/** Refuses a server on which Holdfast can't keep its promises. */
export function checkServer(probe: Probe, options: { readonly allowEviction: boolean }): void {
  const [major = 0, minor = 0] = probe.version.split('.').map(Number)
  if (major < 6 || (major === 6 && minor < 2)) {
    throw new StorageError(
      `This Redis has version ${probe.version}; Holdfast needs 6.2 or later.`,
      'Upgrade the server, or use Valkey.',
      { reason: 'version', written: 'nothing', data: { version: probe.version } },
    )
  }
  if (probe.role === 'slave') {
    throw new StorageError('This Redis is a replica and accepts no writes.', 'Connect to the primary.', {
      reason: 'replica',
      written: 'nothing',
    })
  }
  const policy = probe.settings['maxmemory-policy']
  if (policy?.startsWith('allkeys-') && !options.allowEviction) {
    throw new StorageError(
      `This Redis may evict any key when its memory is full (maxmemory-policy ${policy}): threads would vanish.`,
      'Set maxmemory-policy to noeviction, or, if you can lose threads, open with { redis: { allowEviction: true } }.',
      { reason: 'eviction', written: 'nothing', data: { policy } },
    )
  }
}

/** What an acknowledged append survives on all of these servers. */
export function judgeDurability(probes: readonly Probe[], waitReplicas: ReplicaWait | undefined): Survives {
  const all = probes.map((probe) => judgeServer(probe, waitReplicas))
  const weakest = all.reduce((a, b) => (strength(b) < strength(a) ? b : a))
  if (!probes.some(({ replicas, isCluster }) => replicas > 0 || isCluster)) return weakest
  const window = Math.max(...probes.map((probe) => failoverWindow(probe, waitReplicas)))
  if (!Number.isFinite(window)) return { ...weakest, failover: 'no' }
  const lossWindowMs = Math.max(weakest.lossWindowMs ?? 0, window)
  return { ...weakest, failover: 'recent-loss', lossWindowMs }
}

// Replication lags, and a primary that is cut off keeps accepting writes that a failover throws away: in a cluster
// until it notices, elsewhere until its replicas count as missing, or indefinitely.
function failoverWindow({ isCluster, settings }: Probe, waitReplicas: ReplicaWait | undefined): number {
  if (isCluster) return Number(settings['cluster-node-timeout'] ?? 15_000)
  const lag = Number(settings['min-replicas-max-lag'] ?? 10) * 1000
  const isGuarded = Number(settings['min-replicas-to-write'] ?? 0) > 0 || waitReplicas !== undefined
  return isGuarded && lag > 0 ? lag : Number.POSITIVE_INFINITY
}

function strength({ powerLoss, lossWindowMs }: Survives): number {
  if (powerLoss === 'yes') return Number.POSITIVE_INFINITY
  return powerLoss === 'recent-loss' ? -(lossWindowMs ?? Number.MAX_SAFE_INTEGER) : Number.NEGATIVE_INFINITY
}

function judgeServer({ settings, version }: Probe, waitReplicas: ReplicaWait | undefined): Survives {
  const all = {
    version,
    ...settings,
    ...(waitReplicas && { 'wait for replicas': `${waitReplicas.count} within ${waitReplicas.timeoutMs} ms` }),
  }
  const evicting = settings['maxmemory-policy']?.startsWith('allkeys-')
    ? ' Keys may be evicted when memory is full.'
    : ''
  const judged = (survival: Survival, note: string, lossWindowMs?: number): Survives => ({
    // What is acknowledged is in the server; the death of this process changes nothing.
    processKill: 'yes',
    osCrash: survival,
    powerLoss: survival,
    failover: 'not-applicable',
    ...(lossWindowMs !== undefined && { lossWindowMs }),
    settings: all,
    note: `${note}${evicting}`,
  })

  if (settings['appendonly'] === 'yes') {
    switch (settings['appendfsync']) {
      case 'always':
        return judged('yes', 'The append-only file is synced to disk before an append is acknowledged.')
      case 'everysec':
        return judged(
          'recent-loss',
          'The append-only file is synced once a second: the newest second or two may be lost, and that is detected.',
          EVERYSEC_WINDOW,
        )
      case 'no':
        return judged('no', 'The append-only file is synced whenever the operating system chooses.')
      default:
        return judged(
          'recent-loss',
          'The append-only file is on, but the server does not say how often it is synced: some of the newest appends may be lost.',
          UNKNOWN_WINDOW,
        )
    }
  }
  const window = snapshotWindow(settings['save'])
  if (window !== undefined) {
    return judged('recent-loss', 'Only snapshots are on: everything since the last one may be lost.', window)
  }
  if (settings['appendonly'] === 'no' && settings['save'] !== undefined) {
    return judged('no', 'Nothing is written to disk: a restart of the server loses everything.')
  }
  return judged('no', 'The server does not say whether it writes to disk, so nothing is promised.')
}

/** `save 3600 1 300 100`: with few writes the longest period is what passes between two snapshots. */
function snapshotWindow(save: string | undefined): number | undefined {
  const numbers = (save ?? '').split(/\s+/).filter(Boolean).map(Number)
  const periods = numbers.filter((_, i) => i % 2 === 0)
  return periods.length === 0 ? undefined : Math.max(...periods) * 1000
}
