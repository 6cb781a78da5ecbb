import type { Value } from '../../../codec/value.js'
import { isHoldfastError } from '../../../core/errors.js'
import type { LogKey } from '../../../log/contract.js'
import { parseCheckpointId } from '../../../log/entry/checkpoint-id.js'
import type { Fold } from '../../../log/entry/fold.js'
import type { OpenedEntry } from '../../../log/entry/entry-opening.js'
import type { Log } from '../../../log/log.js'
import type { LogStore } from '../../../log/log-store.js'
import { applyOp, valueAt, type Op, type State } from '../../../log/entry/ops.js'
import { withRecords } from '../../engine/closings.js'
import { isEffect } from '../../step/call/revisits.js'
import { isUnfinished, scopeAt, joinPath, pathOf } from '../state/read-run-state.js'
import { stepOf } from './recorded-ops.js'
import type { PauseRecord, RunRecord, RunState, ScopeState, StepRecord } from '../state/run-state.js'

/** A stretch of a log. */
export interface Span {
  readonly log: Log
  readonly from: number
  readonly to: number
}

/** What a node was given when it produced a recorded result. */
export interface Seen {
  readonly state: State
  readonly input?: unknown
}

/** Everything a run recorded, including what was removed when it was no longer needed to continue. */
export interface Records {
  /** By full path, in the order in which they ended; ones whose order is not kept come first. */
  readonly steps: ReadonlyMap<string, StepRecord>
  /** The steps whose order is known. */
  readonly order: readonly string[]
  readonly seen: ReadonlyMap<string, Seen>
  readonly pauses: ReadonlyMap<string, PauseRecord>
  /** The run as it began; undefined when its beginning is not kept. */
  readonly begun: RunRecord | undefined
}

/**
 * Where the records of a run are, oldest first: on its branch, and on those it was forked from while the run was in
 * progress. Ends where something is gone.
 */
export async function lineage(logs: LogStore, log: Log, run: string): Promise<readonly Span[]> {
  let span: Span = { log, from: await log.firstKept(), to: log.fold.seq }
  const spans = [span]
  while (span.from === 0) {
    const first = await span.log.at(0)
    const { origin } = first
    if (origin === null || (first.state as RunState).run?.id !== run) break
    const parent = logs.unread({ ...log.key, branch: origin.branch as LogKey['branch'] })
    const fold = await parent.at(origin.seq).catch(ignoreMissing)
    if (fold === undefined || fold.hash !== origin.hash) break
    span = { log: parent, from: await parent.firstKept(), to: origin.seq }
    spans.unshift(span)
  }
  return spans
}

/** Collects the records of one run. */
export async function collectRecords(spans: readonly Span[], run: string): Promise<Records> {
  const collector = new Collector(run)
  for (const span of spans) await collector.read(span)
  return collector
}

class Collector implements Records {
  readonly steps = new Map<string, StepRecord>()
  readonly seen = new Map<string, Seen>()
  readonly pauses = new Map<string, PauseRecord>()
  readonly #ordered = new Set<string>()
  readonly #run: string
  begun: RunRecord | undefined

  constructor(run: string) {
    this.#run = run
  }

  get order(): readonly string[] {
    return [...this.#ordered]
  }

  isOver(state: RunState): boolean {
    return this.begun !== undefined && state.run?.id !== this.#run
  }

  /** What was read before a part that can't be is kept. */
  async read({ log, from, to }: Span): Promise<void> {
    let state: State | undefined
    // From one earlier, if that is kept: what an operation means depends on the state before it.
    for await (const entry of log.entries(Math.max(from - 1, await log.firstKept()), to)) {
      state = this.take(entry, state, entry.header.seq >= from)
      if (this.isOver(state as RunState)) break
    }
  }

  take({ body, fold, header }: OpenedEntry, before: State | undefined, counts: boolean): State {
    const isBeginning = header.seq === 0 && body.fold === undefined
    let state = before ?? (isBeginning ? {} : undefined)
    if (state === undefined) {
      if (counts) this.#seed(fold.state as RunState)
    } else {
      for (const op of withRecords(body.ops ?? [], state)) {
        if (counts) this.#note(op, state as RunState)
        state = applyOp(state, op)
      }
    }
    const after = fold.state as RunState
    if (counts && after.run?.id === this.#run) {
      for (const pause of Object.values(after.pauses ?? {})) this.pauses.set(pause.id, pause)
    }
    return fold.state
  }

  /** What the first kept entry says about steps that ended before it. */
  #seed(state: RunState): void {
    if (state.run?.id !== this.#run) return
    // While a flow is in progress nothing of it is removed: its beginning is of no more use.
    if (isUnfinished(state.run)) this.begun ??= state.run
    this.#seedScope(state, '')
  }

  #seedScope(scope: ScopeState, path: string): void {
    for (const [id, record] of Object.entries(scope.steps ?? {})) {
      if (!this.steps.has(joinPath(path, id))) this.steps.set(joinPath(path, id), record)
    }
    for (const [id, inner] of Object.entries(scope.scopes ?? {})) this.#seedScope(inner, joinPath(path, id))
  }

