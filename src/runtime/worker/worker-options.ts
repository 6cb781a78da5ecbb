import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import { InvalidOptionError } from '../../core/errors.js'
import type { SweepReport } from '../../core/retention.js'
import type { StartedOccurrences } from '../schedule/start-occurrences.js'
import type { RunEvent } from '../events/events.js'
import type { Outcome } from '../run/state/outcome.js'
import { planOf } from '../program/check-program.js'
import type { ProgramPlan } from '../program/program.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import type { Limits, WorkerLimit } from './limits.js'
import type { WorkerRests } from './worker-rests.js'
import type { Durable, Frequency } from '../run/record/record-policy.js'
import {
  parseBranchId,
  parseTenantId,
  parseThreadId,
  type ThreadIdInput,
  threadIdInput,
  type TenantId,
} from '../../core/ids.js'
import { DUE, type Head, type LogKey, PRIORITY_LABEL } from '../../log/contract.js'
import { PROGRAM } from '../run/state/labels.js'
import { programOfLabel } from '../schedule/schedule-state.js'

/** A thread that is due, as it is handed to another engine. Plain JSON. */
export interface DueThread {
  readonly tenant: string
  readonly thread: ThreadIdInput
  readonly branch: string
  /** By name. */
  readonly program: string
  /** The priority its input was enqueued with; a higher number is more urgent. Default 0. */
  readonly priority: number
}

/** What an engine must keep of it. */
export type DueKey = Pick<DueThread, 'tenant' | 'thread' | 'branch'>

export function describeDue({ log, index }: Head): DueThread {
  const program = programOfLabel(String(index.metadata[PROGRAM] ?? ''))
  const priority = Number(index.metadata[PRIORITY_LABEL] ?? 0)
  return { tenant: log.tenant, thread: threadIdInput(log.thread), branch: log.branch, program, priority }
}

/** What comes back from another engine is not trusted to be what it was given. */
export function parseDue({ tenant, thread, branch }: DueKey): LogKey {
  return { tenant: parseTenantId(tenant), thread: parseThreadId(thread), branch: parseBranchId(branch) }
}

export function isDue({ index: { wakeAt } }: Head, now: number): boolean {
  return wakeAt !== null && (wakeAt === DUE || wakeAt <= now)
}

/** How a thread's work ended, according to its worker's events; undefined while it has not. */
export function workedOf(event: WorkerEvent): Worked | undefined {
  if (event.type === 'ended') return { status: 'ended', outcome: event.outcome }
  if (event.type === 'error') return { status: 'error', error: event.error }
  if (event.type === 'stopped') return { status: 'stopped' }
  if (event.type === 'scheduled') return { status: 'scheduled' }
  return undefined
}

/** Which programs a worker runs, how many threads at once, and how it behaves when it stops. */
export interface WorkerOptions {
  readonly programs: readonly { readonly plan: ProgramPlan }[]
  /** How many threads run at once. Default 10. */
  readonly concurrency?: number
  /** How long a thread stays claimed without a heartbeat, in milliseconds. Default 10,000. */
  readonly leaseMs?: number
  /**
   * How often to look for work, in milliseconds. Default: every 5 seconds where news of work arrives (it is then found
   * at once), and every 500 ms where it doesn't: on files, and behind a pooler without `listenUrl`.
   */
  readonly pollMs?: number
  /** False: it doesn't look for work, because another engine brings it with `work`. It still sweeps. Default true. */
  readonly looks?: boolean
  /** How long steps may take to end after `stop`, in milliseconds. Default 30,000. */
  readonly graceMs?: number
  /**
   * A run that crashed this many workers without progress is parked as failed. Before the last of them, a thread runs
   * alone in its process, and only crashes while it ran alone count as its own. Default 5.
   */
  readonly maxCrashes?: number
  /**
   * The context of a run that was started without one, and what a run did not record: its program's `transientContext`.
   * May return a promise. A run whose context is incomplete here is left to another worker, with the error
   * `missing-context`.
   */
  readonly context?: (thread: { readonly tenant: string; readonly thread: string; readonly branch: string }) => unknown
  readonly durability?: Durable
  readonly frequency?: Frequency
  /** Identifies this worker to people. Default: host and process id. */
  readonly name?: string
  /** Stops on SIGTERM and SIGINT. Default true. */
  readonly handleSignals?: boolean
  /**
   * How many threads run at once, or start in a time: of a program, of each tenant, of each `limitKey`. They hold over all
   * workers that have them. Default: none but `concurrency`.
   */
  readonly limits?: readonly WorkerLimit[]
  readonly onEvent?: (event: WorkerEvent) => void
}

