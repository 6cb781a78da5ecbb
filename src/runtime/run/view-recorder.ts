import { InvalidOptionError } from '../../core/errors.js'
import type { Draft } from '../../log/entry/draft.js'
import type { Fold } from '../../log/entry/fold.js'
import type { Updated } from '../../log/write/update.js'
import { applyOps } from './merge-drafts.js'
import type { OnRecorded, Recorder } from './recorder.js'
import type { RunState } from './run-state.js'

/** Keeps nothing: for one-shot calls that need no record. */
export class ViewRecorder implements Recorder {
  readonly durable: boolean
  readonly #onRecorded: OnRecorded
  #fold: Fold

  /** `durable` lets a replay go through what only a kept record allows. */
  constructor(fold: Fold, onRecorded: OnRecorded, durable = false) {
    this.#fold = fold
    this.#onRecorded = onRecorded
    this.durable = durable
  }

  get state(): RunState {
    return this.#fold.state as RunState
  }

  get seen(): RunState {
    return this.state
  }

  get fold(): Fold {
    return this.#fold
  }

  add(draft: Draft): void {
    this.#fold = { ...this.#fold, state: applyOps(this.#fold.state, draft) }
  }

  along(): void {}

  drop(): void {}

  async record(draft: Draft): Promise<void> {
    const before = this.#fold.state
    this.add(draft)
    this.#onRecorded(draft, { entries: [], fold: this.#fold }, before)
  }

  async barrier(): Promise<void> {}

  async conclude(decide: (fold: Fold) => Draft | undefined): Promise<Updated | undefined> {
    const draft = decide(this.#fold)
    if (draft === undefined) return undefined
    await this.record(draft)
    return { entries: [], fold: this.#fold }
  }

  transact(): Promise<never> {
    throw new InvalidOptionError('frequency', "is 'none', which keeps no record to commit with", "Use 'step'.")
  }

  fail(): void {}

  async discard(): Promise<void> {}
}
