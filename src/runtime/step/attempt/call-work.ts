import { andThen, nowOrLater } from '../../../core/async/at-once.js'
import { lazyFields, withLazyFields } from '../../../core/lazy-fields.js'
import type { StoreWrite } from '../../../log/items/store-write.js'
import type { Run } from '../../run/run.js'
import type { Abortable } from '../../../core/async/lazy-abort.js'
import type { StepContext } from '../context.js'
import type { Ledger } from './ledger.js'
import { StepStore, StepWrites } from '../record/step-store.js'
import type { Work } from '../work.js'

interface AttemptOptions {
  /** Its number, from 1. */
  readonly tried: number
  readonly abort: Pick<Abortable, 'signal'>
  /** Takes what it writes to the store. */
  readonly writes: StoreWrite[]
}

/** Something came between the decision to start and the start: it is decided again. */
export class NotStarted extends Error {}

/** One attempt at a piece of work, and what its function may ask for: most never do. */
export class Attempt {
  readonly run: Run
  readonly path: string
  /** Its number, from 1. */
  readonly attempt: number
  /** One before it, with the same key, may have happened. */
  readonly isRepeat: boolean
  readonly store: StepStore
  readonly #abort: Pick<Abortable, 'signal'>
  readonly #key: () => string

  constructor(run: Run, { path }: Work, ledger: Ledger, { tried, abort }: AttemptOptions, stored: StepWrites) {
    this.run = run
    this.path = path
    this.attempt = tried
    this.isRepeat = ledger.unsure
    this.store = new StepStore(() => run.store, stored)
    this.#abort = abort
    this.#key = ledger.keyMaker()
  }

  get abortSignal(): AbortSignal {
    return this.#abort.signal
  }

  get idempotencyKey(): string {
    return this.#key()
  }

  /** As the function of a step sees it. */
  get shown(): StepContext {
    const { run, path, attempt, store } = this
    const heartbeat = () => run.heartbeat()
    const emit = (value: unknown) => run.emit({ type: 'custom', step: path, value })
    return withLazyFields({ attempt, store, heartbeat, emit }, this, LAZY)
  }
}

const LAZY = lazyFields(['idempotencyKey', 'abortSignal'])

/** Calls the work once, with a context of its own. */
export function callWork(run: Run, work: Work, ledger: Ledger, options: AttemptOptions): unknown {
  // Immediately before the call itself: after any wait, another worker may have the thread.
  if (!mayStart(run, ledger)) throw new NotStarted()
  const { writes } = options
  const stored = new StepWrites(writes)
  const ending = withWrites(work.run(new Attempt(run, work, ledger, options, stored)), stored)
  return ledger.effect === 'read' ? ending : ledger.track(writes, Promise.resolve(ending))
}

// A delay between attempts, or a machine that stood still, may outlast the lease, and what the service remembers.
function mayStart({ lease }: Run, ledger: Ledger): boolean {
  if (ledger.effect === 'read') return true
  return (lease?.isSure ?? true) && !(ledger.unsure && ledger.isForgotten)
}

/** The result, once it is known what the work wrote to the store. */
function withWrites(running: unknown, stored: StepWrites): unknown {
  const after = (result: unknown) => {
    const writing = stored.settled()
    return writing ? writing.then(() => result) : result
  }
  // A query builder begins its work, and may write, only when it is waited for.
  return andThen(nowOrLater(running), after)
}