  #note(op: Op, before: RunState): void {
    if (op[0] === 'set' && op[1].length === 1 && op[1][0] === 'run') {
      const run = op[2] as unknown as RunRecord
      if (run.id === this.#run) this.begun = run
      return
    }
    if (before.run?.id !== this.#run) return
    if (op[0] === 'copy' && op[1][0] === 'run' && op[1].length === 2 && this.begun) {
      const copied = valueAt(before as State, op[2])
      if (copied !== undefined) this.begun = { ...this.begun, [String(op[1][1])]: copied }
    }
    // Who resumed it brought another one.
    if (op[0] === 'set' && op[1].join() === 'run,context' && this.begun) this.begun = { ...this.begun, context: op[2] }
    const step = stepOf(op)
    if (step === undefined) return
    const { prefix, id } = step
    const path = joinPath(pathOf(prefix), id)
    const known = this.steps.get(path)?.status
    if (op[0] === 'delete') {
      // A failed step that is tried again.
      if (known !== 'done') this.#forget(path)
      return
    }
    if (op[0] !== 'set') return
    const record = op[2] as unknown as StepRecord
    if (known === 'done' && record.status !== 'done') return
    this.#forget(path)
    this.steps.set(path, record)
    if (record.status === 'done' || record.status === 'failed') this.#ordered.add(path)
    const scope = scopeAt(before, prefix)
    const task = scope.tasks?.find((one) => one.id === id)
    if (task) this.seen.set(path, { state: scope.state ?? {}, input: task.input })
  }

  #forget(path: string): void {
    this.steps.delete(path)
    this.#ordered.delete(path)
  }
}

/**
 * What branches that this one was forked from recorded after the fork for the same run: the nearest first, and those
 * behind it only where it has nothing.
 */
export async function recordsBeyond(
  logs: LogStore,
  key: LogKey,
  from: { readonly branch: string; readonly seq: number },
  run: string,
): Promise<ReadonlyMap<string, RecordedRead>> {
  const found = new Map<string, RecordedRead>()
  for (let at: typeof from | undefined = from; at; ) {
    const log: Log = await logs.open({ ...key, branch: at.branch as LogKey['branch'] })
    if (!log.exists) break
    const { steps, seen, pauses } = await collectRecords([{ log, from: at.seq + 1, to: log.fold.seq }], run)
    // A node that asked somebody, waited or had an effect has not only read: it is called, and asks here as well.
    const did = new Set<string>()
    for (const [path, record] of steps) if (isEffect(record)) addOuter(path, did)
    for (const { path } of pauses.values()) addOuter(path, did)
    for (const [path, { status, result, input }] of steps) {
      if (status !== 'done' || found.has(path) || did.has(path)) continue
      const saw = seen.get(path)
      found.set(path, { result, inputHash: input ?? 'none', ...(saw ? { seen: saw } : {}) })
    }
    const { origin }: { readonly origin: { readonly branch: string; readonly seq: number } | null } = log.fold
    at = origin ?? undefined
  }
  return found
}

/** What is known of the steps that other branches began. */
export interface BegunSteps {
  readonly paths: ReadonlySet<string>
  /** Nothing that could tell of more is damaged or gone. */
  readonly isAll: boolean
}

/**
 * The steps that branches which this one was forked from began after the fork, for the same run, and may have
 * performed. A fork is the way out of a damaged branch, so what can't be read there must not stop it: then more may
 * have been begun.
 */
export async function begunBeyond(
  logs: LogStore,
  key: LogKey,
  from: { readonly branch: string; readonly seq: number },
  run: string,
): Promise<BegunSteps> {
  const paths = new Set<string>()
  let isAll = true
  const miss = (error: unknown) => {
    if (!UNREADABLE.some((code) => isHoldfastError(error, code))) throw error
    isAll = false
    return undefined
  }
  for (let at: typeof from | undefined = from; at; ) {
    const branch: LogKey = { ...key, branch: at.branch as LogKey['branch'] }
    const start = at.seq + 1
    const { log, to }: Omit<Span, 'from'> = await logs.open(branch).then(
      (opened) => ({ log: opened, to: opened.fold.seq }),
      (error: unknown) => {
        miss(error)
        return { log: logs.unread(branch), to: lastGoodOf(error) }
      },
    )
    const collector = new Collector(run)
    if (to >= start) await collector.read({ log, from: start, to }).catch(miss)
    for (const [path, { status }] of collector.steps) if (status === 'done' || status === 'started') paths.add(path)
    if (to < at.seq || (await log.firstKept()) > start) isAll = false
    const known: Fold | undefined = log.exists ? log.fold : await log.at(at.seq).catch(miss)
    at = known?.origin ?? undefined
  }
  return { paths, isAll }
}

const UNREADABLE = ['corrupt', 'missing-key', 'not-found'] as const

/** Up to where a damaged log can be read; -1 where nobody knows. */
function lastGoodOf(error: unknown): number {
  const lastGood = isHoldfastError(error, 'corrupt') ? error.data['lastGood'] : undefined
  return typeof lastGood === 'string' ? parseCheckpointId(lastGood).seq : -1
}

/** The result of a step that only read, and what it was made from. */
export interface RecordedRead {
  readonly result: Value | undefined
  readonly inputHash: string
  readonly seen?: Seen
}

/** All that a path lies in. */
function addOuter(path: string, all: Set<string>): void {
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) all.add(path.slice(0, end))
}

function ignoreMissing(error: unknown): undefined {
  if (isHoldfastError(error, 'not-found')) return undefined
  throw error
}
