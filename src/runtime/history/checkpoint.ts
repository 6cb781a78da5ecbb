import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { copyValue, type Value } from '../../codec/value.js'
import { describeGiven } from '../../core/wording/choices.js'
import { InvalidOptionError, isHoldfastError, NotFoundError } from '../../core/errors.js'
import { type BranchId, parseBranchId } from '../../core/ids.js'
import type { OptionNames } from '../../core/wording/option-names.js'
import { parseCheckpointId } from '../../log/entry/checkpoint-id.js'
import { isCheckpoint } from '../../log/entry/checkpoint-kinds.js'
import type { LogKey } from '../../log/contract.js'
import type { Fold } from '../../log/entry/fold.js'
import type { HistoryEntry, Log } from '../../log/log.js'
import { applyOp, type Op, remove, set } from '../../log/entry/ops.js'
import { migrateRun } from '../run/hold/begin.js'
import { type Difference, diffValues } from './diff.js'
import { describePauses, type OpenPause } from '../run/state/outcome.js'
import { type RecordedEvent, recordedEvents } from '../events/events.js'
import { type CheckpointStep, describeSteps } from './checkpoint-steps.js'
import type { ProgramPlan } from '../program/program.js'
import type { Update } from '../program/state/state-shape.js'
import { expiresWhenAtRest, staysOpen } from '../run/state/expiry.js'
import { openPauses } from '../run/state/read-run-state.js'
import type { ForkRecord, RunRecord, RunState } from '../run/state/run-state.js'
import { isAtRest } from '../run/state/rest.js'
import { awaitedBy, FamilyRest } from '../child/family-rest.js'
import { follow } from '../events/follow.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { checkFits } from '../upgrade/fitting.js'
import { inherit } from './inherit.js'
import { dropKept, settleLeft } from '../step/record/kept-results.js'

/** An entry after which the program can continue, as history lists it: without reading what it holds. */
export interface CheckpointInfo {
  readonly id: string
  readonly seq: number
  /** What happened: `input`, `step`, `effect`, `wait`, `answer`, `end`, `fork`, `migrate` … */
  readonly kind: string
  readonly at: Date
  readonly bytes: number
  readonly hash: string
  /**
   * The nodes, tools, model calls and steps that it records, in order. Absent if only headers were requested, and if
   * the entry can't be read: damaged, or its key is missing.
   */
  readonly steps?: readonly CheckpointStep[]
  /** The events of its entry, if requested: steps, questions, answers, costs. */
  readonly events?: readonly CheckpointEvent[]
}

/** The events of an entry. Questions are named and not shown: they may be large. */
export type CheckpointEvent = RecordedEvent extends infer Event
  ? Event extends { readonly question: unknown }
    ? Omit<Event, 'question'>
    : Event
  : never

/** Everything known about a thread at a checkpoint. */
export interface CheckpointFacts {
  readonly id: string
  readonly at: Date
  readonly hash: string
  readonly status: string
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly program?: string
  readonly version?: string
  readonly stateVersion?: number
  readonly run?: RunRecord
  readonly pauses: readonly OpenPause[]
  readonly state: Readonly<Record<string, Value>>
}

/** What is different on a new branch, and what effects may do there. */
export interface ForkOptions<State = Readonly<Record<string, unknown>>, Update = State> {
  /** The name of the new branch. Default: a random one. */
  readonly name?: string
  /** Replaces values of the state; no reducer is called. With the program, each must match the schema of its key. */
  readonly set?: Partial<State>
  /** Changes the state through its reducers. */
  readonly update?: Update
  /** What effects on the outside world may do on the fork. Default 'ask': a person decides about each. */
  readonly effects?: ForkRecord['effects']
  /** Whether steps that only read run again, or reuse their recorded results if there are any. Default 'live'. */
  readonly reads?: ForkRecord['reads']
}

export const FORK_OPTIONS: OptionNames<ForkOptions> = {
  name: true,
  set: true,
  update: true,
  effects: true,
  reads: true,
}

/** Which checkpoints to list. */
export interface HistoryOptions {
  /** Default 100. */
  readonly limit?: number
  /** Only what comes before this checkpoint, by its id or its seq. */
  readonly before?: string | number
  /** Also entries that are not checkpoints: claims, releases, tags. */
  readonly all?: boolean
  /**
   * True: also the events of each entry. False: only headers are read, so the steps of each are left out; the cheap way
   * to page through a long history.
   */
  readonly events?: boolean
}

export const HISTORY_OPTIONS: OptionNames<HistoryOptions> = { limit: true, before: true, all: true, events: true }

const PAGE = 100

