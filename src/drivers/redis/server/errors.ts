import {
  CorruptError,
  DataLossError,
  type HoldfastError,
  isHoldfastError,
  StorageError,
  UnavailableError,
} from '../../../core/errors.js'

/** What is known about a write whose command failed. */
export type Written = 'nothing' | 'unknown'

interface Refusal {
  readonly pattern: RegExp
  readonly reason: string
  readonly message: string
  readonly remedy: string
  /** The server is likely to accept it later, without anybody changing anything. */
  readonly passing: boolean
}

// Replies by which the server says that it did not run the command. A script that meets one of them at its first write
// has written nothing; the server checks for it before that write, never in the middle.
const REFUSALS: readonly Refusal[] = [
  {
    pattern: /\bWRONGPASS\b|\bNOAUTH\b|invalid username-password|invalid password/i,
    reason: 'authentication',
    message: 'Redis refused the user name or password.',
    remedy:
      'Put the right ones into the URL: redis://user:password@host:6379, with special characters percent-encoded.',
    passing: false,
  },
  {
    pattern: /\bNOPERM\b/,
    reason: 'permission',
    message: 'The Redis user may not run a command that Holdfast needs.',
    remedy: 'Allow it the commands and keys listed in docs/backends/redis.md.',
    passing: false,
  },
  {
    pattern: /\bOOM\b/,
    reason: 'out-of-memory',
    message: 'Redis is at its memory limit and refuses writes.',
    remedy: 'Raise maxmemory, or prune and erase threads.',
    passing: false,
  },
  {
    pattern: /\bMISCONF\b/,
    reason: 'persistence-failing',
    message: "Redis can't write its files and refuses writes until it can.",
    remedy: "Check the server's log; usually its disk is full or its folder is not writable.",
    passing: false,
  },
  {
    pattern: /\bREADONLY\b/,
    reason: 'replica',
    message: 'This Redis is a replica and accepts no writes.',
    remedy: 'Connect to the primary. After a failover the driver finds it by itself if the address leads there.',
    passing: true,
  },
  {
    pattern: /\bNOREPLICAS\b/,
    reason: 'replicas',
    message: 'Redis has fewer replicas in reach than min-replicas-to-write asks for, and refuses writes.',
    remedy: 'Bring the replicas back.',
    passing: true,
  },
  {
    pattern: /\bLOADING\b/,
    reason: 'loading',
    message: 'Redis is still loading its data.',
    remedy: 'Try again when it has loaded.',
    passing: true,
  },
  {
    pattern: /\bMASTERDOWN\b|\bCLUSTERDOWN\b|\bTRYAGAIN\b|\bMOVED\b|\bASK\b|Too many Cluster redirections/,
    reason: 'cluster',
    message: 'The part of the cluster that holds this thread is down or moving.',
    remedy: 'Try again when the cluster is whole.',
    passing: true,
  },
  {
    pattern: /\bBUSY\b/,
    reason: 'busy',
    message: "Redis is busy with someone else's long-running script.",
    remedy: 'Try again; SCRIPT KILL ends it if necessary.',
    passing: true,
  },
]

const NEVER_SENT = /enableOfflineQueue options is false|Cluster is ended|None of startup nodes is available/

/** A failed command as a Holdfast error. `write` is false for commands that change nothing. */
export function toDriverError(cause: unknown, write: boolean): HoldfastError {
  if (isHoldfastError(cause)) return cause
  hideArguments(cause)
  const text = cause instanceof Error ? cause.message : String(cause)
  const refusal = REFUSALS.find(({ pattern }) => pattern.test(text))
  if (refusal !== undefined) return refused(refusal, cause)
  const isReply = cause instanceof Error && cause.name === 'ReplyError'
  const written: Written = write && !NEVER_SENT.test(text) ? 'unknown' : 'nothing'
  if (isReply && /\bDAMAGED item\b/.test(text)) {
    const remedy = 'Restore a backup of this Redis; something else wrote into its keys.'
    return new CorruptError("An item of the store can't be read.", { reason: 'item', written }, cause, remedy)
  }
  if (isReply) {
    return new StorageError(`Redis answered with an error: ${text}.`, "Check the server's log.", {
      reason: 'reply',
      written,
      cause,
    })
  }
  return new UnavailableError('The connection to Redis broke or does not exist.', { written, cause })
}

// The client attaches the command that failed to its errors: the password of AUTH, or what somebody stored.
function hideArguments(cause: unknown): void {
  const { command } = (cause ?? {}) as { command?: { name?: unknown; args?: unknown } }
  if (typeof command === 'object' && command !== null && 'args' in command) {
    Object.assign(cause as object, { command: { name: command.name } })
  }
}

function refused({ reason, message, remedy, passing }: Refusal, cause: unknown): HoldfastError {
  if (passing) return new UnavailableError(message, { written: 'nothing', remedy, data: { reason }, cause })
  return new StorageError(message, remedy, {
    reason,
    written: 'nothing',
    retryable: reason !== 'authentication' && reason !== 'permission',
    cause,
  })
}

export function timedOut(ms: number, written: Written): UnavailableError {
  return new UnavailableError(`Redis did not answer within ${ms} ms.`, { written, data: { reason: 'timeout' } })
}

/** The server no longer holds the marker that this store left in it. */
export function lostStore(prefix: string, buckets: number): DataLossError {
  return new DataLossError(
    `This Redis no longer holds the store "${prefix}" that was opened: it came back empty or older, was flushed, or is another server.`,
    { prefix, buckets },
    "Restore it, or close this Holdfast and open the store again with openHoldfast() to continue with what is left. Then run threads with expect: 'existing': their outcome says whether their past is gone.",
  )
}
