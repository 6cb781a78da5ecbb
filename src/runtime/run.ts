import { setMaxListeners } from 'node:events'
import type { Clock } from '../core/clock.js'
import { InvalidOptionError, isHoldfastError } from '../core/errors.js'
import type { Claim } from '../log/claim.js'
import type { LogKey } from '../log/contract.js'
import type { Draft } from '../log/draft.js'
import type { Fold } from '../log/fold.js'
import type { Log } from '../log/log.js'
import { set } from '../log/ops.js'
import type { Store } from '../store/store.js'
import { beginRun, migrateRun } from './begin.js'
import type { Drive } from './drive.js'
import { CancelledError, failedRecord, recordError } from './errors.js'
import { entryEvents, type LiveEvent, type RunEvent } from './events.js'
import { driveFlow } from './flow-engine.js'
import { GraphEngine } from './graph-engine.js'
import { LeaseKeeper } from './lease-keeper.js'
import { type Outcome, type Restart, readOutcome } from './outcome.js'
import type { ProgramPlan } from './program.js'
import { LogRecorder, type RecordPolicy, type Recorder, ViewRecorder } from './recorder.js'
import { isUnfinished, openPauses, type RunState } from './run-state.js'
import { Session } from './session.js'
import { cancelRun, isOnlyWaiting, leaveRun, markTaken, nextWake } from './situation.js'

/** What a run needs from its surroundings. */
export interface RunEnvironment {
  readonly clock: Clock
  readonly store: Store
  readonly random: () => number
}

export interface RunSettings {
  readonly policy: RecordPolicy
  readonly context: unknown
  readonly signal: AbortSignal | undefined
  /** Aborted when no further step should start: what runs may end, then the run is parked. */
  readonly drain: AbortSignal | undefined
  readonly inlineSleepMs: number
  readonly emit: (event: RunEvent) => void
}

/**
 * Drives a claimed log until the run of `target` has ended, or nothing is left to do. Releases the claim with the
 * entry that says so. Rejects when the claim is lost: being fenced is an error, not an outcome.
 */
export class Run {
  readonly #environment: RunEnvironment
  readonly #settings: RunSettings
  readonly #plan: ProgramPlan
  readonly #key: LogKey
  readonly #abort = new AbortController()
  #lastId = ''

