/** How often to ask whether others wrote. Each time costs some 20 microseconds and no access to the disk. */
const LOOK_MS = 50

/** Notices that other processes wrote to the file, by the number that SQLite keeps for it. */
export class ChangeWatch {
  readonly #version: () => Promise<number>
  readonly #listeners = new Set<() => void>()
  #timer: NodeJS.Timeout | undefined
  #last: number | undefined

  constructor(version: () => Promise<number>) {
    this.#version = version
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
      const version = await this.#version()
      // Nobody knows what was written before the first look.
      const isChanged = this.#last !== version
      this.#last = version
      if (isChanged) for (const listener of [...this.#listeners]) listener()
    } catch {
      // Whoever needs the file is told what is wrong with it.
    }
    if (this.#listeners.size === 0) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#look(), LOOK_MS)
    this.#timer.unref()
  }
}
