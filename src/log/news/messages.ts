import type { Append, LogKey } from '../contract.js'
import { MESSAGE_BYTES, PROGRAM_LABEL } from '../contract.js'

/** An append, or the end of a lease, as those are told who wait for one. */
export interface LogNews {
  readonly log: LogKey
  readonly seq: number
  /** When workers of the program should look at it. `null`: not at all, or somebody holds it who does. */
  readonly wakeAt: number | null
  readonly program: string
}

/** What is published about an append that landed. */
export function newsOf({ log, entries, lease, index }: Append): LogNews {
  const isFree = lease.kind === 'keep' || lease.kind === 'release'
  return {
    log,
    seq: entries.at(-1)?.seq ?? -1,
    wakeAt: isFree ? index.wakeAt : null,
    program: String(index.metadata[PROGRAM_LABEL] ?? ''),
  }
}

/** News as messages. */
export function writeMessages(news: readonly LogNews[]): readonly string[] {
  const items = news.map(({ log, seq, wakeAt, program }) =>
    JSON.stringify([log.tenant, log.thread, log.branch, seq, wakeAt, program]),
  )
  return [...packMessages(items)]
}

/** Lists of these items of JSON, each within the limit of a message, and after `first`. What fits in none is left out. */
export function* packMessages(items: readonly string[], first?: string): Generator<string> {
  const start = first === undefined ? [] : [first]
  const startBytes = 2 + (first?.length ?? 0)
  let parts = [...start]
  let bytes = startBytes
  for (const item of items) {
    const size = Buffer.byteLength(item) + 1
    if (startBytes + size > MESSAGE_BYTES) continue
    if (bytes + size > MESSAGE_BYTES) {
      yield `[${parts.join(',')}]`
      parts = [...start]
      bytes = startBytes
    }
    parts.push(item)
    bytes += size
  }
  if (parts.length > start.length) yield `[${parts.join(',')}]`
}

/** What a message says. Anyone who can connect to the backend can send anything, so what is not ours is ignored. */
export function readMessage(message: string): LogNews[] {
  return unpackMessage(message)
    .filter(isNews)
    .map(([tenant, thread, branch, seq, wakeAt, program]) => ({
      log: { tenant, thread, branch },
      seq,
      wakeAt,
      program,
    }))
}

/** The items of a message; none if it is no list. */
export function unpackMessage(message: string): readonly unknown[] {
  try {
    const items: unknown = JSON.parse(message)
    return Array.isArray(items) ? items : []
  } catch {
    return []
  }
}

type Sent = readonly [LogKey['tenant'], LogKey['thread'], LogKey['branch'], number, number | null, string]

function isNews(part: unknown): part is Sent {
  if (!Array.isArray(part) || part.length !== 6) return false
  const [tenant, thread, branch, seq, wakeAt, program] = part as unknown[]
  if (![tenant, thread, branch, program].every((text) => typeof text === 'string')) return false
  return Number.isSafeInteger(seq) && (wakeAt === null || Number.isFinite(wakeAt))
}
