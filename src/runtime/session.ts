import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import type { Clock } from '../core/clock.js'
import type { LogKey } from '../log/contract.js'
import type { Draft } from '../log/draft.js'
import { set } from '../log/ops.js'
import type { Store } from '../store/store.js'
import type { LiveEvent } from './events.js'
import type { Recorder } from './recorder.js'
import type { RunState } from './run-state.js'

interface RunningStep {
  readonly session: Session
  readonly path: string
  readonly outer: RunningStep | undefined
}

// One for all sessions: Node keeps every storage that was used, and each promise made from then on pays for all.
const RUNNING = new AsyncLocalStorage<RunningStep>()

export interface SessionOptions {
  readonly log: LogKey
  readonly recorder: Recorder
  readonly clock: Clock
  readonly store: Store
  readonly context: unknown
  readonly abort: AbortController
  readonly heartbeat: () => Promise<void>
  readonly emit: (event: LiveEvent) => void
  /** The run was under way before us: what has no record may have been tried, since `triedAt`. */
  readonly resumed: boolean
  readonly triedAt: number
  readonly random: () => number
  readonly inlineSleepMs: number
  readonly drain: AbortSignal | undefined
  /** How often this run was taken up, with us. */
  readonly attempt: number
}

/** What the steps of one run share while one worker drives it. */
export class Session {
  readonly log: LogKey
  readonly recorder: Recorder
  readonly clock: Clock
  readonly store: Store
  readonly context: unknown
  readonly abort: AbortController
  readonly heartbeat: () => Promise<void>
  readonly emit: (event: LiveEvent) => void
  readonly resumed: boolean
  readonly triedAt: number
  readonly random: () => number
  readonly inlineSleepMs: number
  readonly attempt: number
  readonly #drain: AbortSignal | undefined
  /** The step whose work is running, to refuse steps inside of steps. */
  readonly inside = {
    run: <Result>(path: string, work: () => Result): Result =>
      RUNNING.run({ session: this, path, outer: RUNNING.getStore() }, work),
    getStore: (): string | undefined => {
      let running = RUNNING.getStore()
      // The work of a step may run another thread, whose steps are its own.
      while (running !== undefined && running.session !== this) running = running.outer
      return running?.path
    },
  }
  #progressed = false

  constructor(options: SessionOptions) {
    this.log = options.log
    this.recorder = options.recorder
    this.clock = options.clock
    this.store = options.store
    this.context = options.context
    this.abort = options.abort
    this.heartbeat = options.heartbeat
    this.emit = options.emit
    this.resumed = options.resumed
    this.triedAt = options.triedAt
    this.random = options.random
    this.inlineSleepMs = options.inlineSleepMs
    this.attempt = options.attempt
    this.#drain = options.drain
  }

  /** True when what runs may end but nothing new should start. */
  get draining(): boolean {
    return this.#drain?.aborted ?? false
  }

  get state(): RunState {
    return this.recorder.state
  }

  /** Records the end of a step. The first of a claim also says that the thread does not kill its workers. */
  record(draft: Draft): Promise<void> {
    const first = !this.#progressed
    this.#progressed = true
    if (!first || !this.recorder.durable) return this.recorder.record(draft)
    return this.recorder.record({ ...draft, ops: [...(draft.ops ?? []), set(['run', 'claims'], 0)] })
  }

  throwIfAborted(): void {
    this.abort.signal.throwIfAborted()
  }

  /** The key a service sees: the same over crashes and retries, another on every branch and after a definite failure. */
  idempotencyKey(path: string, generation: number): string {
    const { run } = this.state
    const parts = [this.log.tenant, this.log.thread, this.log.branch, run?.key ?? run?.id ?? '', path, `${generation}`]
    return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 32)
  }
}
