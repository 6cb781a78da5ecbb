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

export interface SessionOptions {
  readonly log: LogKey
  readonly recorder: Recorder
  readonly clock: Clock
  readonly store: Store
  readonly context: unknown
  readonly abort: AbortController
  readonly heartbeat: () => Promise<void>
  readonly emit: (event: LiveEvent) => void
  /** A step without a record may have been begun by a claim before ours; `triedAt` is when at the earliest. */
  readonly interrupted: boolean
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
  readonly interrupted: boolean
  readonly triedAt: number
  readonly random: () => number
  readonly inlineSleepMs: number
  readonly attempt: number
  readonly #drain: AbortSignal | undefined
  /** The step whose work is running, to refuse steps inside of steps. */
  readonly inside = new AsyncLocalStorage<string>()
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
    this.interrupted = options.interrupted
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
    const recorded = this.progress(draft)
    this.#progressed = true
    return this.recorder.record(recorded)
  }

  /** The draft, and that there was progress unless that is known. */
  progress(draft: Draft): Draft {
    if (this.#progressed || !this.recorder.durable) return draft
    return { ...draft, ops: [...(draft.ops ?? []), set(['run', 'claims'], 0)] }
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
