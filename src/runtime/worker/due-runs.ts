import { isHoldfastError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import type { Head } from '../../log/contract.js'
import { unheard } from '../events/event-feed.js'
import type { ProgramPlan } from '../program/program.js'
import { PROGRAM, VERSION } from '../run/state/labels.js'
import { NotNowError } from '../run/request/admit.js'
import { runThread } from '../run/run-thread.js'
import { StoppedError } from '../run/request/stop-in-time.js'
import { programOfLabel } from '../schedule/schedule-state.js'
import { startOccurrences } from '../schedule/start-occurrences.js'
import { isCompatible } from '../upgrade/migration.js'
import { dueSince } from './queue-age.js'
import type { WorkerParts } from './worker-options.js'

/** What a worker does with a thread that is due: runs it, or starts what its schedule wants, and says how it ended. */
export class DueRuns {
  readonly #parts: WorkerParts

  constructor(parts: WorkerParts) {
    this.#parts = parts
  }

  /** Whether it is for this worker: not if its version is not continued here, or if it is left alone for a while. */
  fits(head: Head): boolean {
    const { rests, tell } = this.#parts
    const plan = this.#planOf(head)
    const log = nameLog(head.log)
    if (plan === undefined || rests.has(log, head.seq)) return false
    const version = String(head.index.metadata[VERSION] ?? '')
    if (isCompatible(version, plan)) return true
    rests.skip(log, head.seq)
    const reason = `It was started by ${plan.name} ${version}, which version ${plan.version} does not continue.`
    tell({ type: 'skipped', log, reason })
    return false
  }

  async run(head: Head, log: string): Promise<void> {
    const { environment, options, owner, rests, drain, abort, tell } = this.#parts
    const { clock, observer } = environment
    const { leaseMs, durability, frequency, maxCrashes = 5, context } = options
    const { tenant, thread, branch } = head.log
    observer.record('holdfast.queue.duration', Math.max(0, clock.now() - dueSince(head)))
    tell({ type: 'taken', log, idleMs: clock.now() - head.index.updatedAt })
    let makesRoom = false
    try {
      const outcome = await runThread(environment, this.#planOf(head) as ProgramPlan, head.log, {
        hasInput: false,
        atLeast: head.seq,
        notBefore: head.index.wakeAt ?? 0,
        emit: options.onEvent ? (event) => tell({ type: 'event', log, event }) : unheard,
        signal: abort,
        isDraining: () => drain.aborted || makesRoom,
        makeRoom: () => {
          makesRoom = true
        },
        maxClaims: maxCrashes,
        owner,
        context: await context?.({ tenant, thread, branch }),
        fillsContext: true,
        ...(leaseMs === undefined ? {} : { leaseMs }),
        ...(durability === undefined ? {} : { durability }),
        ...(frequency === undefined ? {} : { frequency }),
      })
      // It is still due, and would be picked up again at once, forever.
      if (outcome.status === 'incompatible') rests.skip(log, head.seq)
      rests.worked(log)
      tell({ type: 'ended', log, outcome })
    } catch (error) {
      const stopped =
        error instanceof NotNowError ||
        error instanceof StoppedError ||
        isHoldfastError(error, 'fenced') ||
        isHoldfastError(error, 'closed')
      // It is due as before: others have their turn first, and nobody's log is flooded.
      if (!stopped) rests.failed(log, error)
      tell(stopped ? { type: 'stopped', log } : { type: 'error', log, error })
    }
  }

  /** Leaves what a schedule wants to run now for whoever takes it, which may be this worker. */
  async start(head: Head, log: string): Promise<void> {
    const { environment, rests, tell } = this.#parts
    try {
      const started = await startOccurrences(environment, this.#planOf(head) as ProgramPlan, head.log)
      rests.worked(log)
      if (started) tell({ type: 'scheduled', log, ...started })
    } catch (error) {
      rests.failed(log, error)
      tell({ type: 'error', log, error })
    }
  }

  /** The program of a thread, or the one that its schedule runs. */
  #planOf(head: Head): ProgramPlan | undefined {
    return this.#parts.plans.get(programOfLabel(String(head.index.metadata[PROGRAM] ?? '')))
  }
}
