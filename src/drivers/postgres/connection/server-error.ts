import { HoldfastError, StorageError, UnavailableError } from '../../../core/errors.js'

type Written = 'nothing' | 'unknown'

/** What an error reply of the server tells. */
export interface ServerReply {
  readonly code: string
  readonly severity: string
  readonly message: string
}

/** Turns whatever `pg` throws into an error that says what happened to the write and what to do. */
export function translateError(error: unknown, target: string, isWrite: boolean): HoldfastError {
  if (error instanceof HoldfastError) return error
  const reply = serverReply(error)
  if (reply === undefined) {
    const written = isWrite ? 'unknown' : 'nothing'
    return new UnavailableError(`${target} broke off the connection: ${messageOf(error)}.`, { written, cause: error })
  }
  return translateReply(reply, target, isWrite && !isRolledBack(reply) ? 'unknown' : 'nothing', error)
}

/** An error before anything was sent. */
export function translateConnectError(error: unknown, target: string): HoldfastError {
  if (error instanceof HoldfastError) return error
  const reply = serverReply(error)
  if (reply !== undefined) return translateReply(reply, target, 'nothing', error)
  return new UnavailableError(`${target} can't be reached: ${messageOf(error)}.`, {
    written: 'nothing',
    remedy: 'Check host and port of the URL, that the server runs, and that a firewall lets this machine through.',
    data: { reason: 'unreachable' },
    cause: error,
  })
}

/** Whether another connection may do better: the answer was lost, or the server was just going down or coming up. */
export function isConnectionFailure(error: unknown): boolean {
  const reply = serverReply(error)
  return reply === undefined || /^(08|57P0[1235])/.test(reply.code)
}

/** Whether the connection may be used again after this error. */
export function leavesConnectionUsable(error: unknown): boolean {
  const reply = serverReply(error)
  return reply !== undefined && isRolledBack(reply) && !isReadOnly(error)
}

/** The server takes no writes: after a failover a connection may lead to what is a standby by now. */
export function isReadOnly(error: unknown): boolean {
  return serverReply(error)?.code === '25006'
}

/** Serialization failures and deadlocks: rolled back, and nothing was wrong with the statement. */
export function isTransient(error: unknown): boolean {
  const code = serverReply(error)?.code
  return code === '40001' || code === '40P01'
}

/**
 * What the server has against a statement of the user's: the reply itself, or that its time was over. Undefined when it
 * is not about the statement: the connection, the server, or another transaction in the way.
 */
export function ofTheStatement(error: unknown): ServerReply | 'timeout' | undefined {
  const reply = serverReply(error)
  if (reply?.code === '57014' || reply?.code === '25P03') return 'timeout'
  return reply === undefined || /^(08|25006|40|53|55|57|58|XX)/.test(reply.code) ? undefined : reply
}

// An ERROR reply to a statement that is its own transaction means that the server rolled it back. FATAL and PANIC do
// not: the server may have died after writing the commit. Poolers answer for a lost server with class 08, and some name
// it ERROR. A severity in another language is not recognized and counts as unknown, which is only slower.
function isRolledBack({ severity, code }: ServerReply): boolean {
  return severity === 'ERROR' && !/^(08|40003|57P|58|XX)/.test(code)
}

function translateReply(reply: ServerReply, target: string, written: Written, cause: unknown): HoldfastError {
  const { code, message } = reply
  const data = { sqlstate: code }
  const unavailable = (text: string, remedy?: string) =>
    new UnavailableError(`${target} ${text}: ${message}.`, { written, data, cause, ...(remedy ? { remedy } : {}) })
  const refused = (reason: string, text: string, remedy: string) =>
    new StorageError(`${target} ${text}: ${message}.`, remedy, { reason, written, data, cause })

  if (code === '40001' || code === '40P01')
    return unavailable('chose this statement to give way to another', 'Try again.')
  if (code === '55P03' || code === '57014') {
    return unavailable('did not finish in time', 'Try again; look for long transactions in pg_stat_activity.')
  }
  if (code === '53300') {
    return unavailable('has no connection left', 'Lower poolSize, raise max_connections, or put PgBouncer in between.')
  }
  if (code.startsWith('08') || code.startsWith('57')) return unavailable('went away')
  if (code.startsWith('28')) {
    return refused(
      'authentication',
      'refused the login',
      'Check user and password of the URL, and pg_hba.conf of the server.',
    )
  }
  if (code === '3D000') {
    return refused('no-database', 'has no such database', 'Create it (CREATE DATABASE …) or correct the URL.')
  }
  if (code === '42501') {
    return refused(
      'permission',
      'does not permit this',
      'Grant CREATE on the database once to set up the schema, then USAGE on the schema and rights on its tables; see docs/backends/postgres.md.',
    )
  }
  if (code === '25006') {
    // Passes when the address leads to the primary again: every attempt is made on a new connection.
    return new UnavailableError(`${target} accepts no writes: ${message}.`, {
      written,
      data: { ...data, reason: 'read-only' },
      cause,
      remedy: 'Connect to the primary; a standby, or a role or database set to read-only, can only be read.',
    })
  }
  if (code === '53100' || code === '53200') {
    return refused('full', 'has no space left', 'Free disk space or memory on the server.')
  }
  if (['42P01', '42883', '3F000'].includes(code)) {
    return refused(
      'no-schema',
      'lost the tables or functions of Holdfast',
      'Open the database again, which sets up the schema, or restore a backup.',
    )
  }
  return refused('refused', 'refused the statement', 'The message of the server says why; see `cause`.')
}

function serverReply(error: unknown): ServerReply | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  const { code, severity, message } = error as Partial<ServerReply>
  if (typeof code !== 'string' || typeof severity !== 'string') return undefined
  return { code, severity, message: String(message) }
}

function messageOf(error: unknown): string {
  // An attempt at several addresses (IPv6 and IPv4 of localhost) fails with an empty message around the real ones.
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map((each: unknown) => messageOf(each)).join('; ')
  }
  return error instanceof Error ? error.message : String(error)
}
