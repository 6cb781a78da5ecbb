/** How often to ask whether others wrote. Each time costs some 20 microseconds and no access to the disk. */
const LOOK_MS = 50

/**
 * Notices that other processes wrote to the file, by the numbers that SQLite keeps for each connection of this process:
 * all of them change when another process commits, and all but one when one of them does. When several of them did, it
 * can't tell, and a look too many costs little.
 */
export class ChangeWatch {
  readonly #versions: () => Promise<readonly number[]>
  readonly #listeners = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #last: readonly number[] | undefined
  /** The places of the numbers that changed since it was told last. */
  readonly #changed = new Set<number>()

  constructor(versions: () => Promise<readonly number[]>) {
    this.#versions = versions
  }

  add(changed: () => void): () => void {
    // Wrapped: the same function listening twice is two listeners.
    const listener = () => changed()
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) {
      this.#last = undefined
      void this.#look()
    }
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size === 0) clearTimeout(this.#timer)
    }
  }

  close(): void {
    this.#listeners.clear()
    clearTimeout(this.#timer)
  }

  async #look(): Promise<void> {
    try {
      const versions = await this.#versions()
      // Nobody knows what was written before the first look.
      for (const [at, version] of versions.entries()) if (this.#last?.[at] !== version) this.#changed.add(at)
      this.#last = versions
      if (this.#changed.size === versions.length) {
        this.#changed.clear()
        for (const listener of [...this.#listeners]) listener()
      }
    } catch {
      // Whoever needs the file is told what is wrong with it.
    }
    if (this.#listeners.size === 0) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#look(), LOOK_MS)
    this.#timer.unref()
  }
}
