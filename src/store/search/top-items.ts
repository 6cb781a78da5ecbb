/** Keeps the first `count` of what it is given, by an order. Holds a few times that many at once, never all. */
export class TopItems<Item> {
  readonly #count: number
  readonly #compare: (a: Item, b: Item) => number
  readonly #dropped: (item: Item) => void
  #best: Item[] = []
  #last: Item | undefined

  /** `dropped` is called with everything that does not make it. */
  constructor(count: number, compare: (a: Item, b: Item) => number, dropped: (item: Item) => void = () => {}) {
    this.#count = count
    this.#compare = compare
    this.#dropped = dropped
  }

  add(item: Item): void {
    if (this.#last !== undefined && this.#compare(item, this.#last) >= 0) return this.#dropped(item)
    this.#best.push(item)
    if (this.#best.length >= 2 * this.#count + 64) this.trim()
  }

  /** In order. */
  take(): readonly Item[] {
    return this.#best.sort(this.#compare).slice(0, this.#count)
  }

  /** Drops all but the first `count`. */
  trim(): void {
    const sorted = this.#best.sort(this.#compare)
    this.#best = sorted.slice(0, this.#count)
    for (const item of sorted.slice(this.#count)) this.#dropped(item)
    if (this.#best.length === this.#count) this.#last = this.#best.at(-1)
  }
}
