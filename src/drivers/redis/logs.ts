import type { TenantId, ThreadId } from '../../core/ids.js'
import type {
  EraseRequest,
  Expect,
  Head,
  IndexFields,
  LogKey,
  StoredEntry,
  StoredHeader,
  Tail,
  Tombstone,
} from '../../log/contract.js'
import type { Reply } from './client.js'
import type { Call, ScriptCall } from './connection.js'
import { readHeadRow } from './server/generations.js'
import {
  decodeEntries,
  decodeHeader,
  encodeCore,
  encodeHead,
  encodeIndexRow,
  encodeLabels,
  entryFields,
  escapeControls,
  incarnationIn,
} from './rows/rows.js'
import type { ScriptName } from './scripts.js'
import { checkLost, type Store } from './store.js'

/** A call of a script whose keys are the log and its bucket's index. */
function logCall(store: Store, script: ScriptName, log: LogKey, args: ScriptCall['args'], binary = false): ScriptCall {
  const { scripts, keys } = store
  const bucket = keys.bucketOf(log.tenant, log.thread)
  return { script: scripts[script], keys: [keys.log(log), keys.index(bucket)], args, binary }
}

async function readLog(store: Store, call: ScriptCall): Promise<Reply> {
  const [reply] = await store.connection.read([call])
  return checkLost(store, reply ?? null)
}

async function writeLog(store: Store, call: ScriptCall): Promise<Reply> {
  return checkLost(store, await store.connection.write(call))
}

export async function readTail(store: Store, log: LogKey, upTo: number): Promise<Tail | undefined> {
  return decodeTail(store, log, (await readFolds(store, [log], upTo))[0] ?? null)
}

/** The newest of several logs, in one flush. */
export async function readTails(store: Store, logs: readonly LogKey[]): Promise<readonly (() => Tail | undefined)[]> {
  const replies = await readFolds(store, logs, undefined)
  return logs.map((log, i) => () => decodeTail(store, log, replies[i] ?? null))
}

/**
 * Head and entries of each. A script copies every value several times while the server does nothing else, so of a long fold
 * it returns only where it is, and the entries are read by a command of their own.
 */
async function readFolds(store: Store, logs: readonly LogKey[], upTo: number | undefined): Promise<Reply[]> {
  const { connection } = store
  const replies = [...(await connection.read(logs.map((log) => tailCall(store, log, upTo, MOST_BY_SCRIPT))))]
  const long = [...replies.entries()].filter(([, reply]) => isLong(reply)) as [number, LongFold][]
  if (long.length === 0) return replies
  const found = await connection.read(long.map(([i, fold]) => entriesCall(store, logs[i] as LogKey, fold)))
  const again: number[] = []
  for (const [at, [i, [row, first]]] of long.entries()) {
    const [head, base, ...fields] = found[at] as readonly Reply[]
    if (isUnchanged(row, head ?? null, base ?? null)) replies[i] = [row, first, ...fields]
    else again.push(i)
  }
  if (again.length === 0) return replies
  // Pruned, erased or created anew in between: then all at once.
  const whole = await connection.read(again.map((i) => tailCall(store, logs[i] as LogKey, upTo, undefined)))
  for (const [at, i] of again.entries()) replies[i] = whole[at] ?? null
  return replies
}

/** Up to here a second round trip costs more than what it saves. */
const MOST_BY_SCRIPT = 64

/** Head row, seq of the first entry, number of entries. */
type LongFold = readonly [readonly Reply[], Reply, number]

function isLong(reply: Reply): boolean {
  return Array.isArray(reply) && reply.length === 3 && typeof reply[2] === 'number'
}

function tailCall(store: Store, log: LogKey, upTo: number | undefined, most: number | undefined): ScriptCall {
  const args = [upTo === undefined ? '' : String(upTo), store.marker, most === undefined ? '' : String(most)]
  return logCall(store, 'tail', log, args, true)
}

function entriesCall({ keys }: Store, log: LogKey, [, first, count]: LongFold): Call {
  const args = [keys.log(log), 'h', 'b']
  for (let seq = Number(first); seq < Number(first) + count; seq++) args.push(`m${seq}`, `d${seq}`)
  return { command: 'hmget', args, binary: true }
}

// Entries of a log never change, but pruning puts another one in place of the first, and an id can be used again.
function isUnchanged(row: readonly Reply[], head: Reply, base: Reply): boolean {
  return head !== null && incarnationIn(row[1] ?? null) === incarnationIn(head) && String(row[2]) === String(base)
}

function decodeTail(store: Store, log: LogKey, reply: Reply): Tail | undefined {
  const found = checkLost(store, reply) as readonly Reply[] | null
  if (found === null) return undefined
  const [row, first, ...fields] = found
  return { head: readHeadRow(store, log, row as readonly Reply[]), entries: decodeEntries(log, Number(first), fields) }
}

export async function readEntries(store: Store, log: LogKey, from: number, limit: number): Promise<StoredEntry[]> {
  const args = [String(from), String(limit), store.marker]
  const reply = (await readLog(store, logCall(store, 'read', log, args, true))) as readonly Reply[] | null
  if (reply === null) return []
  const [first, ...fields] = reply
  return decodeEntries(log, Number(first), fields)
}