  constructor(environment: RunEnvironment, settings: RunSettings, plan: ProgramPlan, key: LogKey) {
    this.#environment = environment
    this.#settings = settings
    this.#plan = plan
    this.#key = key
    // Each step that runs listens; Node warns of a leak from the eleventh on.
    setMaxListeners(0, this.#abort.signal)
  }

  async drive(claim: Claim, priorClaims: number, target: string | undefined, restart: Restart): Promise<Outcome> {
    const { clock } = this.#environment
    this.#lastId = claim.log.checkpoint ?? ''
    let keeper: LeaseKeeper | undefined
    const recorder: LogRecorder = new LogRecorder(claim, this.#settings.policy, (draft, updated) => {
      keeper?.touch()
      this.#tell(draft, updated.entries)
      this.#noticeCancel(recorder)
    })
    const lose = (error: unknown) => {
      recorder.fail(error)
      this.#abort.abort(error)
    }
    keeper = new LeaseKeeper(claim, clock, { onLost: lose, onNews: () => this.#noticeCancel(recorder) })
    const stop = () => this.#abort.abort(new StoppedError())
    const { signal } = this.#settings
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
    try {
      this.#noticeCancel(recorder)
      const fold = await this.#loop(recorder, keeper, priorClaims, target)
      return readOutcome(this.#key, fold, restart)
    } catch (error) {
      if (error instanceof StoppedError) await park(claim, recorder)
      throw error
    } finally {
      keeper.stop()
      signal?.removeEventListener('abort', stop)
    }
  }

  /** Runs without a claim and without a record. */
  async driveUnrecorded(log: Log, input: RunState['inputs']): Promise<Outcome> {
    const before = log.fold.state as RunState
    const fold: Fold = {
      ...log.fold,
      state: { ...(before.state ? { state: before.state } : {}), inputs: (input ?? []) as never },
    }
    const recorder = new ViewRecorder(fold, (draft) => this.#tell(draft, []))
    this.#settings.signal?.addEventListener('abort', () => this.#abort.abort(this.#settings.signal?.reason), {
      once: true,
    })
    const ended = await this.#loop(recorder, undefined, 0, undefined)
    return { ...readOutcome(this.#key, ended), checkpoint: undefined }
  }

  async #loop(
    recorder: Recorder,
    keeper: LeaseKeeper | undefined,
    priorClaims: number,
    target: string | undefined,
  ): Promise<Fold> {
    const { clock } = this.#environment
    for (let first = true; ; first = false) {
      const resumed = first && isUnfinished(recorder.state.run)
      const session = this.#session(recorder, keeper, first ? priorClaims : 0, resumed)
      if (!isUnfinished(recorder.state.run)) {
        if ((recorder.seen.inputs ?? []).length === 0) return this.#rest(recorder)
        const migrated = migrateRun(this.#plan, recorder.state)
        if (migrated) recorder.add(migrated)
        recorder.add(await beginRun(this.#plan, recorder.state, clock.now()))
      } else {
        const migrated = migrateRun(this.#plan, recorder.state)
        if (migrated) recorder.add(migrated)
      }
      const run = recorder.state.run?.id
      const driven = await this.#drive(session)
      if (driven.status === 'failed' && this.#isStopped(driven.error)) throw driven.error
      if (driven.status === 'suspended' && this.#settings.drain?.aborted) throw new StoppedError()
      const isTarget = target === undefined || run === target
      const more = driven.status === 'completed' || recorder.seen.cancel?.run === run
      const goOn = more && (!isTarget || (target === undefined && (recorder.seen.inputs ?? []).length > 0))
      const ended = await recorder.conclude((fold) => endOf(fold, driven, clock.now()), !goOn)
      // Something came while the run was about to wait: it goes on at once.
      if (ended === undefined) continue
      if (!goOn) return ended.fold
    }
  }

  async #drive(session: Session): Promise<Drive> {
    try {
      session.throwIfAborted()
      if (this.#plan.kind === 'flow') return await driveFlow(session, this.#plan)
      return await new GraphEngine(session, this.#plan).drive()
    } catch (error) {
      return { status: 'failed', error }
    }
  }

  /** Nothing to run after all: lets go without a word. */
  async #rest(recorder: Recorder): Promise<Fold> {
    await recorder.conclude(() => ({ kind: 'release', index: { wakeAt: null } }), true)
    return recorder.fold
  }

  #session(recorder: Recorder, keeper: LeaseKeeper | undefined, priorClaims: number, resumed: boolean): Session {
    const { clock, store, random } = this.#environment
    return new Session({
      log: this.#key,
      recorder,
      clock,
      store,
      random,
      resumed,
      triedAt: recorder.state.run?.triedAt ?? clock.now(),
      attempt: priorClaims + 1,
      context: this.#settings.context,
      abort: this.#abort,
      heartbeat: async () => keeper?.beat(),
      emit: (event: LiveEvent) => this.#settings.emit({ ...event, id: this.#lastId }),
      inlineSleepMs: this.#settings.inlineSleepMs,
      drain: this.#settings.drain,
    })
  }

  #tell(draft: Draft, entries: readonly { readonly id: string; readonly seq: number }[]): void {
    const last = entries.at(-1)
    if (last) this.#lastId = last.id
    for (const event of entryEvents(last ?? { id: '', seq: -1 }, draft)) this.#settings.emit(event)
  }

  #noticeCancel(recorder: Recorder): void {
    const { cancel, run } = recorder.seen
    if (cancel && isUnfinished(run) && cancel.run === run.id && !this.#abort.signal.aborted) {
      this.#abort.abort(new CancelledError(cancel.reason, { by: cancel.by ?? null }))
    }
  }

  // These say nothing of the run itself: it is not over, and not failed.
  #isStopped(error: unknown): boolean {
    if (error instanceof StoppedError) return true
    const { signal } = this.#abort
    if (signal.aborted && error === signal.reason && !(error instanceof CancelledError)) return true
    return isHoldfastError(error) && STORE_FAILURES.has(error.code)
  }
}

const STORE_FAILURES: ReadonlySet<string> = new Set([
  'fenced',
  'unavailable',
  'storage',
  'corrupt',
  'data-loss',
  'closed',
  'conflict',
])

/** The caller asked to stop; the run is parked and can be resumed by anyone. */
export class StoppedError extends Error {
  constructor() {
    super('The run was stopped; it can be resumed.')
    this.name = 'AbortError'
  }
}

/** The entry that ends a stretch of a run. Undefined when something came that lets it go on. */
function endOf(fold: Fold, driven: Drive, now: number): Draft | undefined {
  const state = fold.state as RunState
  const { run } = state
  if (run === undefined) return undefined
  const waits = (state.inputs ?? []).length > 0
  if (state.cancel?.run === run.id) {
    return {
      kind: 'end',
      ops: cancelRun(state, state.cancel.reason, now, fold.seq + 1),
      index: { status: waits ? 'active' : 'failed', wakeAt: waits ? now : null },
      data: { events: [{ type: 'run', run: run.id, status: 'cancelled' }] },
    }
  }
  switch (driven.status) {
    case 'completed':
      return {
        kind: 'step',
        ops: [
          set(['run', 'status'], 'completed'),
          set(['run', 'claims'], 0),
          ...(run.kind === 'flow' && driven.output !== undefined ? [set(['run', 'output'], driven.output)] : []),
          ...leaveRun(state, now),
          ...markTaken(state, fold.seq + 1),
        ],
        index: { status: waits ? 'active' : 'completed', wakeAt: waits ? now : null },
        data: { events: [{ type: 'run', run: run.id, status: 'completed' }] },
      }
    case 'suspended': {
      const waiting = { ...fold, state: { ...state, run: { ...run, waiting: driven.waiting } } as never }
      if (!isOnlyWaiting(waiting, now)) return undefined
      return {
        kind: 'wait',
        ops: [set(['run', 'waiting'], driven.waiting), set(['run', 'claims'], 0)],
        index: {
          status: openPauses(state).length > 0 ? 'waiting_human' : 'waiting',
          wakeAt: nextWake(waiting.state as RunState),
        },
        data: { events: [{ type: 'run', run: run.id, status: 'paused' }] },
      }
    }
    default: {
      const error = recordError(driven.error)
      const misfit = isHoldfastError(driven.error, 'incompatible')
      const retry = failedRecord(driven.error)
      return {
        kind: 'end',
        ops: [
          set(['run', 'status'], misfit ? 'incompatible' : 'failed'),
          set(['run', 'error'], error),
          set(['run', 'claims'], 0),
          ...(retry === undefined ? [] : [set(['run', 'retry'], retry)]),
        ],
        index: { status: misfit ? 'incompatible' : 'failed', wakeAt: nextWake(state) },
        data: { events: [{ type: 'run', run: run.id, status: misfit ? 'incompatible' : 'failed', error }] },
      }
    }
  }
}

// What is recorded stays; what is under way is lost as in a crash, but nobody has to wait for the lease.
async function park(claim: Claim, recorder: LogRecorder): Promise<void> {
  const parked = { kind: 'park', ops: [set(['run', 'claims'], 0)], data: { events: [] } }
  try {
    const said = await recorder.conclude(
      ({ state }) => (isUnfinished((state as RunState).run) ? parked : undefined),
      true,
    )
    if (said === undefined) await claim.release()
  } catch {
    await claim.release().catch(() => {})
  }
}

export function checkSettings(policy: RecordPolicy): void {
  if (policy.frequency === 'none' && policy.durability !== 'sync') {
    throw new InvalidOptionError('durability', "has no meaning with frequency 'none'", 'Leave one of them out.')
  }
}