/** The events passed to `onEvent`. */
export type WorkerEvent =
  | { readonly type: 'taken'; readonly log: string; readonly idleMs: number }
  | { readonly type: 'ended'; readonly log: string; readonly outcome: Outcome }
  | { readonly type: 'stopped'; readonly log: string }
  | { readonly type: 'error'; readonly log?: string; readonly error: unknown }
  /** Due, but recorded by a version that this worker's program does not continue. */
  | { readonly type: 'skipped'; readonly log: string; readonly reason: string }
  /** Removed what the retention policy no longer keeps. */
  | { readonly type: 'swept'; readonly log?: undefined; readonly swept: SweepReport }
  /** Started occurrences of a schedule: their input waits for its turn. */
  | ({ readonly type: 'scheduled'; readonly log: string } & StartedOccurrences)
  | { readonly type: 'event'; readonly log: string; readonly event: RunEvent }

/** What a worker did with a thread that another engine brought to it. */
export type Worked =
  | { readonly status: 'ended'; readonly outcome: Outcome }
  /** It was a schedule; the threads it starts are due now. */
  | { readonly status: 'scheduled' }
  /** It is due as before, and should be brought to a worker again: this one drains, makes room, lost it, or a limit holds it up. */
  | { readonly status: 'stopped' }
  | { readonly status: 'error'; readonly error: unknown }
  /**
   * Nothing was done, and nothing has to be. `idle`: it is not due. `held`: somebody runs it. `unfit`: this worker does not have
   * its program, or another version, or leaves it alone for a moment after an error.
   */
  | { readonly status: 'idle' | 'held' | 'unfit' }

/** What a worker is doing now, as `worker.status` returns it. */
export interface WorkerStatus {
  /** `draining`: it was told to stop. `stuck`: it has not looked for work for minutes, and should be replaced. */
  readonly state: 'running' | 'draining' | 'stuck'
  readonly name: string
  readonly programs: readonly { readonly name: string; readonly version: string }[]
  /** How many threads it runs at once, and how many it runs now. */
  readonly places: number
  readonly busy: number
}

/** What the parts of a worker share. */
export interface WorkerParts {
  readonly environment: RuntimeEnvironment
  readonly tenant: TenantId | undefined
  readonly options: WorkerOptions
  readonly plans: ReadonlyMap<string, ProgramPlan>
  /** By which people know the worker, and claims are made. */
  readonly owner: string
  readonly rests: WorkerRests
  readonly limits: Limits | undefined
  /** Aborted when the worker starts nothing new. */
  readonly drain: AbortSignal
  /** Aborted when steps in progress are cut off. */
  readonly abort: AbortSignal
  readonly tell: (event: WorkerEvent) => void
  /** Looks for work now instead of at the next interval. */
  readonly nudge: () => void
}

const OPTIONS: OptionNames<WorkerOptions> = {
  programs: true,
  concurrency: true,
  leaseMs: true,
  pollMs: true,
  looks: true,
  graceMs: true,
  maxCrashes: true,
  context: true,
  durability: true,
  frequency: true,
  name: true,
  handleSignals: true,
  limits: true,
  onEvent: true,
}

export function readPrograms(options: WorkerOptions): ReadonlyMap<string, ProgramPlan> {
  checkOptionNames('hf.worker()', options, OPTIONS)
  const { programs } = options
  if (!Array.isArray(programs) || programs.length === 0) {
    throw new InvalidOptionError('programs', 'names no program', 'Pass the programs whose threads this worker runs.')
  }
  const plans = new Map<string, ProgramPlan>()
  for (const [i, program] of programs.entries()) {
    const plan = planOf(`programs[${i}]`, program)
    if (plans.has(plan.name)) {
      throw new InvalidOptionError('programs', `holds "${plan.name}" twice`, 'Pass one version of each program.')
    }
    plans.set(plan.name, plan)
  }
  return plans
}
