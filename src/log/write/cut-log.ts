import { isHoldfastError, NotFoundError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { LogKey, StoredEntry } from '../contract.js'
import type { EntryCodec } from '../entry/entry-codec.js'
import type { OpenedEntry } from '../entry/entry-opening.js'
import type { Fold } from '../entry/fold.js'
import type { LogEnvironment } from '../log-environment.js'
import { retry } from './retry.js'

/** Called with the first entry that stays, and whether a keyframe takes its place. */
export type BeforeRemoval = (at: number, isReplaced: boolean) => Promise<void>

/**
 * Removes everything before an entry, and returns how many entries that were. The entry itself stays, with a keyframe
 * in its place; if the state is too large for one, what precedes the newest keyframe at or before it is removed.
 * @param known what was read of the log, which is as far as it may be cut.
 */
export async function cutLog(
  environment: LogEnvironment,
  log: LogKey,
  known: Fold,
  seq: number,
  readTail: (upTo: number) => Promise<readonly OpenedEntry[]>,
  codec: EntryCodec,
  beforeRemoval?: BeforeRemoval,
): Promise<number> {
  // No further than what was read: opening applied these entries' writes to the store, not those of later ones.
  const opened = seq > known.seq ? [] : await retry(environment, () => readTail(seq))
  const [keyframe, before, last] = [opened[0], opened.at(-2), opened.at(-1)]
  if (keyframe === undefined || last === undefined) {
    const message = `${nameLog(log)} holds no entry ${seq}.`
    throw new NotFoundError(message, 'Prune to an entry that history lists.', { seq })
  }
  const standIn = before && (await makeStandIn(codec, before.fold, last))
  const at = standIn === undefined ? keyframe.header.seq : seq
  await beforeRemoval?.(at, standIn !== undefined)
  const result = await retry(environment, () => environment.driver.prune(log, known.incarnation, at, standIn))
  return result === 'conflict' ? 0 : result.removed
}

async function makeStandIn(codec: EntryCodec, before: Fold, entry: OpenedEntry): Promise<StoredEntry | undefined> {
  try {
    return await codec.standIn(before, entry)
  } catch (error) {
    if (!isHoldfastError(error, 'too-large')) throw error
    return undefined
  }
}
