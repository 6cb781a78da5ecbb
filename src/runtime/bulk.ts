import type { ThreadIdInput } from '../core/ids.js'
import { threadIdInput } from '../core/ids.js'
import { isHoldfastError } from '../core/errors.js'
import type { HeadQuery, LogKey } from '../log/contract.js'
import { set } from '../log/ops.js'
import { migrateRun } from './begin.js'
import { migrateState } from './migration.js'
import { describePauses, type OpenPause, type Outcome } from './outcome.js'
import type { ProgramPlan } from './program.js'
import { type RuntimeEnvironment, runThread } from './run-thread.js'
import type { RunState } from './run-state.js'
import { PROGRAM } from './situation.js'

/** An open question with the thread that asks it. */
export interface ThreadPause extends OpenPause {
  readonly thread: ThreadIdInput
  readonly branch: string
}

export interface PausePage {
  readonly pauses: readonly ThreadPause[]
  readonly cursor?: string
}

/** One page of threads with open questions, and the questions. */
export async function listPauses(environment: RuntimeEnvironment, query: HeadQuery): Promise<PausePage> {
  const page = await environment.logs.list({ ...query, status: ['waiting_human'] })
  const found = await Promise.all(
    page.heads.map(async ({ log }) => {
      const { fold } = await environment.logs.open(log)
      const where = { thread: threadIdInput(log.thread), branch: log.branch as string }
      return describePauses(fold.state as RunState).map((pause) => ({ ...pause, ...where }))
    }),
  )
  return { pauses: found.flat(), ...(page.cursor === undefined ? {} : { cursor: page.cursor }) }
}

export interface BulkRun {
  readonly thread: ThreadIdInput
  readonly branch: string
  readonly outcome?: Outcome
  readonly error?: unknown
}

const CONCURRENCY = 16

/** Resumes all threads of a program that a query finds, some at a time. */
export async function resumeAll(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  query: HeadQuery,
  options: { readonly concurrency?: number; readonly context?: unknown; readonly signal?: AbortSignal },
): Promise<readonly BulkRun[]> {
  const keys = await listOf(environment, plan, query)
  return mapSome(keys, options.concurrency ?? CONCURRENCY, async (key): Promise<BulkRun> => {
    const where = { thread: threadIdInput(key.thread), branch: key.branch as string }
    try {
      const { context, signal } = options
      const settings = { hasInput: false, emit: () => {}, context, ...(signal ? { signal } : {}) }
      return { ...where, outcome: await runThread(environment, plan, key, settings) }
    } catch (error) {
      return { ...where, error }
    }
  })
}

export interface MigrationReport {
  readonly checked: number
  readonly migrated: readonly {
    readonly thread: ThreadIdInput
    readonly branch: string
    readonly from: number
    readonly to: number
  }[]
  readonly failed: readonly { readonly thread: ThreadIdInput; readonly branch: string; readonly error: unknown }[]
}

/** Brings the states of all threads of a program up to date. With `dryRun` nothing is written. */
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
      const from = await migrateOne(environment, plan, key, options.dryRun ?? false)
      if (from !== undefined && plan.kind === 'graph') migrated.push({ ...where, from, to: plan.stateVersion })
    } catch (error) {
      failed.push({ ...where, error })
    }
  })
  return { checked: keys.length, migrated, failed }
}

/** The version it was migrated from; undefined when there was nothing to do. */
async function migrateOne(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  key: LogKey,
  dryRun: boolean,
): Promise<number | undefined> {
  const log = await environment.logs.open(key)
  const { run, state = {} } = log.fold.state as RunState
  if (plan.kind !== 'graph' || run === undefined || run.stateVersion === plan.stateVersion) return undefined
  // Throws for a gap and for a state of the future, before anything is claimed.
  migrateState(state, run.stateVersion, plan.stateVersion, plan.migrations)
  if (dryRun) return run.stateVersion
  const claim = await log.claim({ owner: environment.owner, ms: 10_000 })
  try {
    await claim.release((fold) => {
      const draft = migrateRun(plan, fold.state as RunState)
      return draft && [{ ...draft, ops: [...(draft.ops ?? []), set(['run', 'claims'], 0)] }]
    })
  } catch (error) {
    if (!isHoldfastError(error, 'fenced')) await claim.release().catch(() => {})
    throw error
  }
  return run.stateVersion
}

async function listOf(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  query: HeadQuery,
): Promise<readonly LogKey[]> {
  const keys: LogKey[] = []
  for (let cursor: string | undefined; ; ) {
    const metadata = { ...query.metadata, [PROGRAM]: plan.name }
    const page = await environment.logs.list({ ...query, metadata, limit: 1000, ...(cursor ? { cursor } : {}) })
    keys.push(...page.heads.map(({ log }) => log))
    cursor = page.cursor
    if (cursor === undefined) return keys
  }
}

async function mapSome<Item, Result>(
  items: readonly Item[],
  atOnce: number,
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = new Array(items.length)
  let next = 0
  const walk = async () => {
    for (let at = next++; at < items.length; at = next++) results[at] = await work(items[at] as Item)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, walk))
  return results
}
