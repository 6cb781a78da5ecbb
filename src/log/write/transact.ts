import {
  ConflictError,
  FencedError,
  InvalidOptionError,
  InvalidValueError,
  isHoldfastError,
} from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { Append, AppendResult, BlobWriter, Driver, LogKey, SqlSession } from '../contract.js'
import type { Draft } from '../entry/draft.js'
import type { EntryCodec } from '../entry/entry-codec.js'
import type { Fold } from '../entry/fold.js'
import { hasLanded } from './send-again.js'
import { type LogEnvironment, observeSave } from '../log-environment.js'
import { type LogWriter, planAppend } from './log-writer.js'
import { backoffMs } from './retry.js'
import type { Planned, Updated, Writer } from './update.js'

export const DEFAULT_TIMEOUT_MS = 5000
/** A transaction holds locks, and on SQLite all other writers wait for it. */
const MAX_TIMEOUT_MS = 60_000
const MAX_CONFLICTS = 1000

export interface TransactRequest<T> {
  readonly work: (sql: SqlSession) => Promise<T>
  readonly decide: (fold: Fold, result: T) => readonly Draft[]
  readonly timeoutMs: number
}

/** The result of SQL that committed together with its entry. */
export interface Transacted<T> {
  /** What the work returned, in the run that was committed. */
  readonly result: T
  readonly updated: Updated
}

interface Place {
  readonly environment: LogEnvironment
  readonly log: LogKey
  readonly writer: LogWriter
  /** A codec whose blobs are stored inside the transaction. */
  codecFor(blobs: BlobWriter): EntryCodec
}

/** One run of the work, as far as its append. */
interface Attempt<T> {
  readonly result: T
  readonly append: Append
  readonly plan: Planned
}

/**
 * The user's SQL and the entries that record it, in one transaction, exactly once. It is never batched with other
 * appends. Every attempt expects the same end of the log until that has moved, so at most one of several attempts can
 * land; one whose acknowledgment got lost is looked for before and after the next.
 */
export function transact<T>(
  place: Place,
  owner: Extract<Writer, { kind: 'owner' }>,
  request: TransactRequest<T>,
): Promise<Transacted<T>> {
  const { environment, log, writer } = place
  const { driver, clock, retryMs, keys, randomId, observer } = environment
  const appendId = randomId()

  async function run(): Promise<Transacted<T>> {
    const begin = transactionsOf(driver)
    checkTimeout(request.timeoutMs)
    const deadline = clock.monotonic() + retryMs
    let uncertain: Attempt<T>[] = []
    let failures = 0
    for (let conflicts = 0; conflicts <= MAX_CONFLICTS; ) {
      if (writer.known.mustRefresh && uncertain.length === 0) await writer.known.refresh()
      const known = writer.known.fold
      if (known.epoch !== owner.epoch) {
        throw new FencedError({ log: nameLog(log), epoch: owner.epoch, current: known.epoch })
      }
      // Creating a first data key is a write, which would wait for the end of the transaction that waits for it.
      await keys?.current(log.tenant)
      let attempt: Attempt<T> | undefined
      let outcome: AppendResult | undefined
      try {
        outcome = await begin(
          async (sql, blobs) => {
            const result = await request.work(sql)
            attempt = await plan(known, result, place.codecFor(blobs))
            return attempt.append
          },
          { timeoutMs: request.timeoutMs },
        )
      } catch (error) {
        // Without an append the transaction was never committed.
        if (attempt !== undefined && !isDefinite(error)) uncertain.push(attempt)
        const landed = await findLanded(uncertain).catch(() => undefined)
        if (landed !== undefined) return settle(known, landed)
        if (!isHoldfastError(error, 'unavailable') || clock.monotonic() >= deadline) {
          // It may land after all: the next update looks before it decides.
          writer.known.mustRefresh ||= uncertain.length > 0
          throw error
        }
        await clock.sleep(backoffMs(failures++))
        continue
      }
      if (outcome.status === 'appended') return settle(known, attempt as Attempt<T>)
      const landed = await findLanded(uncertain)
      if (landed !== undefined) return settle(known, landed)
      // The log ends elsewhere now, so none of the earlier attempts can land anymore.
      uncertain = []
      observer.count('holdfast.conflicts')
      await writer.known.refresh(known, outcome.head)
      if (++conflicts > 2) await clock.sleep(Math.random() * Math.min(conflicts, 20))
    }
    throw new ConflictError(`${nameLog(log)} was changed by others ${MAX_CONFLICTS} times.`, { log })
  }

  async function plan(known: Fold, result: T, codec: EntryCodec): Promise<Attempt<T>> {
    let failure: { readonly error: unknown } | undefined
    const planned = await planAppend(log, codec, environment, known, [
      {
        decide: (fold) => request.decide(fold, result),
        writer: owner,
        appendId,
        resolve: () => {},
        reject: (error) => (failure = { error }),
      },
    ])
    if (failure !== undefined) throw failure.error
    if (planned.append === undefined) {
      throw new InvalidValueError(
        'decide',
        'made no entry of what the transaction did',
        'Record it in at least one entry: without that it could not be known to be done.',
      )
    }
    return { result, append: planned.append, plan: planned }
  }

  async function findLanded(attempts: readonly Attempt<T>[]): Promise<Attempt<T> | undefined> {
    for (const attempt of attempts) if (await hasLanded(driver, attempt.append)) return attempt
    return undefined
  }

  async function settle(known: Fold, { result, append, plan }: Attempt<T>): Promise<Transacted<T>> {
    writer.known.fold = plan.fold
    environment.news.appended([append], [{ status: 'appended' }])
    await writer.known.applied.apply(known, plan.fold, plan.carried)
    // How long it took says more about the user's SQL than about saving.
    observeSave(environment, append, plan.carried)
    return { result, updated: { entries: plan.members[0]?.entries ?? [], fold: plan.fold } }
  }

  return writer.alone(run)
}

function isDefinite(error: unknown): boolean {
  return isHoldfastError(error) && (error.data.written === 'nothing' || error.code === 'closed')
}

function transactionsOf(driver: Driver): NonNullable<Driver['transact']> {
  if (driver.transact !== undefined) return driver.transact.bind(driver)
  throw new InvalidOptionError(
    'transact',
    `is not offered by the ${driver.name} driver`,
    'Open the store on SQLite or Postgres, or make the effect idempotent and record it by update.',
    { driver: driver.name },
  )
}

function checkTimeout(timeoutMs: unknown): void {
  if (Number.isSafeInteger(timeoutMs) && (timeoutMs as number) >= 1 && (timeoutMs as number) <= MAX_TIMEOUT_MS) return
  throw new InvalidOptionError(
    'timeoutMs',
    `is ${String(timeoutMs)}`,
    `Pass a whole number from 1 to ${MAX_TIMEOUT_MS}; the default is ${DEFAULT_TIMEOUT_MS}.`,
  )
}
