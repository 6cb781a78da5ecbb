import type { Fold } from '#src/log/entry/fold.js'
import type { RunState } from '#src/runtime/run/state/run-state.js'
import type { Holdfast, Outcome } from 'holdfast'
import type { Driver } from 'holdfast/driver'
import type { Log } from 'holdfast/log'
import type { VirtualClock } from 'holdfast/testing'
import { buildProgram } from './build.js'
import type { Chaos } from './chaos.js'
import { lookInto } from './check.js'
import { History } from './history.js'
import { Mortal, type Universe } from './mortal.js'
import { numbered } from './numbered.js'
import type { ProgramSpec } from './spec.js'
import type { Program } from './surroundings.js'
import { type Edit, versionFor } from './versions.js'
import { World } from './world.js'

/** Where a simulation happens. */
export interface Place {
  readonly driver: Driver
  readonly clock: VirtualClock
  /** The store's leases follow the virtual clock: they are waited for. Otherwise a lease is taken by force. */
  readonly leasesByClock: boolean
  readonly thread: string
}

export const LEASE_MS = 10_000
export const STEP_MS = 250
/**
 * How often somebody looks for the end of a run. A program that does not come back to its records is ended ten minutes
 * after its last sign of life, and what it does then may be another wait of that kind.
 */
export const PATIENCE = 12_000

/** What everybody in a simulation stands on: the world, the store as it is, the time, and the programs of the day. */
export class Stage {
  readonly spec: ProgramSpec
  readonly chaos: Chaos
  readonly place: Place
  readonly world: World
  readonly universe: Universe
  /** Sees the store as it is, and speaks for people: never crashes. */
  readonly observer: Holdfast
  readonly processes: Mortal[] = []
  /** The inputs that are to be taken, each by its number. */
  readonly wanted = new Set<number>()
  /** Those that somebody was told are taken or queued, or who was not told at all. */
  readonly kept = new Set<number>()
  /** Those whose sender stood still or died before it was told: one that wakes up may still send it, in whatever life. */
  readonly untold = new Set<number>()
  /** Those whose sender still waits to be told. */
  readonly asking: number[] = []
  /** What is changed in the program. Nothing more once it was rolled back. */
  edits: readonly Edit[]
  #log: Log | undefined
  #history = new History()
  #ids = 0

  constructor(spec: ProgramSpec, chaos: Chaos, place: Place, onMoment: (process: Mortal) => void) {
    this.spec = numbered(spec)
    this.chaos = chaos
    this.place = place
    this.edits = chaos.edits ?? []
    const { driver, clock, leasesByClock } = place
    this.world = new World(clock, place.thread)
    const randomId = () => `id-${(this.#ids++).toString().padStart(6, '0')}-${place.thread}`
    this.universe = { driver, clock, leasesByClock, landings: [], era: 0, underWay: 0, randomId, onMoment }
    this.observer = new Mortal(this.universe, 'observer', { immortal: true }).hf
    this.world.look = lookInto(() => this.fold())
  }

  get thread(): string {
    return this.place.thread
  }

  get view() {
    return this.observer.inspect(this.thread)
  }

  newProcess(): Mortal {
    const number = this.processes.length
    const process = new Mortal(this.universe, `p${number}`, { skew: this.#skew(number) })
    this.processes.push(process)
    return process
  }

  /** A process that only sends something, from a machine with a clock of its own. */
  newClient(): Mortal {
    return new Mortal(this.universe, 'client', { immortal: true, skew: this.#skew(-1) })
  }

  #skew(number: number): number {
    const { skews = [] } = this.chaos
    // A server goes by a clock of its own, which knows nothing of the virtual one.
    return this.place.leasesByClock ? (skews.at(number < 0 ? number : number % skews.length) ?? 0) : 0
  }

  /** The program as whoever starts a process now has it. */
  program(process: Mortal): Program {
    const { spec, version } = versionFor(this.spec, this.edits, this.processes.length - 1)
    return buildProgram(spec, version, this.world, process)
  }

  async fold(): Promise<Fold> {
    if (this.#log === undefined) {
      const log = await this.observer.log(this.thread)
      if (log.exists) this.#log = log
      return log.fold
    }
    return this.#log.refresh()
  }

  async state(): Promise<RunState> {
    return (await this.fold()).state as RunState
  }

  /** The next input that was not taken to its end, by its number. */
  async nextInput(): Promise<number | undefined> {
    const { ended } = await this.history()
    return [...this.wanted].find((n) => !ended.has(keyOf(n)))
  }

  /** Whether nobody has heard of an input yet. */
  async isNew(n: number): Promise<boolean> {
    const { begun } = await this.history()
    const { inputs = [] } = await this.state()
    return !begun.has(keyOf(n)) && !inputs.some(({ key }) => key === keyOf(n))
  }

  /** Somebody who gave an input is told what became of it, and relies on it: what is refused may be sent to others. */
  async heard(n: number, { input: fate, status }: Outcome): Promise<void> {
    const { violations } = this.world
    if (fate === undefined) violations.push(`Nobody is told what became of input ${n}: ${status}`)
    if (fate === 'taken' && !(await this.history()).begun.has(keyOf(n))) {
      violations.push(`Input ${n} was not taken, though its outcome says so: ${status}`)
    }
    if (fate === 'queued' && (await this.isNew(n))) violations.push(`Input ${n} is not queued, though it says so`)
    if (fate === 'refused') return
    this.wanted.add(n)
    this.kept.add(n)
  }

  /** Somebody gave an input and was not told what became of it. */
  leaves(n: number): void {
    this.kept.add(n)
    this.untold.add(n)
  }

  /** What the log of the thread's present life says. */
  async history(): Promise<History> {
    await this.state()
    if (this.#log) await this.#history.update(this.#log)
    return this.#history
  }

  /** What the log says of the last run. Undefined while another drives the thread. */
  async read(): Promise<Outcome | undefined> {
    const { run, inputs = [] } = await this.state()
    if (inputs.length > 0 || (run?.status === 'running' && run.waiting === undefined)) return undefined
    // What it waits for may have come meanwhile.
    return this.view.waitFor({ timeoutMs: 0 }).catch((error: { code?: string }) => {
      if (error.code !== 'timeout') throw error
      return undefined
    })
  }

  async advance(ms: number): Promise<void> {
    await this.place.clock.advance(ms)
    while (this.universe.underWay > 0) await new Promise((resolve) => setTimeout(resolve, 1))
  }

  async items(): Promise<readonly (readonly [place: string, value: unknown])[]> {
    const page = await this.observer.store.scope({ simulation: this.thread }).collection('c').list({ limit: 100 })
    return page.items.map(({ key, value }) => [key, value] as const)
  }

  /** Everything that a process could have changed. */
  async whole(): Promise<unknown> {
    const { seq, hash } = (await this.observer.log(this.thread)).fold
    return { seq, hash, items: await this.items() }
  }

  /** Erases the thread: what comes after is another one of the same name. */
  async erase(): Promise<void> {
    await this.observer.erase(this.thread)
    this.#log = undefined
    this.#history = new History()
    this.universe.era++
    this.universe.landings = []
    this.world.waits.erased()
    this.kept.clear()
  }
}

export function keyOf(n: number): string {
  return `input-${n}`
}

/** What a woken process hears when another took over, and one whose replies were lost for long. */
export function isExpected(error: unknown, stage: Stage): boolean {
  const { code = '' } = (error ?? {}) as { code?: string }
  if (['fenced', 'unavailable'].includes(code)) return true
  return code === 'incompatible' && (stage.chaos.edits ?? []).length > 0
}