/** One page of checkpoints, newest first. */
export async function listCheckpoints(log: Log, options: HistoryOptions = {}): Promise<readonly CheckpointInfo[]> {
  const { limit = 100, before, all = false, events } = options
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > 10_000) {
    throw new InvalidOptionError(
      'limit',
      `must be a whole number from 1 to 10000, not ${describeGiven(limit)}`,
      'Ask for pages: pass the last id of a page as `before` to get the next one.',
    )
  }
  const found: CheckpointInfo[] = []
  let from = typeof before === 'string' ? seqOn(log.key, before) : before
  while (found.length < limit) {
    const page = await log.history({ limit: Math.max(PAGE, limit), ...(from === undefined ? {} : { before: from }) })
    for (const entry of page)
      if ((all || isCheckpoint(entry.header.kind)) && found.length < limit) found.push(describe(entry))
    const last = page.at(-1)
    if (last === undefined || last.header.seq === 0 || page.length < PAGE) break
    from = last.header.seq
  }
  return events === false ? found : withSteps(log, found, events ?? false)
}

async function withSteps(
  log: Log,
  found: readonly CheckpointInfo[],
  events: boolean,
): Promise<readonly CheckpointInfo[]> {
  const [newest, oldest] = [found[0], found.at(-1)]
  if (newest === undefined || oldest === undefined) return found
  const said = new Map<number, Pick<CheckpointInfo, 'steps' | 'events'>>()
  try {
    for await (const { header, body } of log.entries(oldest.seq, newest.seq)) {
      const recorded = recordedEvents(body)
      said.set(header.seq, { steps: describeSteps(recorded), ...(events ? { events: recorded.map(nameOnly) } : {}) })
    }
  } catch (error) {
    // What comes after the damage is still listed: someone who looks for the last good checkpoint has to see it. And
    // callers that did not ask for the contents of entries need not have their keys.
    if (!isHoldfastError(error, 'corrupt') && (events || !isHoldfastError(error, 'missing-key'))) throw error
  }
  return found.map((info) => ({ ...info, ...(said.get(info.seq) ?? (events ? { events: [] } : {})) }))
}

function nameOnly(event: RecordedEvent): CheckpointEvent {
  if (!('question' in event)) return event
  const { question: _, ...rest } = event
  return rest
}

// A number of another branch would show a page from somewhere else.
function seqOn({ branch }: LogKey, id: string): number {
  const { branch: of, seq } = parseCheckpointId(id)
  if (of === branch) return seq
  throw new NotFoundError(`Checkpoint ${id} is of branch "${of}", not of "${branch}".`, 'Ask that branch.', {
    checkpoint: id,
    branch: of,
  })
}

function describe({ id, hash, header, storedBytes }: HistoryEntry): CheckpointInfo {
  return { id, seq: header.seq, kind: header.kind, at: new Date(header.at), bytes: storedBytes, hash }
}

/** A thread as it was at one checkpoint. Reading it changes nothing; running it runs a fork. */
export class Checkpoint<State = Readonly<Record<string, Value>>> {
  readonly id: string
  protected readonly environment: RuntimeEnvironment
  protected readonly key: LogKey

  constructor(environment: RuntimeEnvironment, key: LogKey, id: string) {
    const { branch } = parseCheckpointId(id)
    this.id = id
    this.environment = environment
    this.key = { ...key, branch }
  }

  get branch(): string {
    return this.key.branch
  }

  /** The program's state as it was. */
  async state(): Promise<State> {
    return stateOf(await this.fold()) as State
  }

  /** Everything that was known about the thread. */
  async facts(): Promise<CheckpointFacts> {
    const fold = await this.fold()
    const { run } = fold.state as RunState
    return {
      id: this.id,
      at: new Date(fold.at),
      hash: fold.hash,
      status: fold.index.status,
      createdAt: new Date(fold.index.createdAt),
      expiresAt: fold.index.expiresAt === null ? null : new Date(fold.index.expiresAt),
      ...(run ? { program: run.program, version: run.version, stateVersion: run.stateVersion, run } : {}),
      pauses: describePauses(fold.state as RunState),
      state: stateOf(fold),
    }
  }

  /**
   * Whether the thread was at rest here: nothing of it continued by itself. Where it awaits threads that are in
   * progress, this is known when it moves on, or when they rest, too.
   */
  async rests(options: { readonly signal?: AbortSignal } = {}): Promise<boolean> {
    const { logs, clock } = this.environment
    const { state, seq, ...fold } = await this.fold()
    if (!isAtRest({ ...fold, state, seq }, clock.now())) return false
    if (awaitedBy(state as RunState).length === 0) return true
    const log = await logs.open(this.key)
    const family = new FamilyRest(logs)
    try {
      for await (const _ of follow(log, clock, options.signal, undefined, family)) {
        if (log.fold.seq !== seq) return false
        if (await family.isAtRest(log)) return true
      }
    } finally {
      family.close()
    }
    return false
  }

