import { StorageError } from '../../../core/errors.js'
import type { Survives, Survival } from '../../../log/contract.js'
import type { Row } from './sessions.js'

const MIN_SERVER_VERSION = 130_000

/** What opening finds out about the server and about the sessions we get there. */
export interface Probe {
  readonly serverProcessId: number
  readonly isolation: string
  readonly durability: Survives
}

// Asked of a session like those that will write: defaults of the database and of the role are part of the answer.
export const PROBE_TEXT = `SELECT current_setting('server_version_num'), current_setting('server_version'),
  pg_backend_pid(), pg_is_in_recovery(), current_setting('server_encoding'), current_setting('client_encoding'),
  current_setting('default_transaction_isolation'), current_setting('fsync'), current_setting('synchronous_commit'),
  current_setting('full_page_writes'), current_setting('synchronous_standby_names'),
  (SELECT setting FROM pg_settings WHERE name = 'wal_writer_delay'),
  (SELECT source FROM pg_settings WHERE name = 'synchronous_commit'),
  (SELECT count(*) FROM pg_stat_replication)`

/** Refuses servers that we can't work with. */
export function readProbe(row: Row, target: string): Probe {
  const [versionNumber, version, pid, inRecovery, serverEncoding, clientEncoding, isolation, ...settings] = row.map(
    String,
  ) as [string, string, string, string, string, string, string, ...string[]]
  const refuse = (reason: string, problem: string, remedy: string): never => {
    throw new StorageError(`${target} ${problem}.`, remedy, { reason, written: 'nothing', data: { version } })
  }
  if (Number(versionNumber) < MIN_SERVER_VERSION) {
    refuse('too-old', `runs version ${version}, and Holdfast needs 13 or later`, 'Upgrade the server.')
  }
  if (inRecovery === 't') {
    refuse('read-only', 'is a standby, which accepts no writes', 'Connect to the primary.')
  }
  if (serverEncoding !== 'UTF8') {
    refuse('encoding', `stores text as ${serverEncoding}`, "Use a database made with ENCODING 'UTF8'.")
  }
  if (clientEncoding !== 'UTF8') {
    refuse(
      'encoding',
      `expects text as ${clientEncoding}`,
      'Remove the setting client_encoding of this role or database.',
    )
  }
  return { serverProcessId: Number(pid), isolation, durability: readDurability(version, settings) }
}

function readDurability(version: string, settings: readonly string[]): Survives {
  const [fsync, commit, fullPages, standbys, walWriterDelay, commitSource, replicas] = settings as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ]
  const synchronous = commit !== 'off'
  // Up to three rounds of the background writer pass before a commit that was not waited for is on disk.
  const lossWindowMs = 3 * Number(walWriterDelay)
  const crash: Survival = fsync !== 'on' || fullPages !== 'on' ? 'no' : synchronous ? 'yes' : 'recent-loss'
  const standbyWaited = standbys !== '' && ['on', 'remote_write', 'remote_apply'].includes(commit)
  const failover: Survival = standbyWaited
    ? 'yes'
    : Number(replicas) > 0 || standbys !== ''
      ? 'recent-loss'
      : 'not-applicable'
  return {
    // Of our process: what the server acknowledged does not depend on us anymore.
    processKill: 'yes',
    osCrash: crash,
    powerLoss: crash,
    failover,
    ...(synchronous ? {} : { lossWindowMs }),
    settings: {
      server_version: version,
      fsync,
      synchronous_commit: commit,
      full_page_writes: fullPages,
      synchronous_standby_names: standbys,
      standbys: replicas,
    },
    note: explain({ fsync, commit, commitSource, fullPages, standbyWaited, replicas: Number(replicas), lossWindowMs }),
  }
}

function explain(found: {
  fsync: string
  commit: string
  commitSource: string
  fullPages: string
  standbyWaited: boolean
  replicas: number
  lossWindowMs: number
}): string {
  const parts: string[] = []
  if (found.fsync !== 'on') parts.push('fsync is off: a crash of the machine can lose or damage everything')
  else if (found.fullPages !== 'on')
    parts.push('full_page_writes is off: a crash of the machine can damage pages half-written')
  else if (found.commit === 'off') {
    const where =
      found.commitSource === 'user' || found.commitSource === 'database' ? ` for this ${found.commitSource}` : ''
    parts.push(`synchronous_commit is off${where}: a crash of the server can lose the last ${found.lossWindowMs} ms`)
  } else parts.push('an acknowledged append is on the disk of the server')
  if (found.standbyWaited) parts.push('and on a synchronous standby')
  else if (found.replicas > 0) parts.push('a failover to an asynchronous standby can lose the newest entries')
  else parts.push('no standby is attached')
  return `${parts.join('; ')}.`.replace(/^./, (first) => first.toUpperCase())
}
