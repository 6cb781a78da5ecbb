import { andThen, nowOrLater } from '../../../core/async/at-once.js'
import type { StoreWrite } from '../../../log/items/store-write.js'
import type { Run } from '../../run/run.js'
import type { Abortable } from '../../../core/async/lazy-abort.js'
import type { StepContext } from '../context.js'
import { REPEAT } from '../call/internals.js'
import type { Ledger } from './ledger.js'
import { StepStore, StepWrites } from '../record/step-store.js'
import type { Work } from '../work.js'

/** One attempt at a piece of work. */
interface Attempt {
  /** Its number, from 1. */
  readonly tried: number
  readonly abort: Pick<Abortable, 'signal'>
  /** Takes what it writes to the store. */
  readonly writes: StoreWrite[]
}

/** Something came between the decision to start and the start: it is decided again. */
export class NotStarted extends Error {}

/** Calls the work once, with a context of its own. */
export function callWork(run: Run, work: Work, ledger: Ledger, { tried, abort, writes }: Attempt): unknown {
  // Immediately before the call itself: after any wait, another worker may have the thread.
  if (!mayStart(run, ledger)) throw new NotStarted()
  const { path } = work
  const key = ledger.keyMaker()
  const stored = new StepWrites(writes)
  const step: StepContext & { [REPEAT]?: true } = {
    get idempotencyKey() {
      return key()
    },
    attempt: tried,
    get abortSignal() {
      return abort.signal
    },
    store: new StepStore(() => run.store, stored),
    heartbeat: () => run.heartbeat(),
    emit: (value) => run.emit({ type: 'custom', step: path, value }),
  }
  if (ledger.unsure) step[REPEAT] = true
  const ending = withWrites(work.run(step), stored)
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
