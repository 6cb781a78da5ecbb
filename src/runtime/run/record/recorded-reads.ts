import { isDeepStrictEqual } from 'node:util'
import type { Log } from '../../../log/log.js'
import type { LogStore } from '../../../log/log-store.js'
import { type RecordedRead, recordsBeyond, type Seen } from './records.js'
import { isUnfinished } from '../state/read-run-state.js'
import type { ForkRecord, RunState, StepRecord } from '../state/run-state.js'

/** What a node is handed now, and whether its own steps have begun. */
interface SeesNow extends Seen {
  isUnderWay(): boolean
}

/** What a fork reuses from the branch that it came from, instead of reading again. */
export class RecordedReads {
  /** What that branch recorded after the fork, by path. */
  readonly #beyond: ReadonlyMap<string, RecordedRead>
  /** The steps that the fork began with, which both branches share. */
  readonly #shared: ReadonlySet<string>

  constructor(beyond: ReadonlyMap<string, RecordedRead>, shared: ReadonlySet<string>) {
    this.#beyond = beyond
    this.#shared = shared
  }

  /** For a branch that was forked with `reads: 'recorded'`; undefined for any other. */
  static of(logs: LogStore, log: Log): Promise<RecordedReads | undefined> | undefined {
    const { fork } = log.fold.state as RunState
    return fork?.reads === 'recorded' ? RecordedReads.#read(logs, log, fork) : undefined
  }

  static async #read(logs: LogStore, log: Log, fork: ForkRecord): Promise<RecordedReads | undefined> {
    const { key, fold } = log
    const { run, inputs } = fold.state as RunState
    // Forked before its run began: the input that waits is the run to be.
    const id = isUnfinished(run) ? run.id : inputs?.[0]?.id
    if (id === undefined) return undefined
    // Where its beginning is gone, nothing counts as shared: more is read again than would be needed.
    const begun = (await log.firstKept()) === 0 ? ((await log.at(0)).state as RunState) : {}
    return new RecordedReads(await recordsBeyond(logs, key, fork, id), new Set(Object.keys(begun.steps ?? {})))
  }

  /**
   * What the other branch recorded for the same step with the same input. A step that names no input may depend on
   * everything its function has received: `isSamePast` says whether that is the same as there.
   */
  find(
    path: string,
    inputHash: string,
    sees: SeesNow | undefined,
    isSamePast: boolean,
  ): { readonly result: unknown } | undefined {
    const record = this.#beyond.get(path)
    if (record === undefined) return undefined
    const { seen, result } = record
    // A node reads the state: after an edit its recorded result says nothing. One that the fork has begun continues
    // from there.
    const same = sees
      ? seen && !sees.isUnderWay() && isDeepStrictEqual([sees.state, sees.input], [seen.state, seen.input])
      : record.inputHash === inputHash && (inputHash !== 'none' || isSamePast)
    return same ? { result } : undefined
  }

  /** Whether a step ended on the other branch as it did here. */
  isAsThere(path: string, record: StepRecord | undefined): boolean {
    if (this.#shared.has(path)) return true
    const there = this.#beyond.get(path)
    return there !== undefined && record?.status === 'done' && isDeepStrictEqual(there.result, record.result)
  }
}
