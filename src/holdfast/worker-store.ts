import { readFileSync } from 'node:fs'
import type { LogStore } from '../log/log-store.js'
import { housekeepingOf } from './metrics-store.js'
import type { WorkerSign, WorkerSigns } from '../runtime/worker/presence.js'
import type { Collection } from '../store/collection.js'

/** A worker, as it described itself when it last gave a heartbeat. */
export interface WorkerInfo {
  /** Identifies this worker among all there ever were. */
  readonly id: string
  /** The name under which it claims threads. */
  readonly name: string
  readonly host: string
  readonly pid: number
  /** The version of Holdfast, if it could be read. */
  readonly version?: string
  /** Only the threads of this tenant. */
  readonly tenant?: string
  readonly programs: readonly { readonly name: string; readonly version: string }[]
  /** How many threads it runs at once, and how many it ran then. */
  readonly places: number
  readonly busy: number
  /** `dead`: several heartbeats in a row are missing. One that stops cleanly is not listed anymore. */
  readonly state: 'running' | 'draining' | 'dead'
  readonly since: Date
  readonly seen: Date
}

/** A worker that was silent for this long is forgotten. */
const TTL_MS = 60 * 60 * 1000
/** How many heartbeats must be missing. */
const MISSED = 3

type StoredSign = WorkerSign & { readonly version?: string }

function workersOf(store: LogStore): Collection<StoredSign> {
  return housekeepingOf(store).collection('workers', { ttlMs: TTL_MS })
}

/** Where the workers of a store say that they are there. */
export function workerSigns(store: LogStore): WorkerSigns {
  const workers = workersOf(store)
  let own: { readonly version?: string } | undefined
  return {
    put(key, sign) {
      own ??= readOwnVersion()
      return workers.put(key, { ...sign, ...own })
    },
    delete: (key) => workers.delete(key),
  }
}

/** All workers that gave a heartbeat in the last hour, by name. */
export async function listWorkers(store: LogStore): Promise<readonly WorkerInfo[]> {
  const workers = workersOf(store)
  const all: WorkerInfo[] = []
  let cursor: string | undefined
  do {
    const page = await workers.list({ limit: 1000, ...(cursor === undefined ? {} : { cursor }) })
    for (const { key, value } of page.items) if (isSign(value)) all.push(describe(key, value, store.clock.now()))
    cursor = page.cursor
  } while (cursor !== undefined)
  return all.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.since.getTime() - b.since.getTime()))
}

function describe(id: string, sign: StoredSign, now: number): WorkerInfo {
  const { since, at, everyMs, draining, ...rest } = sign
  const isDead = now - at > everyMs * MISSED
  const state = isDead ? 'dead' : draining ? 'draining' : 'running'
  return { id, ...rest, state, since: new Date(since), seen: new Date(at) }
}

/** Whether an item is what a worker wrote: the collection can hold anything. */
function isSign(value: unknown): value is StoredSign {
  const { name, host, pid, programs, places, busy, since, at, everyMs } = (value ?? {}) as Record<string, unknown>
  const numbers = [pid, places, busy, since, at, everyMs].every((one) => Number.isFinite(one))
  return numbers && typeof name === 'string' && typeof host === 'string' && Array.isArray(programs)
}

/** Undefined in a bundle, which has no package.json. */
function readOwnVersion(): { readonly version?: string } {
  try {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as WorkerInfo
    return version === undefined ? {} : { version }
  } catch {
    return {}
  }
}
