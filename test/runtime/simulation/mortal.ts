import type { Clock } from '#src/core/clock.js'
import { type Driver, Holdfast, LogStore, UnavailableError } from 'holdfast'

/** An append that reached the store, and who sent it. */
export interface Landing {
  readonly process: string
  readonly epoch: number
  readonly lease: 'keep' | 'claim' | 'extend' | 'release'
}

/** What processes share: the store, the time, and whoever decides when one dies. */
export interface Universe {
  readonly driver: Driver
  readonly clock: Clock
  readonly landings: Landing[]
  readonly randomId: () => string
  /** Calls of the driver that were not answered yet: time stands still for them. */
  underWay: number
  /** Called before each thing that a process does. */
  onMoment(process: Mortal): void
}

/**
 * A process that can be killed or frozen between any two things that it does: calls of the driver, their replies, ends
 * of sleeps, and calls of the outside world. A dead one hangs for ever; a frozen one hangs until it is woken, and then
 * does what it was about to do.
 */
export class Mortal {
  readonly name: string
  readonly hf: Holdfast
  /** Was frozen once: others may have taken over since. */
  stale = false
  state: 'alive' | 'frozen' | 'dead' = 'alive'
  loses: 'before' | 'after' | undefined
  readonly clock: Clock
  readonly #universe: Universe
  readonly #immortal: boolean
  #wake: (() => void)[] = []

  constructor(universe: Universe, name: string, { immortal = false, skew = 0 } = {}) {
    this.name = name
    this.#universe = universe
    this.#immortal = immortal
    const { clock } = universe
    this.clock = {
      bootId: clock.bootId,
      // A wrong clock is a machine's: then the store is asked, and else this is the time for all.
      canBeWrong: skew !== 0,
      now: () => clock.now() + skew,
      monotonic: () => clock.monotonic(),
      sleep: async (ms, signal) => {
        try {
          await clock.sleep(ms, signal)
        } finally {
          await this.moment()
        }
      },
    }
    this.hf = new Holdfast(
      new LogStore(this.#drive(universe.driver), { clock: this.clock, randomId: universe.randomId }),
    )
  }

  /** It stood still, and another claimed the thread since. */
  get overtaken(): boolean {
    if (!this.stale) return false
    return this.#universe.landings.findLast(({ lease }) => lease === 'claim')?.process !== this.name
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
        const method: unknown = name === 'now' ? async () => this.#universe.clock.now() : Reflect.get(target, name)
        if (typeof method !== 'function') return method
        if (name === 'close') return async () => {}
        return (...args: unknown[]) =>
          this.#call(String(name), () => method.apply(target, args) as Promise<unknown>, args)
      },
    })
  }

  async #call(name: string, call: () => Promise<unknown>, args: readonly unknown[]): Promise<unknown> {
    await this.moment()
    const loses = name === 'append' ? this.loses : undefined
    if (loses !== undefined) this.loses = undefined
    if (loses === 'before') throw new UnavailableError('The connection broke.', { written: 'unknown' })
    this.#universe.underWay++
    let result: unknown
    try {
      result = await call()
    } finally {
      this.#universe.underWay--
    }
    if (name === 'append') this.#note(args[0] as Appends, result as readonly { readonly status: string }[])
    await this.moment()
    if (loses === 'after') throw new UnavailableError('The connection broke.', { written: 'unknown' })
    return result
  }

  #note(appends: Appends, results: readonly { readonly status: string }[]): void {
    for (const [i, { epoch, lease }] of appends.entries()) {
      if (results[i].status !== 'appended') continue
      this.#universe.landings.push({ process: this.name, epoch, lease: lease.kind })
    }
  }
}

type Appends = Parameters<Driver['append']>[0]
