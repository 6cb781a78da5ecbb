/** Keeps the first `count` of what it is given, by an order. Holds a few times that many at once, never all. */
export class TopItems<Item> {
  readonly #count: number
  readonly #compare: (a: Item, b: Item) => number
  #best: Item[] = []
  #last: Item | undefined

  constructor(count: number, compare: (a: Item, b: Item) => number) {
    this.#count = count
    this.#compare = compare
  }

  add(item: Item): void {
    if (this.#last !== undefined && this.#compare(item, this.#last) >= 0) return
    this.#best.push(item)
    if (this.#best.length >= 2 * this.#count + 64) this.#trim()
  }

  /** In order. */
  take(): readonly Item[] {
    return this.#best.sort(this.#compare).slice(0, this.#count)
  }

  #trim(): void {
    this.#best = this.#best.sort(this.#compare).slice(0, this.#count)
    this.#last = this.#best.at(-1)
  }
}
