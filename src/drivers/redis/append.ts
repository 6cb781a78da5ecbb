import type { Append, AppendResult } from '../../log/contract.js'
import type { Argument, Reply } from './client.js'
import type { ScriptCall } from './connection.js'
import { generationOf, markBuckets, readHeadRow } from './server/generations.js'
import { checkBucket } from './index/index-walk.js'
import { checkOutcomes } from './server/outcomes.js'
import { type AppendDraft, draftAppend, packAppends } from './rows/pack-append.js'
import { encodeHead, encodeIndexRow, encodeLabels, entryFields, escapeControls } from './rows/rows.js'
import { checkLost, loseStore, type Store } from './store.js'

/** One call appends to this many logs at most, so that it does not keep others waiting. */
const MAX_APPENDS = 64
const MAX_BYTES = 1024 * 1024

const APPENDED: AppendResult = { status: 'appended' }

/** A script call, and the places in the batch of the appends it makes. */
interface Part {
  readonly call: ScriptCall
  readonly places: readonly number[]
}

interface OpenPart {
  readonly places: number[]
  readonly drafts: AppendDraft[]
  bytes: number
}

/** All appends of a batch in one flush; results by index. */
export async function appendBatch(store: Store, batch: readonly Append[]): Promise<AppendResult[]> {
  if (batch.length === 0) return []
  const parts = splitBatch(store, batch)
  const outcomes = await store.connection.flush(
    parts.map(({ call }) => call),
    true,
    true,
  )
  const all = checkOutcomes(outcomes)
  const results: AppendResult[] = []
  for (const [i, { places, call }] of parts.entries()) {
    const reply = all[i] as Reply
    const replies = call.script.name === 'create' ? [reply] : (reply as readonly Reply[])
    for (const [at, place] of places.entries()) {
      const single = reply === 1 ? 1 : (replies[at] ?? null)
      results[place] = single === 1 ? APPENDED : await decodeRefusal(store, batch[place] as Append, single)
    }
  }
  return results
}

/** Appends to existing logs travel together as far as their slots and sizes allow; each creation travels alone. */
function splitBatch(store: Store, batch: readonly Append[]): Part[] {
  const { keys, connection } = store
  const parts: Part[] = []
  const open = new Map<number, OpenPart>()
  for (const [place, append] of batch.entries()) {
    if (append.expect === null) {
      parts.push({ call: createCall(store, append), places: [place] })
      continue
    }
    const { log, requires } = append
    const group = connection.client.isCluster ? keys.bucketOf(log.tenant, log.thread) : 0
    // The place of a required log among the keys is known only if its append travels alone.
    const draft = draftAppend(append, requires === undefined ? 0 : 3, assumedBy(store, append))
    if (requires !== undefined) {
      const alone = { places: [place], drafts: [draft], bytes: 0 }
      parts.push(appendPart(store, batch, alone, [keys.log({ ...log, branch: requires.branch })]))
      continue
    }
    const bytes = draft.values.reduce((sum, body) => sum + body.length, draft.length)
    let part = open.get(group)
    if (part !== undefined && (part.places.length === MAX_APPENDS || part.bytes + bytes > MAX_BYTES)) {
      parts.push(appendPart(store, batch, part))
      part = undefined
    }
    if (part === undefined) {
      part = { places: [], drafts: [], bytes: 0 }
      open.set(group, part)
    }
    part.places.push(place)
    part.drafts.push(draft)
    part.bytes += bytes
  }
  for (const part of open.values()) parts.push(appendPart(store, batch, part))
  return parts
}

// A claim holds only in the generation it was decided in; what others know of it decides about no effect.
function assumedBy(store: Store, { log, lease, generation }: Append): number {
  const now = generationOf(store, log).number
  return lease.kind === 'claim' ? (generation ?? now) : now
}

function appendPart(
  { scripts, keys }: Store,
  batch: readonly Append[],
  { places, drafts }: OpenPart,
  required: readonly string[] = [],
): Part {
  const names: string[] = []
  for (const place of places) names.push(...keys.logAndIndex((batch[place] as Append).log))
  return { call: { script: scripts.append, keys: [...names, ...required], args: packAppends(drafts) }, places }
}

function createCall(store: Store, append: Append): ScriptCall {
  const { scripts, keys, marker } = store
  const { log, index, entries, lease, requires, epoch, incarnation } = append
  const last = entries[entries.length - 1] as Append['entries'][number]
  const row = encodeIndexRow(index)
  const isClaim = lease.kind === 'claim'
  const args: Argument[] = [
    log.branch,
    row,
    marker,
    isClaim ? lease.owner : '',
    isClaim ? String(lease.ms) : '',
    escapeControls(requires?.incarnation ?? ''),
    encodeHead(row, { seq: last.seq, hash: last.hash, epoch, incarnation }, index),
    'b',
    `${entries[0]?.seq ?? 0} ${entries[0]?.hash ?? ''}`,
    'g',
    encodeLabels(index),
  ]
  for (const entry of entries) args.push(...(entryFields(entry) as Argument[]))
  const { number: generation } = generationOf(store, log)
  if (generation > 0) args.push('n', String(generation))
  const names = [keys.log(log), keys.index(keys.bucketOf(log.tenant, log.thread)), keys.thread(log.tenant, log.thread)]
  if (requires !== undefined) names.push(keys.log({ ...log, branch: requires.branch }))
  return { script: scripts.create, keys: names, args }
}

async function decodeRefusal(store: Store, { log, expect }: Append, reply: Reply): Promise<AppendResult> {
  const [status, row] = checkLost(store, reply) as ['conflict' | 'held' | 'came-back', readonly Reply[] | null]
  const bucket = store.keys.bucketOf(log.tenant, log.thread)
  if (status === 'came-back' && (await markBuckets(store, 'check', [bucket])) > 0) throw loseStore(store)
  const head = row === null ? undefined : readHeadRow(store, log, row)
  // A log that was there and is gone was erased, or all of its bucket is gone.
  if (head === undefined && expect !== null) await checkBucket(store, bucket)
  return status === 'held' && head !== undefined ? { status, head } : { status: 'conflict', head }
}
