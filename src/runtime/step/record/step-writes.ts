import { noop } from '../../../core/async/rejected.js'
import type { StoreWrite } from '../../../log/items/store-write.js'

/** What the code of a step writes to the store, whether or not it waits for it. */
export class StepWrites {
  readonly #made: StoreWrite[]
  /** Begun and not yet known, with what the code was handed for it. */
  #begun: Map<Promise<void>, Promise<void>> | undefined

  constructor(made: StoreWrite[]) {
    this.#made = made
  }

  add(write: StoreWrite): void {
    this.#made.push(write)
  }

  /** A write whose value is still being checked. */
  begin(writing: Promise<StoreWrite>): Promise<void> {
    const added = writing.then((write) => this.add(write))
    this.#begun ??= new Map()
    const begun = this.#begun
    const forget = () => begun.delete(added)
    const handed = added.then(noop)
    begun.set(added, handed)
    added.then(forget, forget)
    return handed
  }

  /**
   * Resolves when the writes that were begun are known; undefined if all are. A step that ended before would be recorded
   * without those that its code did not wait for. Rejects if one of them can't be made.
   */
  settled(): Promise<unknown> | undefined {
    if (this.#begun === undefined || this.#begun.size === 0) return undefined
    // Whoever waits here reports the failure: nobody else does if the code did not wait.
    for (const handed of this.#begun.values()) handed.catch(noop)
    return Promise.all(this.#begun.keys())
  }
}
