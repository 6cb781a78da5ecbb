import { ConflictError, DataLossError, isHoldfastError, NotFoundError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { Driver, Head, LogKey, StoredEntry } from '../contract.js'
import { emptyFold, type Fold } from '../entry/fold.js'
import type { LogEnvironment } from '../log-environment.js'
import type { LogReader } from './log-reader.js'

/** Whether a log may lack entries that were acknowledged, as a head tells it. */
export type Standing = Pick<Head, 'generation' | 'loss'>

export function standingOf({ generation, loss }: Head): Standing {
  return { ...(generation === undefined ? {} : { generation }), ...(loss ? { loss } : {}) }
}

export function withoutLoss({ generation }: Standing): Standing {
  return generation === undefined ? {} : { generation }
}

/**
 * From the fold a handle knows to what the log holds now. A log that holds less than was acknowledged, or a different
 * history, is reported and never taken for the same log.
 */
export async function catchUp(
  environment: LogEnvironment,
  log: LogKey,
  reader: LogReader,
  known: Fold,
  head: Head | undefined,
): Promise<Fold> {
  if (known.seq < 0) return (await reader.newest()) ?? emptyFold(environment.randomId())
  const { driver } = environment
  if (head?.incarnation !== known.incarnation) throw await goneError(driver, log, known, head)
  checkLoss(log, known, head)
  if (head.seq === known.seq) return known
  try {
    if (head.base.seq > known.seq) return (await reader.newest()) ?? known
    // What we know must still be there: a backend that came back older and was written to since holds a different
    // history.
    const [same] = await driver.read(log, known.seq, 1)
    checkLoss(log, known, head, same)
    return await reader.since(known, head.seq)
  } catch (error) {
    throw (await erasedSince(driver, log, known, error)) ?? error
  }
}

/**
 * Several reads are no one moment: a log that others erased in between looks like a damaged one, or like a different
 * past. Before either is reported the head is read again; the result says what became of the log if it is no longer the
 * one that was read.
 */
export async function erasedSince(
  driver: Driver,
  log: LogKey,
  known: Pick<Fold, 'incarnation' | 'at' | 'seq'>,
  error: unknown,
): Promise<Error | undefined> {
  if (!isHoldfastError(error, 'corrupt') && !isHoldfastError(error, 'data-loss')) return undefined
  // A head that can't be read says nothing.
  const head = await driver.head(log).catch(() => 'unknown' as const)
  if (head === 'unknown' || head?.incarnation === known.incarnation) return undefined
  return goneError(driver, log, known, head)
}

async function goneError(
  driver: Driver,
  log: LogKey,
  known: Pick<Fold, 'at' | 'seq'>,
  head: Head | undefined,
): Promise<Error> {
  if (head !== undefined) {
    return new ConflictError(`${nameLog(log)} was erased and created again.`, { log, incarnation: head.incarnation })
  }
  const erased = await erasedError(driver, log)
  if (erased) return erased
  // A tombstone is removed when the thread is created again; a thread whose oldest branch is younger than what we know
  // was.
  const { tenant, thread } = log
  const { heads } = await driver.heads({ tenant, thread, order: 'created', direction: 'asc', limit: 1 })
  if (heads[0] && heads[0].index.createdAt >= known.at) {
    return new NotFoundError(`${nameLog(log)} was erased, and its thread created again.`, 'Open the thread again.', {
      log,
      createdAt: heads[0].index.createdAt,
    })
  }
  // Created again and erased again since the first look.
  const again = await erasedError(driver, log)
  if (again) return again
  const message = `${nameLog(log)} is gone from the backend, though it was acknowledged.`
  return new DataLossError(message, { log, acknowledged: known.seq })
}

async function erasedError(driver: Driver, log: LogKey): Promise<NotFoundError | undefined> {
  const tombstone = await driver.tombstone(log.tenant, log.thread)
  if (tombstone === undefined) return undefined
  const message = `${nameLog(log)} was erased (${tombstone.reason}).`
  return new NotFoundError(message, 'Open the thread again to start over.', { log, tombstone })
}

/**
 * Refuses a head that is before what is known, or on a different history, and another entry in place of the known one.
 */
export function checkLoss(log: LogKey, known: Fold, head: Head, same?: StoredEntry): void {
  const isShorter = head.seq < known.seq || (head.seq === known.seq && head.hash !== known.hash)
  if (isShorter || (same?.seq === known.seq && same.hash !== known.hash)) throw lossError(log, known, head)
}

function lossError(log: LogKey, known: Fold, head: Head): DataLossError {
  return new DataLossError(
    `The backend holds an older or another past of ${nameLog(log)}: entry ${known.seq} was acknowledged, ` +
      `and it now ends at ${head.seq} without it.`,
    { log, acknowledged: known.seq, found: head.seq },
  )
}
