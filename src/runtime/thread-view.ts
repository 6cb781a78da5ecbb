import { checkOptionNames } from '../core/wording/option-names.js'
import { cloneValue } from '../codec/clone.js'
import type { Value } from '../codec/value.js'
import { InvalidOptionError, NotFoundError } from '../core/errors.js'
import type { ThreadIdInput } from '../core/ids.js'
import { threadIdInput } from '../core/ids.js'
import { formatPolicy, parseRetention, type Retention } from '../core/retention.js'
import { DUE, type LogKey, type MetadataValue } from '../log/contract.js'
import { formatCheckpointId, parseCheckpointId } from '../log/entry/checkpoint-id.js'
import type { Log } from '../log/log.js'
import {
  ANSWER_OPTIONS,
  type AnswerOptions,
  answerPauses,
  checkBy,
  type DeferOptions,
  deferPause,
  type PauseAnswer,
  type RefusedAnswer,
} from './pause/answer.js'
import { type Branch, type Comparison, compareBranches, listBranches } from './history/branches.js'
import { Checkpoint } from './history/checkpoint.js'
import { FORK_OPTIONS, type ForkOptions, forkCheckpoint } from './history/fork.js'
import {
  type CheckpointInfo,
  type GivenAnswer,
  HISTORY_OPTIONS,
  type HistoryOptions,
  listAnswers,
  listCheckpoints,
} from './history/list-checkpoints.js'
import type { RunEvent } from './events/events.js'
import { EVENTS_OPTIONS, type EventsOptions, followEvents } from './events/follow-events.js'
import { cancelRun } from './run/cancel.js'
import { errandsOf } from './child/errands.js'
import { runErrands } from './child/run-errands.js'
import type { Settled } from './step/record/kept-results.js'
import { describePauses, type OpenPause, type Outcome, readOutcome } from './run/state/outcome.js'
import type { ProgramPlan } from './program/program.js'
import { currentRun, isAskedFor, isOnlyWaiting, isOver } from './run/state/read-run-state.js'
import type { RunState } from './run/state/run-state.js'
import type { RuntimeEnvironment } from './run/environment.js'
import { type Expiry, expiresWhenAtRest, retentionLabels } from './run/state/expiry.js'
import { RETENTION } from './run/state/labels.js'
import { checkTimeout, type WaitOptions, waitForRest } from './events/follow.js'
import { checkSignal, sendSignal, type Signalled } from './pause/waits.js'

/** A thread seen without its program: what tools and people need. */
export class ThreadView<Result = Outcome, Seen = Readonly<Record<string, Value>>> {
  protected readonly environment: RuntimeEnvironment
  readonly key: LogKey

  constructor(environment: RuntimeEnvironment, key: LogKey) {
    this.environment = environment
    this.key = key
  }

  get id(): ThreadIdInput {
    return threadIdInput(this.key.thread)
  }

  get branch(): string {
    return this.key.branch
  }

  /** The thread as it was at a checkpoint, without its program. */
  look(checkpoint: string): CheckpointView {
    return new CheckpointView(this.environment, this.key, checkpoint)
  }

  /**
   * Answers an open question, from any process and at any time. The first answer counts: later ones, and answers to
   * questions that are over, throw `pause-closed` (`data.reason`); an id that this thread never asked under throws
   * `not-found`. A value that does not match the question's schema throws `invalid-value`; then nothing is written.
   * Nothing runs here: run the thread, or let a worker do it.
   */
  async answer(pause: string, value: unknown, options: AnswerOptions = {}): Promise<void> {
    checkOptionNames('thread.answer()', options, ANSWER_OPTIONS)
    const [refused] = await this.answerSeveral([{ pause, value }], options)
    if (refused) throw refused.error
  }

  /**
   * Like `answer`, for several questions at once: whoever runs the thread sees all of the answers or none. Each is
   * accepted or refused on its own; returns those that are refused, with the error that `answer` would throw.
   */
  async answerSeveral(answers: readonly PauseAnswer[], options: AnswerOptions = {}): Promise<readonly RefusedAnswer[]> {
    checkOptionNames('thread.answerSeveral()', options, ANSWER_OPTIONS)
    const { clock, redactor } = this.environment
    return answerPauses(await this.existing(), clock, answers, options, redactor)
  }

  /** Postpones an open question: it stays open at least until then, and lists can leave it out. */
  async defer(pause: string, options: DeferOptions): Promise<void> {
    checkOptionNames('thread.defer()', options, { until: true, by: true })
    await deferPause(await this.existing(), this.environment.clock, pause, options)
  }

