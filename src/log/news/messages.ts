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

/** News as texts to send, each within the limit of a message. */
export function writeMessages(news: readonly LogNews[]): string[] {
  const messages: string[] = []
  let parts: string[] = []
  let bytes = 2
  for (const { log, seq, wakeAt, program } of news) {
    const part = JSON.stringify([log.tenant, log.thread, log.branch, seq, wakeAt, program])
    const size = Buffer.byteLength(part) + 1
    if (parts.length > 0 && bytes + size > MESSAGE_BYTES) {
      messages.push(`[${parts.join(',')}]`)
      parts = []
      bytes = 2
    }
    parts.push(part)
    bytes += size
  }
  if (parts.length > 0) messages.push(`[${parts.join(',')}]`)
  return messages
}

/** What a message says. Anyone who can connect to the backend can send anything, so what is not ours is ignored. */
export function readMessage(message: string): LogNews[] {
  let parts: unknown
  try {
    parts = JSON.parse(message)
  } catch {
    return []
  }
  if (!Array.isArray(parts)) return []
  return parts.filter(isNews).map(([tenant, thread, branch, seq, wakeAt, program]) => ({
    log: { tenant, thread, branch },
    seq,
    wakeAt,
    program,
  }))
}

type Sent = readonly [LogKey['tenant'], LogKey['thread'], LogKey['branch'], number, number | null, string]

function isNews(part: unknown): part is Sent {
  if (!Array.isArray(part) || part.length !== 6) return false
  const [tenant, thread, branch, seq, wakeAt, program] = part as unknown[]
  if (![tenant, thread, branch, program].every((text) => typeof text === 'string')) return false
  return Number.isSafeInteger(seq) && (wakeAt === null || Number.isFinite(wakeAt))
}
