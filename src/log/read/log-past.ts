import { decodeHeader, type EntryHeader } from '../../codec/header.js'
import { InvalidOptionError, NotFoundError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { LogKey } from '../contract.js'
import { formatCheckpointId, parseCheckpointId } from '../entry/checkpoint-id.js'
import type { OpenedEntry } from '../entry/entry-opening.js'
import type { Fold } from '../entry/fold.js'
import { type LogEnvironment, observeLoad } from '../log-environment.js'
import { retry } from '../write/retry.js'
import type { LogReader } from './log-reader.js'

/** An entry as a list shows it: its header, without the body. */
export interface HistoryEntry {
  /** The checkpoint id. */
  readonly id: string
  readonly hash: string
  readonly header: EntryHeader
  /** Stored bytes of the body. */
  readonly storedBytes: number
}

/** The state at any kept entry, by seq or checkpoint id. */
export async function foldAt(
  environment: LogEnvironment,
  log: LogKey,
  reader: LogReader,
  checkpoint: number | string,
): Promise<Fold> {
  const read = (seq: number) => retry(environment, () => observeLoad(environment, reader.at(seq)))
  if (typeof checkpoint === 'number') return read(checkpoint)
  const { branch, seq, hashStart } = parseCheckpointId(checkpoint)
  if (branch !== log.branch) {
    throw new NotFoundError(`Checkpoint ${checkpoint} is of branch "${branch}".`, 'Open that branch.', {
      checkpoint,
      branch,
    })
  }
  const fold = await read(seq)
  if (!fold.hash.startsWith(hashStart)) {
    throw new NotFoundError(
      `Checkpoint ${checkpoint} does not belong to the history of ${nameLog(log)}: entry ${seq} is a different one.`,
      'Use a checkpoint that history lists.',
      { checkpoint },
    )
  }
  return fold
}

/** One page of entries without their bodies, newest first. */
export async function historyPage(
  environment: LogEnvironment,
  log: LogKey,
  options: { readonly before?: number; readonly limit: number },
): Promise<readonly HistoryEntry[]> {
  if (!Number.isSafeInteger(options.limit) || options.limit < 1) {
    throw new InvalidOptionError('limit', 'is not a positive whole number', 'Pass how many entries a page should hold.')
  }
  const headers = await retry(environment, () => environment.driver.headers(log, options))
  return headers.map(({ seq, hash, header, size }) => ({
    id: formatCheckpointId(log.branch, seq, hash),
    hash,
    header: decodeHeader(header),
    storedBytes: size,
  }))
}

/** Verified entries, oldest first. A backend that does not answer is asked again, from where the reading was. */
export async function* readEntries(
  environment: LogEnvironment,
  reader: LogReader,
  from: number,
  to: number,
  before?: Fold,
): AsyncGenerator<OpenedEntry> {
  let next = from
  let last = before
  let entries: AsyncGenerator<OpenedEntry> | undefined
  const readOne = async (attempt: number) => {
    if (attempt > 0) entries = undefined
    entries ??= reader.entries(next, to, last)
    return entries.next()
  }
  for (;;) {
    const read = await retry(environment, readOne)
    if (read.done) return
    next = read.value.header.seq + 1
    last = read.value.fold
    yield read.value
  }
}