  /** The questions that are waiting for an answer. */
  async pauses(): Promise<readonly OpenPause[]> {
    return describePauses((await this.existing()).fold.state as RunState)
  }

  /**
   * Sends a signal to a program that waits for it with `ctx.receive(name)`, or will. With a `key`, such as the id of a
   * delivery, a signal of this name that is sent again is not received twice, for as long as the thread lives: the
   * result then says `known`.
   */
  async signal(name: string, value?: unknown, options: { readonly key?: string } = {}): Promise<Signalled> {
    checkOptionNames('thread.signal()', options, { key: true })
    const checked = checkSignal(this.environment, name, value, options.key)
    return sendSignal(await this.existing(), checked)
  }

  /**
   * Ends the run that is in progress or waiting. Its worker notices soon; a run that nobody holds ends immediately or,
   * if it has recorded nothing yet, when it is picked up. If there is none, input that was left for later is dropped,
   * the next one first. With `run`, only if it is that one. False when there was none to end.
   */
  async cancel(
    options: { readonly reason?: string; readonly by?: string; readonly run?: string } = {},
  ): Promise<boolean> {
    const { redactor } = this.environment
    checkOptionNames('thread.cancel()', options, { reason: true, by: true, run: true })
    const given = options.reason ?? 'cancelled'
    const reason = redactor ? redactor.text(given) : given
    const log = await this.existing()
    const cancellation = { reason, by: checkBy(options.by), run: options.run }
    const isEnded = await cancelRun(this.environment, log, cancellation, this.expiry, (state) => this.settle(state))
    // Its children, and whoever awaits it. What can't be done now stays due.
    if (errandsOf(log.fold.state).length > 0) await runErrands(this.environment, this.plan, log).catch(() => {})
    return isEnded
  }

  /**
   * Requests another attempt at a run that failed, was parked, or waits on a branch that nobody has run yet. A worker
   * makes it; nothing runs here. False if there is nothing to retry.
   */
  async wake(): Promise<boolean> {
    const { clock } = this.environment
    const log = await this.existing()
    const { entries } = await log.update((fold) => {
      const state = fold.state as RunState
      if (currentRun(state) === undefined || isOnlyWaiting(fold, clock.now())) return undefined
      if (isAskedFor(fold, clock.now())) return undefined
      return [{ kind: 'input', ops: [], index: { wakeAt: DUE } }]
    })
    return entries.length > 0
  }

  /**
   * Waits until the thread and the threads that it awaits are at rest: completed, failed, or waiting for someone. Works
   * from any process, and for a thread that does not exist yet. Throws `timeout` if it has not come to rest in time,
   * `not-found` if there still is no thread then; without `timeoutMs` it waits until the signal is aborted.
   */
  async waitFor(options: WaitOptions = {}): Promise<Result> {
    checkOptionNames('thread.waitFor()', options, { signal: true, timeoutMs: true })
    checkTimeout(options.timeoutMs)
    const log = await this.open()
    await waitForRest(this.environment, log, options)
    return this.read(log)
  }

  /**
   * Sets how long this branch is kept, and which parts of it, regardless of its program and the store: `'keep'`, or
   * rules such as `{ ttlMs }`. Applies until it is set again.
   */
  async setRetention(retention: Retention): Promise<void> {
    const policy = parseRetention(retention)
    const { clock } = this.environment
    const log = await this.existing()
    await log.update((fold) => {
      const label = formatPolicy(policy, true)
      const metadata = retentionLabels(label, fold.index.metadata) ?? {}
      const after = { ...fold, index: { ...fold.index, metadata: { ...fold.index.metadata, [RETENTION]: label } } }
      const expires = isOver(fold.state as RunState)
        ? expiresWhenAtRest(this.expiry, after, undefined, clock.now())
        : {}
      return [{ kind: 'retain', index: { metadata, ...expires } }]
    })
  }

  /**
   * Names a checkpoint: it can be found by that name, and no retention policy removes it. Default: the newest one. `at`
   * is the id of another, on any branch of this thread. A name already in use on that branch moves.
   */
  async tag(name: string, options: { readonly at?: string } = {}): Promise<{ readonly checkpoint: string }> {
    checkOptionNames('thread.tag()', options, { at: true })
    const { at } = options
    const key = at === undefined ? this.key : { ...this.key, branch: parseCheckpointId(at).branch }
    const log = await this.existing(key)
    // Reading it shows whether such a checkpoint exists: its number alone may belong to another one.
    const { seq, hash } = at === undefined ? log.fold : await log.at(at)
    await log.tag(name, seq)
    return { checkpoint: formatCheckpointId(key.branch, seq, hash) }
  }

