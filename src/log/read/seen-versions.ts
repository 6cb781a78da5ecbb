/** This many items, and as many replaced versions, are remembered. */
const MAX_ITEMS = 20_000
const MAX_REPLACED = 100_000

/**
 * The versions of items that this process has seen replaced. A version is new with every write, so one that reappears
 * was put back by hand. Remembers the most recent ones, in this process only.
 */
export class SeenVersions {
  readonly #current = new Map<string, string | null>()
  readonly #replaced = new Set<string>()

  /** An item has this version now; null: it was removed. */
  note(item: string, version: string | null): void {
    const before = this.#current.get(item)
    this.#current.delete(item)
    this.#current.set(item, version)
    if (before !== undefined && before !== null && before !== version) this.#replaced.add(nameOf(item, before))
    dropOldest(this.#current, MAX_ITEMS)
    dropOldest(this.#replaced, MAX_REPLACED)
  }

  /** True for a version that was there before the one that this process saw last. */
  isReplaced(item: string, version: string): boolean {
    return this.#replaced.has(nameOf(item, version))
  }
}

function nameOf(item: string, version: string): string {
  return `${version}\n${item}`
}

function dropOldest(kept: Map<string, unknown> | Set<string>, most: number): void {
  if (kept.size <= most) return
  const [oldest] = kept.keys()
  if (oldest !== undefined) kept.delete(oldest)
}
