import { inDueOrder } from '../../core/due-order.js'
import {
  type DuePage,
  type DueQuery,
  type Head,
  type IndexFields,
  LIMIT_LABEL,
  PRIORITY_LABEL,
  PROGRAM_LABEL,
  type WarmQuery,
} from '../../log/contract.js'
import type { MemoryLog, MemoryStore } from './memory-store.js'

/** Replaces what the index knows about a log, and where it is found when it is due. */
export function setIndex(store: MemoryStore, log: MemoryLog, index: IndexFields): void {
  forgetDue(store, log)
  log.index = copyIndex(index)
  if (index.wakeAt === null) return
  const logs = store.due.get(programOf(log)) ?? new Set()
  store.due.set(programOf(log), logs.add(log))
}

export function forgetDue(store: MemoryStore, log: MemoryLog): void {
  const logs = store.due.get(programOf(log))
  logs?.delete(log)
  if (logs?.size === 0) store.due.delete(programOf(log))
}

/** The logs that are due, in the order of their turns, reserved for who asks. */
export function takeDue(store: MemoryStore, query: DueQuery, headOf: (log: MemoryLog) => Head): DuePage {
  const monotonic = store.clock.monotonic()
  const now = query.now === 'now' ? store.clock.now() : query.now
  const free: {
    readonly log: MemoryLog
    readonly priority: number
    readonly tenant: string
    readonly since: number
  }[] = []
  const except = new Set((query.except ?? []).map(({ program, tenant, key }) => nameGroup(program, tenant, key)))
  let nextMs = Number.POSITIVE_INFINITY
  for (const program of new Set(query.programs)) {
    for (const log of store.due.get(program) ?? []) {
      const { tenant } = log.key
      if (query.tenant !== undefined && tenant !== query.tenant) continue
      const { metadata, updatedAt } = log.index
      const wakeAt = log.index.wakeAt as number
      const since = wakeAt > 0 ? wakeAt : updatedAt
      const waits = Math.max(wakeAt - now, heldFor(log, monotonic), leftFor(log, now - since, monotonic, query.warm))
      if (waits > 0) {
        nextMs = Math.min(nextMs, waits)
        continue
      }
      const key = metadata[LIMIT_LABEL]
      if (except.has(nameGroup(program, tenant, undefined))) continue
      if (key !== undefined && except.has(nameGroup(program, tenant, String(key)))) continue
      free.push({
        log,
        priority: Number(metadata[PRIORITY_LABEL] ?? 0),
        tenant,
        since,
      })
    }
  }
  const taken = inDueOrder(free, query.after)
    .slice(0, query.limit)
    .map(({ log }) => log)
  for (const log of taken) {
    log.reserved = { seq: log.entries.at(-1)?.seq ?? -1, until: monotonic + query.reserveMs }
  }
  return {
    heads: taken.map(headOf),
    more: free.length > taken.length,
    nextMs: nextMs === Number.POSITIVE_INFINITY ? null : nextMs,
  }
}

function nameGroup(program: string, tenant: string, key: string | undefined): string {
  return JSON.stringify([program, tenant, key])
}

function heldFor({ owner, leaseEnd, reserved, entries }: MemoryLog, now: number): number {
  const leased = owner === null ? 0 : leaseEnd - now
  const kept = reserved && reserved.seq === entries.at(-1)?.seq ? reserved.until - now : 0
  return Math.max(leased, kept)
}

/** For how long it is left to whoever held it last. */
function leftFor({ owner, leaseEnd }: MemoryLog, agoMs: number, now: number, warm: WarmQuery | undefined): number {
  if (warm === undefined || owner === null || owner === warm.owner) return 0
  // Due in the future, as it would seem: some clock is wrong.
  if (agoMs >= warm.ms || agoMs <= -warm.ms) return 0
  return now - agoMs > leaseEnd ? warm.ms - agoMs : 0
}

function programOf({ index }: MemoryLog): string {
  return String(index.metadata[PROGRAM_LABEL] ?? '')
}

// What is stored must not change with the arrays and objects the caller keeps using. Index rows are handed out as they
// are, so they are frozen; bytes can't be, and are copied both ways.
function copyIndex(index: IndexFields): IndexFields {
  return Object.freeze({
    ...index,
    tags: Object.freeze([...index.tags]),
    metadata: Object.freeze({ ...index.metadata }),
    origin: index.origin && Object.freeze({ ...index.origin }),
  })
}