  /** Removes a tag from this branch. False if it has no such tag. */
  async untag(name: string): Promise<boolean> {
    const log = await this.existing()
    return (await log.untag(name)).entries.length > 0
  }

  /**
   * Labels this branch with text, numbers or booleans that `hf.threads({ metadata })` can find it by; null removes a
   * label, and labels that are not named stay. They are stored in plain text, even if values are encrypted.
   */
  async setMetadata(metadata: Readonly<Record<string, MetadataValue | null>>): Promise<void> {
    const own = Object.keys(metadata).find((name) => name.startsWith('holdfast.'))
    if (own !== undefined) {
      throw new InvalidOptionError(
        `metadata["${own}"]`,
        'starts with "holdfast.", which is reserved for Holdfast',
        'Choose another name.',
      )
    }
    const log = await this.existing()
    await log.update(({ index }) => {
      const changes = Object.entries(metadata).filter(([name, value]) =>
        value === null ? Object.hasOwn(index.metadata, name) : index.metadata[name] !== value,
      )
      return changes.length === 0 ? undefined : [{ kind: 'tag', index: { metadata: Object.fromEntries(changes) } }]
    })
  }

  /**
   * The program's state as of the newest checkpoint; undefined if there is no thread. Without the program, it is
   * returned as it was stored, by whichever version.
   */
  async state(): Promise<Seen | undefined> {
    const log = await this.open()
    return log.exists ? (cloneValue((log.fold.state as RunState).state ?? {}) as Seen) : undefined
  }

  /**
   * Checkpoints, newest first, with the nodes, tools and model calls that each records. The next page is `before` the last
   * id of this one. With `events: false` only headers are read.
   */
  async history(options: HistoryOptions = {}): Promise<readonly CheckpointInfo[]> {
    checkOptionNames('thread.history()', options, HISTORY_OPTIONS)
    return listCheckpoints(this.environment.logs.unread(this.key), options)
  }

  /** The answers that people gave on this branch, newest first: to what, what and by whom. Default: up to 100. */
  async answers(options: { readonly limit?: number } = {}): Promise<readonly GivenAnswer[]> {
    checkOptionNames('thread.answers()', options, { limit: true })
    const { limit = 100 } = options
    if (!Number.isSafeInteger(limit) || limit < 1) {
      throw new InvalidOptionError('limit', `must be 1 or more, not ${String(limit)}`, 'Pass a whole number.')
    }
    return listAnswers(this.environment.logs.unread(this.key), limit)
  }

  /** All branches of this thread, as a tree. */
  branches(): Promise<readonly Branch[]> {
    return listBranches(this.environment.logs, this.key)
  }

  /** How two branches differ, and where they diverged. */
  compare(one: string, other: string): Promise<Comparison> {
    return compareBranches(this.environment.logs, this.key, [one, other])
  }

  /**
   * Recorded events: from the last one seen on, until the thread is at rest. Works from any process, and for a thread
   * that does not exist yet. Throws the signal's reason when it is aborted, and `not-found` if what follows `after` was
   * pruned.
   */
  async *events(options: EventsOptions = {}): AsyncGenerator<RunEvent> {
    checkOptionNames('thread.events()', options, EVENTS_OPTIONS)
    yield* followEvents(this.environment.logs, await this.open(), options)
  }

  /** What the newest entry says about the last run. */
  protected async read(log: Log): Promise<Result> {
    return readOutcome(this.key, log.fold) as Result
  }

  /** Brings results of a run that ends here into the state: without the program, the next run has to do it. */
  protected async settle(_state: RunState): Promise<Settled | undefined> {
    return undefined
  }

  protected get expiry(): Expiry {
    return { store: this.environment.retention }
  }

  protected get plan(): ProgramPlan | undefined {
    return undefined
  }

  protected open(): Promise<Log> {
    return this.environment.logs.open(this.key)
  }

  protected async existing(key: LogKey = this.key): Promise<Log> {
    const log = await this.environment.logs.open(key)
    if (log.exists) return log
    const { thread, branch } = key
    throw new NotFoundError(`There is no thread ${thread} (${branch}).`, 'Check its id and tenant.', { thread, branch })
  }
}

/** A thread without its program, at one checkpoint. */
export class CheckpointView extends Checkpoint {
  /** Creates a branch from this checkpoint, with values of the state replaced. */
  async fork(options: Omit<ForkOptions, 'update'> = {}): Promise<ThreadView> {
    const { update: _, ...names } = FORK_OPTIONS
    checkOptionNames('fork()', options, names)
    const branch = await forkCheckpoint(this.environment, this.key, this.id, undefined, options)
    return new ThreadView(this.environment, { ...this.key, branch })
  }
}
