import { capsOf, type Caps, readPolicy, type StoreRetentionPolicy } from '../core/retention.js'
import type { Head } from '../log/contract.js'
import { isCheckpoint } from '../log/entry/checkpoint-id.js'
import type { LogStore } from '../log/log-store.js'

const PAGE = 200
const PROGRAM = 'holdfast.program'
const RETENTION = 'holdfast.retention'
/** Set on a thread if its program, or whoever opened it, said how many of its checkpoints are kept. */
export const CAPPED = 'holdfast.capped'

/**
 * Which checkpoints of a branch stay, by its index row alone; undefined: all. Only threads of programs are trimmed: to
 * others, such as those of the LangGraph saver, older entries may mean something.
 */
export function capsFor({ index }: Head, policy: StoreRetentionPolicy): Caps | undefined {
  if (index.metadata[PROGRAM] === undefined) return undefined
  return capsOf([readPolicy(index.metadata[RETENTION]), policy])
}

/**
 * The first entry of a branch that stays; undefined if nothing is removed. Reads headers, and only if there may be
 * something to trim.
 */
export async function findCut(logs: LogStore, head: Head, caps: Caps, now: number): Promise<number | undefined> {
  const kept = head.seq - head.base.seq + 1
  if (caps.forMs === undefined && kept <= (caps.last ?? 0)) return undefined
  const young = caps.forMs === undefined ? Number.POSITIVE_INFINITY : now - caps.forMs
  // However old, the newest checkpoint stays: it is the thread.
  const wanted = caps.last ?? 1
  const log = logs.unread(head.log)
  let checkpoints = 0
  let cut: number | undefined
  for (let before = head.seq + 1; before > head.base.seq; ) {
    const page = await log.history({ before, limit: PAGE })
    for (const { header } of page) {
      const isYoung = header.at > young
      if (checkpoints >= wanted && !isYoung) return limitByTags(logs, head, cut)
      if (isCheckpoint(header.kind)) checkpoints++
      if (isCheckpoint(header.kind) || isYoung) cut = header.seq
    }
    const last = page.at(-1)
    if (last === undefined || page.length < PAGE) return undefined
    before = last.header.seq
  }
  return undefined
}

/** A tagged checkpoint stays, with everything that follows. */
async function limitByTags(logs: LogStore, head: Head, cut: number | undefined): Promise<number | undefined> {
  if (cut === undefined) return undefined
  const tagged = head.index.tags.length === 0 ? [] : Object.values((await logs.open(head.log)).fold.index.tags)
  const first = Math.min(cut, ...tagged)
  return first > head.base.seq ? first : undefined
}
