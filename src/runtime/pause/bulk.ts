import { mapSome } from '../../core/map-some.js'
import type { ThreadIdInput } from '../../core/ids.js'
import { threadIdInput } from '../../core/ids.js'
import { checkWhole } from '../../core/wording/choices.js'
import { InvalidOptionError, isHoldfastError } from '../../core/errors.js'
import type { HeadQuery, LogKey } from '../../log/contract.js'
import { allHeads } from '../../log/read/heads.js'
import type { PauseAnswer, RefusedAnswer } from './answer.js'
import { migrateRun } from '../run/hold/begin.js'
import { unheard } from '../events/event-feed.js'
import { claimThread } from '../run/request/gap.js'
import { describePauses, type OpenPause, type Outcome } from '../run/state/outcome.js'
import type { ProgramPlan } from '../program/program.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { runThread } from '../run/run-thread.js'
import type { RunState } from '../run/state/run-state.js'
import { ASKS, PROGRAM } from '../run/state/labels.js'
import { type Upgraded, upgradeInput, upgradeRun } from '../upgrade/upgrade.js'

/** An open question with the thread that asks it. */
export interface ThreadPause extends OpenPause {
  readonly thread: ThreadIdInput
  readonly branch: string
}

/** One page of open questions. */
export interface PausePage {
  readonly pauses: readonly ThreadPause[]
  /** Threads whose questions can't be read, for example because they are damaged. The others are still listed. */
  readonly unreadable: readonly { readonly thread: ThreadIdInput; readonly branch: string; readonly error: unknown }[]
  readonly cursor?: string
}

/** Threads that wait for people, then those whose run failed while it had an open question. */
const ASKING: readonly Partial<HeadQuery>[] = [
  { status: ['waiting_human'] },
  { status: ['failed', 'incompatible'], metadata: { [ASKS]: true } },
]

/** One page of threads with open questions, and the questions. */
export async function listPauses(
  environment: RuntimeEnvironment,
  query: HeadQuery,
  options: { readonly deferred?: boolean },
): Promise<PausePage> {
  const { keys, cursor } = await listAsking(environment, query)
  const now = environment.clock.now()
  const isListed = ({ deferred }: OpenPause) =>
    options.deferred !== false || deferred === undefined || deferred.until.getTime() <= now
  const pauses: ThreadPause[] = []
  const unreadable: PausePage['unreadable'][number][] = []
  const found = await mapSome(keys, CONCURRENCY, async (key) => {
    const where = { thread: threadIdInput(key.thread), branch: key.branch as string }
    try {
      const { fold } = await environment.logs.open(key)
      return describePauses(fold.state as RunState)
        .filter(isListed)
        .map((pause) => ({ ...pause, ...where }))
    } catch (error) {
      unreadable.push({ ...where, error })
      return []
    }
  })
  pauses.push(...found.flat())
  return { pauses, unreadable, ...(cursor === undefined ? {} : { cursor }) }
}

async function listAsking({ logs }: RuntimeEnvironment, query: HeadQuery) {
  const [start = '0', ...rest] = (query.cursor ?? '0.').split('.')
  let phase = Number(start)
  let at: string | undefined = rest.join('.')
  if (!(phase in ASKING))
    throw new InvalidOptionError(
      'cursor',
      'was not returned by this list',
      'Pass the cursor of the last page, or leave it out to start over.',
    )
  const keys: LogKey[] = []
  const { cursor: _, ...filters } = query
  while (phase < ASKING.length && keys.length < query.limit) {
    const { metadata, ...asking } = ASKING[phase] as Partial<HeadQuery>
    const page = await logs.list({
      ...filters,
      ...asking,
      metadata: { ...filters.metadata, ...metadata },
      limit: query.limit - keys.length,
      ...(at ? { cursor: at } : {}),
    })
    keys.push(...page.heads.map(({ log }) => log))
    at = page.cursor
    if (at === undefined) phase++
  }
  return { keys, cursor: phase < ASKING.length ? `${phase}.${at ?? ''}` : undefined }
}

/** The outcome of one of many answers. */
export interface BulkAnswer {
  readonly pause: string
  /** Why this one was refused. The others are not affected. */
  readonly error?: unknown
}

/**
 * Gives many answers, for several threads at a time, each accepted or refused on its own: those for one thread
 * together, so that it continues with all of them. The results are in the order of the answers.
 */
export async function answerAll<Answer extends PauseAnswer>(
  answers: readonly Answer[],
  nameOf: (answer: Answer) => string,
  give: (answers: readonly Answer[]) => Promise<readonly RefusedAnswer[]>,
): Promise<readonly BulkAnswer[]> {
  const results: BulkAnswer[] = answers.map(({ pause }) => ({ pause }))
  const threads = new Map<string, number[]>()
  for (const [i, answer] of answers.entries()) {
    try {
      const name = nameOf(answer)
      threads.set(name, [...(threads.get(name) ?? []), i])
    } catch (error) {
      results[i] = { pause: answer.pause, error }
    }
  }
  await mapSome([...threads.values()], CONCURRENCY, async (places) => {
    const refuse = (place: number, error: unknown) => {
      results[place] = { pause: (answers[place] as Answer).pause, error }
    }
    try {
      const refused = await give(places.map((place) => answers[place] as Answer))
      for (const { index, error } of refused) refuse(places[index] as number, error)
    } catch (error) {
      for (const place of places) refuse(place, error)
    }
  })
  return results
}