export async function readHeaders(
  store: Store,
  log: LogKey,
  { before, limit }: { readonly before?: number; readonly limit: number },
): Promise<StoredHeader[]> {
  const args = [before === undefined ? '' : String(before), String(limit), store.marker]
  const reply = (await readLog(store, logCall(store, 'headers', log, args, true))) as readonly Reply[] | null
  if (reply === null) return []
  const [newest, ...metas] = reply
  return metas.map((meta, i) => decodeHeader(log, Number(newest) - i, meta))
}

export async function readHead(store: Store, log: LogKey): Promise<Head | undefined> {
  const { scripts, keys, marker } = store
  const index = keys.index(keys.bucketOf(log.tenant, log.thread))
  const call = { script: scripts.heads, keys: [index, keys.log(log)], args: [marker] }
  const [row] = (await readLog(store, call)) as (readonly Reply[] | null)[]
  return row ? readHeadRow(store, log, row) : undefined
}

export async function renewLease(
  store: Store,
  log: LogKey,
  incarnation: string,
  epoch: number,
  ms: number,
): Promise<boolean> {
  const values = [String(epoch), String(ms), store.marker, escapeControls(incarnation)]
  return (await writeLog(store, logCall(store, 'renew', log, values))) === 1
}

export async function pruneLog(
  store: Store,
  log: LogKey,
  incarnation: string,
  seq: number,
  standIn: StoredEntry | undefined,
): Promise<{ readonly removed: number } | 'conflict'> {
  const fields = standIn ? entryFields(standIn).filter((field) => field !== undefined) : []
  const given = standIn ? [standIn.hash, ...fields] : []
  const args = [escapeControls(incarnation), String(seq), store.marker, ...given]
  const reply = await writeLog(store, logCall(store, 'prune', log, args))
  return typeof reply === 'number' ? { removed: reply } : 'conflict'
}

export async function reindexLog(store: Store, log: LogKey, expect: Expect, index: IndexFields): Promise<boolean> {
  const row = encodeIndexRow(index)
  const args = [encodeCore(expect), row, store.marker, encodeHead(row, expect, index), encodeLabels(index)]
  return (await writeLog(store, logCall(store, 'reindex', log, args))) === 1
}

export async function eraseLogs(
  store: Store,
  request: EraseRequest,
): Promise<{ readonly erased: number } | 'conflict'> {
  const { tenant, thread, branch, expect } = request
  let branches: readonly string[]
  if (branch !== undefined) branches = [branch]
  else if (expect !== undefined) branches = expect.map((log) => log.branch)
  else branches = await readBranches(store, tenant, thread)
  if (expect !== undefined && !canBeExact(branches, request)) return 'conflict'
  for (;;) {
    const [status, rest] = (await store.connection.write(eraseCall(store, request, branches))) as [string, Reply]
    if (status === 'erased') return { erased: rest as number }
    if (status === 'conflict') return 'conflict'
    // A branch came or went since they were listed. Only declared keys may be touched, so the call is made again.
    branches = rest as readonly string[]
  }
}

// What no state of the thread could equal need not be asked for: a branch named twice, or another than the one meant.
function canBeExact(branches: readonly string[], { branch, expect = [] }: EraseRequest): boolean {
  if (branch !== undefined) return expect.length <= 1 && expect.every((log) => log.branch === branch)
  return new Set(branches).size === branches.length
}

function eraseCall({ scripts, keys }: Store, request: EraseRequest, branches: readonly string[]): ScriptCall {
  const { tenant, thread, branch, expect, tombstone } = request
  const logs = branches.map((name) => keys.log({ tenant, thread, branch: name as LogKey['branch'] }))
  const expected = branches.flatMap((name) => {
    const log = expect?.find((candidate) => candidate.branch === name)
    return [name, log === undefined ? '' : `${log.seq} ${escapeControls(log.incarnation)}`]
  })
  return {
    script: scripts.erase,
    keys: [keys.thread(tenant, thread), keys.index(keys.bucketOf(tenant, thread)), ...logs],
    args: [
      branch === undefined ? 'thread' : 'branch',
      tombstone === null ? '' : JSON.stringify([tombstone.at, tombstone.reason]),
      expect === undefined ? '0' : '1',
      ...expected,
    ],
  }
}

export async function readBranches(store: Store, tenant: TenantId, thread: ThreadId): Promise<string[]> {
  const [fields] = await store.connection.read([{ command: 'hkeys', args: [store.keys.thread(tenant, thread)] }])
  return (fields as string[]).filter((field) => field.startsWith('+')).map((field) => field.slice(1))
}

export async function readTombstone(store: Store, tenant: TenantId, thread: ThreadId): Promise<Tombstone | undefined> {
  const args = [store.keys.thread(tenant, thread), 'tombstone']
  const [text] = await store.connection.read([{ command: 'hget', args }])
  if (typeof text !== 'string') return undefined
  const [at, reason] = JSON.parse(text) as [number, string]
  return { at, reason }
}
