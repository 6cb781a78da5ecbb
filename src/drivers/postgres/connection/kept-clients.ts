import type { PgClientLike } from '../pg-client.js'

/** Connections that were not needed for this long go back to the pool. */
const IDLE_MS = 1000

/**
 * Connections of our own pool between two statements, newest first. None is kept while somebody waits for the pool, which
 * knows nothing of those that are here.
 */
export class KeptClients {
  readonly #clients: PgClientLike[] = []
  readonly #guarded = new WeakSet<PgClientLike>()
  /** The fewest that were here at once since the last look: nobody needed these. */
  #spare = 0
  #connecting = 0
  #timer: NodeJS.Timeout | undefined
  #closed = false

  take(): PgClientLike | undefined {
    const client = this.#clients.pop()
    this.#spare = Math.min(this.#spare, this.#clients.length)
    return client
  }

  /** False if it must go back to the pool. */
  keep(client: PgClientLike): boolean {
    if (this.#connecting > 0 || this.#closed) return false
    this.#guard(client)
    this.#clients.push(client)
    this.#timer ??= setTimeout(this.#look, IDLE_MS).unref()
    return true
  }

  /** Whether errors of the connection are heard already, also while it is lent out. */
  guards(client: PgClientLike): boolean {
    return this.#guarded.has(client)
  }

  async waitFor(connecting: Promise<PgClientLike>): Promise<PgClientLike> {
    this.#connecting++
    try {
      return await connecting
    } finally {
      this.#connecting--
    }
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const client of this.#clients.splice(0)) client.release()
  }

  // One that breaks while it is here must not be what the next statement is sent on: it would fail, and nobody could tell
  // whether it had landed.
  #guard(client: PgClientLike): void {
    if (this.#guarded.has(client)) return
    this.#guarded.add(client)
    const drop = (): void => {
      const at = this.#clients.indexOf(client)
      if (at === -1) return
      this.#clients.splice(at, 1)
      this.#spare = Math.min(this.#spare, this.#clients.length)
      client.release(true)
    }
    client.on('error', drop)
    client.on('end', drop)
  }

  readonly #look = (): void => {
    for (const client of this.#clients.splice(0, this.#spare)) client.release()
    this.#spare = this.#clients.length
    this.#timer = this.#spare === 0 ? undefined : setTimeout(this.#look, IDLE_MS).unref()
  }
}
