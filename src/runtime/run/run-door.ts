import type { SqlSession } from '../../log/contract.js'
import type { Draft } from '../../log/entry/draft.js'
import type { Fold } from '../../log/entry/fold.js'
import type { Updated } from '../../log/write/update.js'
import type { Recorder } from './recorder.js'
import type { RunState } from './run-state.js'

/**
 * The recorder as one run reaches it. Steps of a run that was cancelled may still be coming to their end when the next
 * run of the thread begins: what they would record then would be taken for the next one's. Behind a closed door nothing
 * is noted, and whoever waits for a record waits for ever.
 */
export class RunDoor implements Recorder {
  readonly #recorder: Recorder
  #closed = false

  constructor(recorder: Recorder) {
    this.#recorder = recorder
  }

  close(): void {
    this.#closed = true
  }

  get state(): RunState {
    return this.#recorder.state
  }

  get seen(): RunState {
    return this.#recorder.seen
  }

  get fold(): Fold {
    return this.#recorder.fold
  }

  get durable(): boolean {
    return this.#recorder.durable
  }

  add(draft: Draft): void {
    if (!this.#closed) this.#recorder.add(draft)
  }

  along(name: string, draft: Draft): void {
    if (!this.#closed) this.#recorder.along(name, draft)
  }

  drop(name: string): void {
    if (!this.#closed) this.#recorder.drop(name)
  }

  record(draft: Draft): Promise<void> {
    return this.#closed ? never() : this.#recorder.record(draft)
  }

  barrier(): Promise<void> {
    return this.#closed ? never() : this.#recorder.barrier()
  }

  conclude(decide: (fold: Fold) => Draft | undefined, release: boolean): Promise<Updated | undefined> {
    return this.#closed ? never() : this.#recorder.conclude(decide, release)
  }

  transact<Result>(
    work: (sql: SqlSession) => Promise<Result>,
    decide: (result: Result) => Draft,
    timeoutMs: number | undefined,
  ): Promise<Result> {
    return this.#closed ? never() : this.#recorder.transact(work, decide, timeoutMs)
  }

  fail(error: unknown): void {
    if (!this.#closed) this.#recorder.fail(error)
  }

  discard(): Promise<void> {
    return this.#closed ? never() : this.#recorder.discard()
  }
}

function never(): Promise<never> {
  return new Promise(() => {})
}
