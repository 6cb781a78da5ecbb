import type { TenantId } from '../../../core/ids.js'
import type { LogKey } from '../../../log/contract.js'
import type { CarriedWrite, ItemWrite, ItemWriteResult, NewItem } from '../../../log/store-contract.js'
import type { Reply } from '../client.js'
import type { ScriptCall } from '../connection.js'
import { toDriverError } from '../server/errors.js'
import { afterOthers, checkOutcomes } from '../server/outcomes.js'
import { asBuffer, escapeControls } from '../rows/rows.js'
import { checkLost, type Store } from '../store.js'

/** How long a removed item is remembered, so that a late redo does not bring it back. */
export const REMEMBER_MS = 24 * 60 * 60 * 1000

/** One call writes this many items at most, so that it does not keep others waiting. */
const MAX_WRITES = 256
const MAX_BYTES = 1024 * 1024

const WRITTEN: ItemWriteResult = { status: 'written' }

/** Writes of one space that travel in one call, and their places in the list they are from. */
interface Part<Write> {
  readonly space: string
  readonly writes: Write[]
  readonly places: number[]
  bytes: number
}

/** All writes in one flush, as durable as appends; results by index. */
export async function writeItems(
  store: Store,
  tenant: TenantId,
  writes: readonly ItemWrite[],
  now: number,
): Promise<ItemWriteResult[]> {
  const { scripts, keys, marker } = store
  const parts = splitBySpace(writes)
  const replies = await flushWrites(
    store,
    parts.map((part) => ({
      script: scripts['write-items'],
      keys: keys.space(tenant, part.space),
      args: [
        marker,
        String(now),
        String(now + REMEMBER_MS),
        JSON.stringify(part.writes.map(({ key, expect, item }) => [key, encodeExpect(expect), ...encodeItem(item)])),
        ...valuesOf(part.writes),
      ],
    })),
  )
  const results: ItemWriteResult[] = []
  for (const [i, { places }] of parts.entries()) {
    const answers = replies[i] as readonly Reply[]
    for (const [at, place] of places.entries()) results[place] = decodeResult(answers[at] ?? null)
  }
  return results
}

/**
 * Applies the writes that entries of a log carry, and then notes that in the log, which may be on another node. A crash
 * in between leaves them to be applied again, which changes nothing where they are already applied.
 */
export async function applyWrites(
  store: Store,
  log: LogKey,
  incarnation: string,
  writes: readonly CarriedWrite[],
  { upTo, redo }: { readonly upTo: number; readonly redo: boolean },
): Promise<boolean> {
  if (writes.length === 0) return markApplied(store, log, incarnation, String(upTo))
  if (!(await markApplied(store, log, incarnation, ''))) return false
  const { scripts, keys, marker } = store
  const calls = splitBySpace(writes).map((part) => ({
    script: scripts['apply-items'],
    keys: keys.space(log.tenant, part.space),
    args: [
      marker,
      escapeControls(incarnation),
      redo ? '1' : '0',
      String(REMEMBER_MS),
      JSON.stringify(part.writes.map(({ key, seq, at, item }) => [key, seq, String(at), ...encodeItem(item)])),
      ...valuesOf(part.writes),
    ],
  }))
  await flushWrites(store, calls)
  try {
    // A log that was erased in the meantime has no place to note it in; what it carried is applied all the same.
    await markApplied(store, log, incarnation, String(upTo))
  } catch (error) {
    throw afterOthers(toDriverError(error, true))
  }
  return true
}

async function markApplied(store: Store, log: LogKey, incarnation: string, seq: string): Promise<boolean> {
  const call = {
    script: store.scripts['mark-applied'],
    keys: store.keys.logAndIndex(log),
    args: [escapeControls(incarnation), seq, store.marker],
  }
  return checkLost(store, await store.connection.write(call)) === 1
}

async function flushWrites(store: Store, calls: readonly ScriptCall[]): Promise<readonly Reply[]> {
  if (calls.length === 0) return []
  const replies = checkOutcomes(await store.connection.flush(calls, true, true))
  for (const reply of replies) checkLost(store, reply)
  return replies
}

function splitBySpace<Write extends ItemWrite | CarriedWrite>(writes: readonly Write[]): Part<Write>[] {
  const parts: Part<Write>[] = []
  const open = new Map<string, Part<Write>>()
  for (const [place, write] of writes.entries()) {
    const { space, item } = write
    const bytes = item?.value.length ?? 0
    let part = open.get(space)
    if (part === undefined || part.writes.length === MAX_WRITES || part.bytes + bytes > MAX_BYTES) {
      part = { space, writes: [], places: [], bytes: 0 }
      open.set(space, part)
      parts.push(part)
    }
    part.writes.push(write)
    part.places.push(place)
    part.bytes += bytes
  }
  return parts
}

function encodeExpect(expect: ItemWrite['expect']): string | boolean {
  return expect === undefined ? true : (expect ?? false)
}

// Times are sent as text: a script passes them on unchanged, and would write its own numbers in another form.
function encodeItem(item: NewItem | null): unknown[] {
  if (item === null) return []
  const { version, at, expiresAt, fields } = item
  return [version, String(at), expiresAt === null ? '-' : String(expiresAt), fields.flat()]
}

function valuesOf(writes: readonly (ItemWrite | CarriedWrite)[]): Buffer[] {
  return writes.flatMap(({ item }) => (item === null ? [] : [asBuffer(item.value)]))
}

function decodeResult(reply: Reply): ItemWriteResult {
  if (reply === 1) return WRITTEN
  const [version] = reply as readonly (string | null)[]
  return { status: 'conflict', version: version ?? null }
}
