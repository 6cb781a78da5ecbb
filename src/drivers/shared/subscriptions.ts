type Heard = (message: string | undefined) => void

/** How a driver begins and ends to listen to a topic. */
interface Source {
  open(topic: string): Promise<void>
  close(topic: string): Promise<void>
}

interface Topic {
  readonly listeners: Set<Heard>
  opened: Promise<void>
}

/** Who of this process listens to which topic: each is opened for the first and closed after the last. */
export class Subscriptions {
  readonly #source: Source
  readonly #topics = new Map<string, Topic>()

  constructor(source: Source) {
    this.#source = source
  }

  has(topic: string): boolean {
    return this.#topics.has(topic)
  }

  async add(name: string, heard: Heard): Promise<() => Promise<void>> {
    // Wrapped: the same function listening twice is two listeners, and ending one leaves the other.
    const listener: Heard = (message) => heard(message)
    let topic = this.#topics.get(name)
    if (topic === undefined) {
      topic = { listeners: new Set(), opened: this.#source.open(name) }
      this.#topics.set(name, topic)
    }
    topic.listeners.add(listener)
    const end = async (): Promise<void> => {
      if (!topic.listeners.delete(listener) || topic.listeners.size > 0) return
      if (this.#topics.get(name) !== topic) return
      this.#topics.delete(name)
      await topic.opened.catch(() => {})
      // Somebody may have come in the meantime.
      if (!this.#topics.has(name)) await this.#source.close(name)
    }
    try {
      await topic.opened
    } catch (error) {
      topic.listeners.delete(listener)
      if (this.#topics.get(name) === topic) this.#topics.delete(name)
      throw error
    }
    return end
  }

  tell(name: string, message: string | undefined): void {
    const topic = this.#topics.get(name)
    for (const listener of [...(topic?.listeners ?? [])]) if (topic?.listeners.has(listener)) listener(message)
  }

  /** Some messages may have been missed, of any topic. */
  tellAll(): void {
    for (const name of [...this.#topics.keys()]) this.tell(name, undefined)
  }

  /** The topics that are open, for a connection that comes back. */
  get names(): readonly string[] {
    return [...this.#topics.keys()]
  }

  clear(): void {
    this.#topics.clear()
  }
}
