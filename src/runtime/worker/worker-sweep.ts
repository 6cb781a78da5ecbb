import { addReports, hasSwept, type SweepReport } from '../../core/retention.js'
import type { WorkerParts } from './worker-options.js'

const SWEEP_EVERY_MS = 60_000
/**
 * A sweep that takes long, because a backend has to look at every item, is followed by a rest this many times as long.
 */
const SWEEP_REST = 20
const MOST_BREATH_MS = 1000

/** Removes now and then what the retention policy no longer keeps. */
export class WorkerSweep {
  readonly #parts: WorkerParts
  #dueAt: number
  #sweeping: Promise<void> | undefined

  constructor(parts: WorkerParts) {
    this.#parts = parts
    this.#dueAt = parts.environment.clock.monotonic() + SWEEP_EVERY_MS
  }

  /** If it is time. Alongside the search for work: if many items expired, or each must be looked at, threads would have to wait. */
  begin(): void {
    if (this.#sweeping !== undefined || this.#parts.environment.clock.monotonic() < this.#dueAt) return
    this.#sweeping = this.#sweep().finally(() => {
      this.#sweeping = undefined
    })
  }

  /** Resolves when the one in progress, if any, has ended. */
  async ended(): Promise<void> {
    await this.#sweeping
  }

  async #sweep(): Promise<void> {
    const { environment, tenant, drain, tell } = this.#parts
    const { clock } = environment
    const sweep = environment.sweep(tenant)
    let looked = 0
    let all: SweepReport | undefined
    try {
      for (let more = true; more && !drain.aborted; ) {
        const began = clock.monotonic()
        const piece = await sweep.step()
        const took = clock.monotonic() - began
        more = piece.more
        all = all ? addReports(all, piece.swept) : piece.swept
        if (!hasSwept(piece.swept)) looked += took
        // Every other moment belongs to concurrent appends.
        if (more && took > 0) await clock.sleep(Math.min(took, MOST_BREATH_MS), drain).catch(() => {})
      }
    } catch (error) {
      tell({ type: 'error', error })
    }
    if (all && hasSwept(all)) tell({ type: 'swept', swept: all })
    this.#dueAt = clock.monotonic() + Math.max(SWEEP_EVERY_MS, looked * SWEEP_REST)
  }
}
