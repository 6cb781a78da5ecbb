import { TooLargeError } from '../../core/errors.js'
import type { ItemStore, OpenItem } from '../../log/items/item-store.js'

/**
 * Counts how large the values of one page will be when unpacked, before each is unpacked: a few stored kilobytes can
 * claim to be gigabytes.
 */
export class PageBudget {
  /** Releases what is held but not needed, when the budget runs out. */
  makeRoom: () => void = () => {}
  readonly #limit: number
  #bytes = 0

  constructor({ maxReadBytes }: ItemStore) {
    this.#limit = maxReadBytes
  }

  /** Refuses an item that no longer fits. */
  take({ size }: OpenItem): void {
    this.#bytes += size
    if (this.#bytes > this.#limit) this.makeRoom()
    if (this.#bytes <= this.#limit) return
    const remedy = 'Ask for fewer items at a time, or raise limits.maxReadBytes.'
    throw new TooLargeError('A page of items', 'bytes', this.#limit, undefined, remedy)
  }

  /** An item that was left out of the page after all. */
  giveBack({ size }: OpenItem): void {
    this.#bytes -= size
  }
}