  /** What changed in the state from here to another checkpoint of the same thread, on any branch. */
  async diff(other: string | { readonly id: string }): Promise<readonly Difference[]> {
    const id = typeof other === 'string' ? other : other.id
    const there = new Checkpoint(this.environment, this.key, id)
    const [before, after] = await Promise.all([this.fold(), there.fold()])
    return diffValues(stateOf(before), stateOf(after))
  }

  async fold(): Promise<Fold> {
    return (await this.log()).at(this.id)
  }

  // Not opened and verified to its head: the newest entries may be the damaged ones.
  protected async log(): Promise<Log> {
    return this.environment.logs.unread(this.key)
  }
}

/** Creates a branch from a checkpoint, with changes. The branch it came from is not touched, now or later. */
export async function forkCheckpoint(
  environment: RuntimeEnvironment,
  key: LogKey,
  id: string,
  plan: ProgramPlan | undefined,
  options: ForkOptions,
): Promise<BranchId> {
  const from = { ...key, branch: parseCheckpointId(id).branch }
  const name =
    options.name === undefined
      ? (`fork-${environment.randomId().slice(0, 8)}` as BranchId)
      : parseBranchId(options.name)
  const fold = await environment.logs.unread(from).at(id)
  const ops = [
    ...(await changes(fold, plan, from, options)),
    ...inherit(fold, from.branch, environment.clock.now(), options),
  ]
  const { status } = fold.index
  const expiry = { store: environment.retention }
  // Nobody waits here for a run that was in progress on the original branch: a fork that is never run must not keep its
  // thread from expiring.
  const expires =
    openPauses(fold.state as RunState).length > 0
      ? staysOpen(fold.index)
      : expiresWhenAtRest(expiry, fold, plan, environment.clock.now())
  await environment.logs.fork(from, {
    branch: name,
    at: id,
    // Not due by itself: a worker that picked up the fork at once would run it before anyone has looked at it.
    draft: { ops, index: { status: status === 'active' ? 'forked' : status, wakeAt: null, ...expires } },
  })
  return name
}

async function changes(
  fold: Fold,
  plan: ProgramPlan | undefined,
  key: LogKey,
  { set: values, update }: ForkOptions,
): Promise<readonly Op[]> {
  if (values === undefined && update === undefined) return []
  const shape = plan?.kind === 'graph' ? plan.shape : undefined
  if (update !== undefined && shape === undefined) {
    throw new InvalidOptionError(
      'update',
      'needs a graph with its reducers',
      'Fork with `set`, or open the thread with its program.',
    )
  }
  if (plan?.kind === 'flow') {
    throw new InvalidOptionError('set', 'has no meaning for a flow, which keeps no state', 'Fork without changes.')
  }
  const misfit = plan && checkFits(key, fold, plan, { restarted: false })
  if (misfit?.status === 'incompatible')
    throw new InvalidOptionError('fork', `can't be made: ${misfit.reason}`, misfit.remedy)
  // The current keys and reducers are for the current version: an older state is migrated before they touch it.
  const ops: Op[] = plan === undefined ? [] : [...(migrateRun(plan, fold.state as RunState)?.ops ?? [])]
  const today = ops.reduce((state, op) => applyOp(state, op), fold.state)
  // What an ended run left behind comes before what is set here, and would otherwise come after it.
  if (plan) ops.push(...((await settleLeft(plan, today as RunState))?.ops ?? []))
  for (const [name, value] of Object.entries(values ?? {})) {
    if (!plan) ops.push(...dropKept(fold.state as RunState, name))
    const stored = (today as RunState).state?.[name]
    if (value !== undefined) await shape?.checkWhole(name, value, stored, `set.${name}`)
    const whole = value === undefined ? shape?.initial()[name] : (value as Value)
    ops.push(whole === undefined ? remove(['state', name]) : set(['state', name], whole))
  }
  if (shape && update !== undefined) {
    // Its own: reducers are handed what is frozen, and this is the caller's.
    const checked = copyValue(await shape.check(update, 'update'), DEFAULT_LIMITS) as Update
    const edited = ops.reduce((state, op) => applyOp(state, op), fold.state)
    ops.push(...shape.reduce((edited as RunState).state ?? {}, [{ update: checked }], ['state']).ops)
  }
  return ops
}

function stateOf(fold: Fold): Readonly<Record<string, Value>> {
  return (fold.state as RunState).state ?? {}
}
