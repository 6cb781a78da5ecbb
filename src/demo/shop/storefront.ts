import type { Holdfast, Thread } from '../../index.js'
import type { Customer } from './customers.js'
import type { Reply } from './messages.js'
import type { makeSupport } from './support-agent.js'

type SupportThread = Thread<string, { readonly messages: readonly { readonly role: string }[] }, string>

interface Conversation {
  readonly customer: Customer
  readonly thread: SupportThread
  /** Messages that the customer has left. */
  asked: number
  answered: number
  askedAt: number
  tokens: number
  state: 'talking' | 'done' | 'failed'
}

/** A customer who heard nothing for this long is looked after: the word of their reply may have died with a worker. */
const QUIET_MS = 1000
const LOOK_EVERY_MS = 500
/** How much the clocks of the processes may disagree. */
const CLOCKS_MS = 10_000
const PAGE = 200

/** The customers of the day: each leaves the next message when the last one is answered. */
export class Storefront {
  readonly #hf: Holdfast
  readonly #waiting: Customer[]
  readonly #talking = new Map<string, Conversation>()
  readonly #most: number
  readonly #program: ReturnType<typeof makeSupport>
  readonly #onSettled: (thread: string) => void
  readonly #failures: string[] = []
  #done = 0
  #turns = 0
  #closed = false
  #finish: () => void = () => {}
  #fail: (error: unknown) => void = () => {}
  #looking: ReturnType<typeof setTimeout> | undefined
  #heardAt = Date.now()

  constructor(
    hf: Holdfast,
    program: ReturnType<typeof makeSupport>,
    customers: readonly Customer[],
    options: {
      /** How many talk at the same time. */
      readonly atOnce: number
      /** A conversation has its reply, whoever said so. */
      readonly onSettled: (thread: string) => void
    },
  ) {
    this.#hf = hf
    this.#program = program
    this.#waiting = [...customers]
    this.#most = options.atOnce
    this.#onSettled = options.onSettled
  }

  get done(): number {
    return this.#done
  }

  get active(): number {
    return this.#talking.size
  }

  /** Messages that were answered. */
  get turns(): number {
    return this.#turns
  }

  /** When the last reply came. */
  get heardAt(): number {
    return this.#heardAt
  }

  get failures(): readonly string[] {
    return this.#failures
  }

  /** What a conversation has used up to its last reply. */
  tokensOf(thread: string): number {
    return this.#talking.get(thread)?.tokens ?? 0
  }

  /** Opens, and resolves when the last customer has gone. */
  open(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#finish = resolve
      this.#fail = reject
      this.#heardAt = Date.now()
      this.#admit()
      this.#lookLater()
    })
  }

  /** Nobody says anything anymore. */
  close(): void {
    this.#closed = true
    clearTimeout(this.#looking)
  }

  /** A worker says that it has answered. */
  heard(thread: string, reply: Reply): void {
    const conversation = this.#talking.get(thread)
    if (conversation === undefined || this.#closed) return
    conversation.tokens = Math.max(conversation.tokens, reply.tokens)
    if (reply.answered !== conversation.asked || conversation.answered === reply.answered) return
    conversation.answered = reply.answered
    this.#turns++
    this.#heardAt = Date.now()
    this.#onSettled(thread)
    if (conversation.answered < conversation.customer.turns.length) return this.#ask(conversation)
    conversation.state = 'done'
    this.#done++
    this.#leave(thread)
  }

  /** A conversation that can't continue. */
  failed(thread: string, why: string): void {
    if (!this.#talking.has(thread) || this.#closed) return
    this.#failures.push(`${thread}: ${why}`)
    this.#leave(thread)
  }

  #admit(): void {
    while (this.#talking.size < this.#most) {
      const customer = this.#waiting.shift()
      if (customer === undefined) break
      const thread = this.#hf.thread(this.#program, customer.thread) as unknown as SupportThread
      const conversation: Conversation = {
        customer,
        thread,
        asked: 0,
        answered: 0,
        askedAt: 0,
        tokens: 0,
        state: 'talking',
      }
      this.#talking.set(customer.thread, conversation)
      this.#ask(conversation)
    }
    if (this.#talking.size === 0) {
      this.close()
      this.#finish()
    }
  }

  #leave(thread: string): void {
    this.#talking.delete(thread)
    this.#onSettled(thread)
    this.#admit()
  }

  #ask(conversation: Conversation): void {
    const { customer, thread, asked } = conversation
    conversation.asked = asked + 1
    conversation.askedAt = Date.now()
    // The key makes it the same message, however often it is left.
    thread.enqueue(customer.turns[asked]?.text ?? '', { key: `turn-${asked + 1}` }).catch((error: unknown) => {
      this.close()
      this.#fail(error)
    })
  }

  #lookLater(): void {
    if (this.#closed) return
    this.#looking = setTimeout(() => {
      this.#lookAfter()
        .catch((error: unknown) => this.#fail(error))
        .finally(() => this.#lookLater())
    }, LOOK_EVERY_MS)
  }

  /** Finds the replies of which no word came. */
  async #lookAfter(): Promise<void> {
    const before = Date.now() - QUIET_MS
    const quiet = [...this.#talking.values()].filter(({ askedAt }) => askedAt < before)
    if (quiet.length === 0) return
    const since = Math.min(...quiet.map(({ askedAt }) => askedAt)) - CLOCKS_MS
    const resting = await this.#listResting(since)
    for (const { customer, thread, asked } of quiet) {
      if (!resting.has(customer.thread)) continue
      const state = await thread.state()
      const answered = state?.messages.filter(({ role }) => role === 'user').length ?? 0
      // At rest with the newest message taken: it has its reply.
      if (answered === asked) this.heard(customer.thread, { answered, tokens: 0 })
    }
  }

  /** Those that came to rest since then, and perhaps some others: the ones of hours ago are asked after by nobody. */
  async #listResting(since: number): Promise<ReadonlySet<string>> {
    const found = new Set<string>()
    let cursor: string | undefined
    do {
      const page = await this.#hf.threads({
        status: 'completed',
        order: 'updated',
        direction: 'desc',
        limit: PAGE,
        ...(cursor === undefined ? {} : { cursor }),
      })
      for (const { thread } of page.threads) found.add(String(thread))
      const last = page.threads.at(-1)
      cursor = last !== undefined && last.updatedAt.getTime() < since ? undefined : page.cursor
    } while (cursor !== undefined)
    return found
  }
}