/** How one of many resumed threads ended. */
export interface BulkRun {
  readonly thread: ThreadIdInput
  readonly branch: string
  readonly outcome?: Outcome
  readonly error?: unknown
  /** What `onRun` threw when it was called for this run. */
  readonly listenerError?: unknown
}

const CONCURRENCY = 16
const MAX_CONCURRENCY = 10_000

/** How threads are resumed together. */
export interface BulkRunOptions {
  /** Threads at once. Default 16. */
  readonly concurrency?: number
  readonly context?: unknown
  readonly signal?: AbortSignal
  /**
   * Called with each run as it ends, and with how many there are in total; the next thread in its slot starts when it
   * is done. If it throws, nothing stops: the error is reported with the run, as `listenerError`.
   */
  readonly onRun?: (run: BulkRun, total: number) => void | Promise<void>
}

/** Resumes all threads of a program that a query finds, some at a time. */
export async function resumeAll(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  query: HeadQuery,
  options: BulkRunOptions,
): Promise<readonly BulkRun[]> {
  const { concurrency = CONCURRENCY, onRun } = options
  checkWhole('concurrency', concurrency, MAX_CONCURRENCY)
  const keys = await listOf(environment, plan, query)
  return mapSome(keys, concurrency, async (key): Promise<BulkRun> => {
    const run = await resumeOne(environment, plan, key, options)
    try {
      await onRun?.(run, keys.length)
      return run
    } catch (listenerError) {
      // Rethrown, it would hide how all the other runs ended, including those in progress.
      return { ...run, listenerError }
    }
  })
}

async function resumeOne(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  key: LogKey,
  { context, signal }: BulkRunOptions,
): Promise<BulkRun> {
  const where = { thread: threadIdInput(key.thread), branch: key.branch as string }
  try {
    const settings = { hasInput: false, emit: unheard, context, ...(signal ? { signal } : {}) }
    return { ...where, outcome: await runThread(environment, plan, key, settings) }
  } catch (error) {
    return { ...where, error }
  }
}

/** Which threads were migrated to the newest state version, and which could not be. */
export interface MigrationReport {
  readonly checked: number
  readonly migrated: readonly {
    readonly thread: ThreadIdInput
    readonly branch: string
    readonly from: number
    readonly to: number
    /** States of subgraphs in progress that were migrated too. */
    readonly subgraphs: readonly Upgraded[]
  }[]
  readonly failed: readonly { readonly thread: ThreadIdInput; readonly branch: string; readonly error: unknown }[]
}

/** Migrates the states of all threads of a program. With `dryRun`, nothing is written. */
export async function migrateAll(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  query: HeadQuery,
  options: { readonly dryRun?: boolean },
): Promise<MigrationReport> {
  const keys = await listOf(environment, plan, query)
  const migrated: MigrationReport['migrated'][number][] = []
  const failed: MigrationReport['failed'][number][] = []
  await mapSome(keys, CONCURRENCY, async (key) => {
    const where = { thread: threadIdInput(key.thread), branch: key.branch as string }
    try {
      const done = await migrateOne(environment, plan, key, options.dryRun ?? false)
      if (done) migrated.push({ ...where, ...done })
    } catch (error) {
      failed.push({ ...where, error })
    }
  })
  return { checked: keys.length, migrated, failed }
}

/** What was migrated where; undefined if there was nothing to do. */
async function migrateOne(environment: RuntimeEnvironment, plan: ProgramPlan, key: LogKey, dryRun: boolean) {
  const log = await environment.logs.open(key)
  // Throws for a missing migration and for a state from the future, before anything is claimed.
  const { upgraded } = upgradeRun(plan, log.fold.state as RunState)
  // Waiting input stays as it is until it is taken; this reports what will be refused then.
  const { inputs = [], later = [] } = log.fold.state as RunState
  for (const input of [...inputs, ...later]) if (plan.kind === 'graph') upgradeInput(plan, input)
  if (upgraded.length === 0) return undefined
  const version = (log.fold.state as RunState).run?.stateVersion ?? 1
  const { from, to } = upgraded.find(({ path }) => path === '') ?? { from: version, to: version }
  const report = { from, to, subgraphs: upgraded.filter(({ path }) => path !== '') }
  if (dryRun) return report
  const claim = await claimThread(log, { owner: environment.owner, ms: 10_000 })
  try {
    await claim.release((fold) => {
      const draft = migrateRun(plan, fold.state as RunState)
      return draft && [draft]
    })
  } catch (error) {
    if (!isHoldfastError(error, 'fenced')) await claim.release().catch(() => {})
    throw error
  }
  return report
}

async function listOf({ logs }: RuntimeEnvironment, plan: ProgramPlan, query: HeadQuery): Promise<readonly LogKey[]> {
  const keys: LogKey[] = []
  const metadata = { ...query.metadata, [PROGRAM]: plan.name }
  const found = allHeads((page) => logs.list(page), { ...query, metadata, limit: 1000 })
  for await (const { log } of found) keys.push(log)
  return keys
}
