import { encodeValue } from '../../codec/value.js'
import { isHoldfastError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import { formatCheckpointId } from '../entry/checkpoint-id.js'
import type { Head, IndexFields, LogKey } from '../contract.js'
import { type EntryBody, type Fold, foldEntry } from '../entry/fold.js'
import { indexFields } from '../entry/index-state.js'
import { Log } from '../log.js'
import type { LogEnvironment } from '../log-environment.js'

/** What a walk over a whole branch found. */
export interface Verification {
  readonly log: LogKey
  readonly ok: boolean
  /** How many entries verified. */
  readonly entries: number
  /** How many of these only `keys.adoptPlain` accepts: they have no key, and there is none above them. */
  readonly plain: number
  /** The newest checkpoint that verifies. */
  readonly lastGood: string | undefined
  /** What is wrong, in plain words; empty if all is well. */
  readonly problems: readonly string[]
  /** True when the row of the thread index was wrong and has been rebuilt from the log. */
  readonly repairedIndex: boolean
}

/**
 * Walks a whole log: every hash and parent, every body and blob, every keyframe against the deltas before it, the
 * origin of a fork, and the row of the thread index against what the entries say.
 */
export async function verifyLog(
  environment: LogEnvironment,
  key: LogKey,
  options: { readonly repair?: boolean } = {},
): Promise<Verification | undefined> {
  const { driver } = environment
  const problems: string[] = []
  const head = await driver.head(key).catch((error: unknown) => {
    if (!isHoldfastError(error, 'corrupt')) throw error
    problems.push(error.message)
    return 'damaged' as const
  })
  if (head === undefined) return undefined
  if (head === 'damaged')
    return { log: key, ok: false, entries: 0, plain: 0, lastGood: undefined, problems, repairedIndex: false }
  let count = 0
  let plain = 0
  let fold: Fold | undefined
  try {
    const log = Log.unread(environment, key)
    for await (const entry of log.entries(head.base.seq, head.seq)) {
      if (entry.body.fold && fold && !keyframeMatches(environment, fold, entry)) {
        problems.push(`Keyframe ${entry.header.seq} differs from the entries before it.`)
      }
      if (fold === undefined && entry.hash !== head.base.hash)
        problems.push('The first entry is not the one its base names.')
      fold = entry.fold
      count++
      plain = environment.keys && entry.header.key === null ? plain + 1 : 0
    }
    if (fold === undefined || fold.seq !== head.seq)
      problems.push(`Entry ${(fold?.seq ?? head.base.seq - 1) + 1} is missing.`)
    else if (fold.hash !== head.hash || fold.epoch !== head.epoch)
      problems.push('The head does not match the last entry.')
  } catch (error) {
    if (!isHoldfastError(error, 'corrupt')) throw error
    problems.push(error.message)
  }
  if (fold?.origin) problems.push(...(await checkOrigin(environment, key, fold)))
  const wrongIndex = problems.length === 0 && fold !== undefined && !sameIndex(head, indexOf(fold))
  const repairedIndex =
    wrongIndex && options.repair === true && (await driver.reindex(key, head, indexOf(fold as Fold)))
  if (wrongIndex && !repairedIndex) problems.push('The row in the thread index does not match the log.')
  const lastGood = fold && formatCheckpointId(key.branch, fold.seq, fold.hash)
  return { log: key, ok: problems.length === 0, entries: count, plain, lastGood, problems, repairedIndex }
}

function keyframeMatches(
  { limits }: LogEnvironment,
  before: Fold,
  entry: { readonly body: EntryBody; readonly fold: Fold },
): boolean {
  const { fold: _, ...delta } = entry.body
  const facts = { ...entry.fold, size: 0 }
  const computed = foldEntry(before, delta, facts, () => false)
  return (
    encodeValue([computed.state, computed.index], limits).json ===
    encodeValue([entry.fold.state, entry.fold.index], limits).json
  )
}

async function checkOrigin({ driver }: LogEnvironment, key: LogKey, { origin }: Fold): Promise<string[]> {
  if (!origin) return []
  const parent = { ...key, branch: origin.branch }
  const head = await driver.head(parent)
  // A parent that was erased or pruned takes nothing from its forks.
  if (head === undefined || head.incarnation !== origin.incarnation || origin.seq < head.base.seq) return []
  const [entry] = await driver.read(parent, origin.seq, 1)
  return entry?.seq === origin.seq && entry.hash === origin.hash
    ? []
    : [`It names entry ${origin.seq} of ${nameLog(parent)} as its origin, which is another entry.`]
}

function indexOf(fold: Fold): IndexFields {
  return indexFields(fold.index, fold.at, fold.origin)
}

function sameIndex(head: Head, fields: IndexFields): boolean {
  const comparable = ({ metadata, tags, origin, ...rest }: IndexFields) =>
    JSON.stringify([
      Object.entries(metadata).sort(([a], [b]) => (a < b ? -1 : 1)),
      tags,
      origin && [origin.branch, origin.incarnation, origin.seq, origin.hash],
      rest.status,
      rest.createdAt,
      rest.updatedAt,
      rest.expiresAt,
      rest.wakeAt,
    ])
  return comparable(head.index) === comparable(fields)
}
