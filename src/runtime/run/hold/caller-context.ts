import type { Request } from '../request/request.js'
import { contextFor, isBare, missingOf } from '../request/run-context.js'
import type { RunState } from '../state/run-state.js'

/**
 * What this process passes to the runs that it drives for a request. A caller's context is for the run that it starts,
 * or the one that it resumes, and no other that is driven on the way: otherwise that run's tools would act for one
 * person with the token of another.
 */
export class CallerContext {
  readonly #request: Request
  /** The one run that it is for. */
  #own: string | undefined

  constructor(request: Request, target: string | undefined) {
    this.#request = request
    this.#own = target
  }

  /** Whether the next run needs something that nobody brought. */
  isMissing(acknowledged: RunState): boolean {
    const next = acknowledged.inputs?.[0]
    if (next === undefined || acknowledged.cancel?.run === next.id) return false
    if (this.#request.misfit && isBare(next)) return true
    return missingOf(next, this.#for(next)).length > 0
  }

  /** The context of the run that is in progress. */
  ofRun({ run }: RunState, acknowledged: RunState): unknown {
    // Nothing of a cancelled run is called anymore, so nothing is passed to it.
    if (run === undefined || (this.#own === undefined && acknowledged.cancel?.run === run.id)) return undefined
    return contextFor(run, this.#for(run), this.#request.options.fillsContext ?? false)
  }

  #for({ id, key }: { readonly id: string; readonly key?: string }): unknown {
    const { context, options } = this.#request
    if (options.fillsContext) return options.fillsOnly === undefined || key === options.fillsOnly ? context : undefined
    this.#own ??= id
    return id === this.#own ? context : undefined
  }
}
