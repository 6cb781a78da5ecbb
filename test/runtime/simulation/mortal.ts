import type { Clock } from '#src/core/time/clock.js'
import { Holdfast } from 'holdfast'
import type { Driver } from 'holdfast/driver'
import { UnavailableError } from 'holdfast/errors'
import { LogStore } from 'holdfast/log'

/** An append that reached the store, and who sent it. */
export interface Landing {
  readonly process: string
  readonly thread: string
  readonly epoch: number
  readonly lease: 'keep' | 'claim' | 'extend' | 'release'
}

/** What processes share: the store, the time, and whoever decides when one dies. */
export interface Universe {
  readonly driver: Driver
  /** The store's own. */
  readonly clock: Clock
  /** The store's leases go by that clock. */
  readonly leasesByClock: boolean
  landings: Landing[]
  /** How often the thread was erased. */
  era: number
  readonly randomId: () => string
  /** Calls of the driver that were not answered yet: time stands still for them. */
  underWay: number
  /** Called before each thing that a process does. */
  onMoment(process: Mortal): void
}

export interface MortalOptions {
  /** Never killed and never frozen. */
  readonly immortal?: boolean
  /** How far the wall clock of its machine is ahead of the store's, in milliseconds. */
  readonly skew?: number
}

/**
 * A process that can be killed or frozen between any two things that it does: calls of the driver, their replies, ends
 * of sleeps, and calls of the outside world. A dead one hangs for ever; a frozen one hangs until it is woken, and then
 * does what it was about to do. Each stands on a machine of its own, whose clocks tell nothing about another's.
 */
export class Mortal {
  readonly name: string
  readonly hf: Holdfast
  /** In which life of the thread it holds it, or came. */
  era: number
  /** Was frozen once: others may have taken over since. */
  stale = false
  state: 'alive' | 'frozen' | 'dead' = 'alive'
  loses: 'before' | 'after' | undefined
  readonly clock: Clock
  readonly #universe: Universe
  readonly #immortal: boolean
  #wake: (() => void)[] = []
  /** Until when the store holds its lease at least, by the store's clock, as far as an answer has said so. */
  #leaseUntil = Number.NEGATIVE_INFINITY

  constructor(universe: Universe, name: string, { immortal = false, skew = 0 }: MortalOptions = {}) {
    this.name = name
    this.era = universe.era
    this.#universe = universe
    this.#immortal = immortal
    const { clock } = universe
    this.clock = {
      bootId: skew === 0 ? clock.bootId : `${clock.bootId}-of-${name}`,
      ...(skew === 0 ? {} : { canBeWrong: true }),
      now: () => clock.now() + skew,
      monotonic: () => clock.monotonic() + Math.abs(skew),
      sleep: async (ms, signal) => {
        try {
          await clock.sleep(ms, signal)
        } finally {
          await this.moment()
        }
      },
    }
    // Days pass: a thread that is done would expire before it is looked at.
    const settings = { clock: this.clock, randomId: universe.randomId, retention: 'keep' } as const
    this.hf = new Holdfast(new LogStore(this.#drive(universe.driver), settings))
  }

  /** It stood still, and another claimed the thread since. */
  get overtaken(): boolean {
    if (!this.stale) return false
    if (this.era !== this.#universe.era) return true
    return this.#universe.landings.findLast(({ lease }) => lease === 'claim')?.process !== this.name
  }

  /** Whether it may know that nobody else can have taken the thread from it. */
  get holdsLease(): boolean {
    if (this.overtaken) return false
    return !this.#universe.leasesByClock || this.#universe.clock.now() < this.#leaseUntil
  }

  /** Something is about to happen in this process; resolves only if it still can. */
  async moment(): Promise<void> {
    if (!this.#immortal) this.#universe.onMoment(this)
    if (this.state === 'dead') await new Promise(() => {})
    while (this.state === 'frozen') await new Promise<void>((resolve) => this.#wake.push(resolve))
  }

  kill(): void {
    this.state = 'dead'
  }

  freeze(): void {
    if (this.state === 'dead') return
    this.state = 'frozen'
    this.stale = true
  }

  wake(): void {
    if (this.state !== 'frozen') return
    this.state = 'alive'
    for (const wake of this.#wake.splice(0)) wake()
  }

  #drive(driver: Driver): Driver {
    return new Proxy(driver, {
      get: (target, name) => {
        if (name === 'close') return async () => {}
        // What the store says the time is, which is the same for all.
        if (name === 'now') return () => this.#call('now', async () => this.#universe.clock.now(), [])
        const method: unknown = Reflect.get(target, name)
        if (typeof method !== 'function') return method
        const news = this.#tell(String(name), method.bind(target) as (...args: unknown[]) => unknown)
        if (news) return news
        return (...args: unknown[]) =>
          this.#call(String(name), () => method.apply(target, args) as Promise<unknown>, args)
      },
    })
  }

  /** The methods that tell and hear of news, which are no calls: the dead say and hear nothing, the frozen hear it late. */
  #tell(name: string, method: (...args: unknown[]) => unknown): ((...args: never[]) => unknown) | undefined {
    const hearing =
      (heard: (...news: unknown[]) => void) =>
      (...news: unknown[]): void => {
        if (this.state === 'alive') heard(...news)
        else if (this.state === 'frozen') this.#wake.push(() => heard(...news))
      }
    if (name === 'hasSubscribers') return method
    if (name === 'publish') return (...args) => (this.state === 'alive' ? method(...args) : undefined)
    if (name === 'watchChanges') return (changed) => method(hearing(changed))
    if (name !== 'subscribe') return undefined
    return (topic, heard) => this.#call(name, async () => method(topic, hearing(heard)), [])
  }

  async #call(name: string, call: () => Promise<unknown>, args: readonly unknown[]): Promise<unknown> {
    await this.moment()
    const loses = name === 'append' ? this.loses : undefined
    if (loses !== undefined) this.loses = undefined
    if (loses === 'before') throw new UnavailableError('The connection broke.', { written: 'unknown' })
    this.#universe.underWay++
    const sentAt = this.#universe.clock.now()
    let result: unknown
    try {
      result = await call()
    } finally {
      this.#universe.underWay--
    }
    if (name === 'append') this.#note(args[0] as Appends, result as readonly { readonly status: string }[], sentAt)
    if (name === 'renew' && result === true) this.#prolong(sentAt + (args[3] as number))
    await this.moment()
    if (loses === 'after') throw new UnavailableError('The connection broke.', { written: 'unknown' })
    return result
  }

  #note(appends: Appends, results: readonly { readonly status: string }[], sentAt: number): void {
    for (const [i, { log, epoch, lease }] of appends.entries()) {
      if (results[i].status !== 'appended') continue
      this.#universe.landings.push({ process: this.name, thread: log.thread, epoch, lease: lease.kind })
      if (lease.kind === 'claim') this.era = this.#universe.era
      if (lease.kind === 'claim' || lease.kind === 'extend') this.#prolong(sentAt + lease.ms)
      if (lease.kind === 'release') this.#leaseUntil = Number.NEGATIVE_INFINITY
    }
  }

  #prolong(until: number): void {
    this.#leaseUntil = Math.max(this.#leaseUntil, until)
  }
}

type Appends = Parameters<Driver['append']>[0]
