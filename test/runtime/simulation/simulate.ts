import { isDeepStrictEqual } from 'node:util'
import type { Outcome } from 'holdfast'
import { inputFor } from './build.js'
import type { Blow, Chaos } from './chaos.js'
import { Guests } from './guests.js'
import type { Mortal } from './mortal.js'
import type { ProgramSpec } from './spec.js'
import { isExpected, keyOf, LEASE_MS, PATIENCE, type Place, Stage, STEP_MS } from './stage.js'
import type { Program } from './surroundings.js'
import { judge } from './verdict.js'

export type { Place } from './stage.js'

export interface Result {
  readonly status: string
  readonly state: unknown
  readonly output: unknown
  readonly error: unknown
  readonly items: unknown
  readonly calls: number
  /** Ended by a person, or given up by policy: what is compared then is only that no rule was broken. */
  readonly cut: boolean
}

/** By then a deployment is over: nobody has an older version any more, also of those who stood still in the middle of it. */
const DEPLOYED_ROUND = 100
/** A worker of another version that takes the thread between ours may hold it for minutes, which are fifty rounds, and again. */
const MAX_ROUNDS = 400
const MAX_RESUMES = 4

/** Runs a program through its crashes to its end. Throws when a rule was broken, or when it does not end. */
export async function simulate(spec: ProgramSpec, chaos: Chaos, place: Place): Promise<Result> {
  return new Simulation(spec, chaos, place).run()
}

type Ended =
  | { readonly outcome: Outcome }
  | { readonly error: unknown }
  | { readonly idle: true }
  | { readonly gone: true }

class Simulation {
  readonly #stage: Stage
  readonly #guests: Guests
  readonly #blows: Blow[]
  readonly #wakings: { readonly at: number; readonly process: Mortal }[] = []
  #moments = 0

  constructor(spec: ProgramSpec, chaos: Chaos, place: Place) {
    this.#blows = [...chaos.blows].sort((a, b) => a.at - b.at)
    this.#stage = new Stage(spec, chaos, place, (process) => this.#onMoment(process))
    this.#guests = new Guests(this.#stage)
    for (const n of chaos.secondInput ? [1, 2] : [1]) this.#stage.wanted.add(n)
  }

  async run(): Promise<Result> {
    const { chaos, world } = this.#stage
    let result = await this.#live()
    if (chaos.reuse && world.violations.length === 0) {
      await this.#stage.erase()
      result = await this.#live()
    }
    return result
  }

  /** From the first input to the end of the thread. */
  async #live(): Promise<Result> {
    const { world, chaos, universe } = this.#stage
    let outcome = await this.#toTheEnd()
    await this.#settleGuests(outcome)
    // A guest may have come at the last moment, with something that nobody has taken to its end yet.
    if (outcome.status === 'completed' && (await this.#stage.nextInput()) !== undefined)
      outcome = await this.#toTheEnd()
    // A run that failed may be taken up by anyone, also by one that slept before it claimed the thread. And where the
    // thread is to be erased, who sleeps wakes up in another life of it.
    if (outcome.status === 'completed' && !(chaos.reuse && universe.era === 0)) await this.#wakeTheFrozen()
    await this.#settleGuests(outcome)
    await judge(this.#stage, outcome, this.#guests.cut)
    if (world.violations.length > 0) throw new Error(`Rules were broken:\n${world.violations.join('\n')}`)
    const error = outcome.status === 'failed' ? outcome.error : undefined
    // The program may have wrapped what it was told.
    const givesUp = JSON.stringify(this.#stage.spec).includes('"onUnknown":"fail"')
    const isUnknown = error !== undefined && (givesUp || error.message.includes('took effect is unknown'))
    return {
      status: outcome.status,
      state: outcome.state,
      output: outcome.status === 'completed' ? outcome.output : undefined,
      error,
      items: (await this.#stage.items()).filter(([place]) => place.startsWith(`${universe.era}/`)),
      calls: world.calls.length,
      cut: this.#guests.cut || isUnknown || world.isRefused,
    }
  }

  /** A thread that goes on as soon as the right version comes is not at rest: whoever waits for it waits for that, too. */
  async #settleGuests({ status }: Outcome): Promise<void> {
    const { run } = await this.#stage.state()
    if (status !== 'incompatible' || run?.status !== 'running') await this.#guests.settle()
  }

  async #toTheEnd(): Promise<Outcome> {
    const failures = new Map<string, number>()
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (round === DEPLOYED_ROUND) for (const process of this.#stage.processes) process.kill()
      const ended = await this.#round(round)
      if ('gone' in ended) {
        await this.#passLease(round)
        continue
      }
      if ('error' in ended) {
        if (!isExpected(ended.error, this.#stage)) throw ended.error
        await this.#stage.advance(STEP_MS)
        continue
      }
      const outcome = 'outcome' in ended ? ended.outcome : await this.#stage.read()
      if (outcome === undefined) {
        if ((await this.#stage.state()).run?.waiting) await this.#guests.help()
        else await this.#passLease(round)
        continue
      }
      const isOver = await this.#meet(outcome, failures, round)
      if (isOver) return (await this.#stage.read()) ?? outcome
    }
    throw new Error(`The run did not end: ${JSON.stringify(await this.#stage.state())}`)
  }

  /** Does what an outcome calls for. True when nothing is left to do. */
  async #meet(outcome: Outcome, failures: Map<string, number>, round: number): Promise<boolean> {
    switch (outcome.status) {
      case 'completed':
        // A client may have driven its own input to the end before we heard of ours.
        return (await this.#stage.nextInput()) === undefined
      case 'failed': {
        if (!outcome.canResume) return (await this.#stage.nextInput()) === undefined
        const times = (failures.get(outcome.error.message) ?? 0) + 1
        failures.set(outcome.error.message, times)
        return times > MAX_RESUMES + 2 * (JSON.stringify(this.#stage.spec).match(/"effect"/g)?.length ?? 0)
      }
      case 'paused':
        await this.#guests.help()
        return false
      case 'busy':
        await this.#passLease(round)
        return false
      default: {
        // Refused for want of a key, it may not have come back yet to what was begun.
        if (this.#stage.world.isRefused) return true
        if ((this.#stage.chaos.edits ?? []).length === 0) {
          throw new Error(`The run ended as ${outcome.status}: ${JSON.stringify(outcome)}`)
        }
        // The program that began it is brought back. Where two have left their traces, neither may fit.
        const wasChanged = this.#stage.edits.length > 0
        this.#stage.edits = []
        return !wasChanged
      }
    }
  }

  /** One process takes the thread up and drives it as far as it comes. */
  async #round(round: number): Promise<Ended> {
    const { modes, options } = this.#stage.chaos
    const state = await this.#stage.state()
    const failed = state.run?.status === 'failed' || state.run?.status === 'incompatible'
    // Whoever drove it there, perhaps a process that woke up with an older version, does not have all of its steps.
    if (state.run?.error?.code === 'timeout' || state.run?.status === 'incompatible') this.#stage.edits = []
    const process = this.#stage.newProcess()
    const program = this.#stage.program(process)
    const next = await this.#stage.nextInput()
    const mode =
      next !== undefined && (failed || (await this.#stage.isNew(next)))
        ? 'run-input'
        : (modes[round % modes.length] ?? 'run')
    const settings = { ...options[round % options.length], leaseMs: LEASE_MS }
    if (mode === 'worker' && !failed) return this.#byWorker(process, program, settings)
    const given = next === undefined ? {} : { input: inputFor(this.#stage.spec, next), key: keyOf(next) }
    const withInput = mode === 'run-input' && !failed ? given : {}
    const thread = process.hf.thread(program as never, this.#stage.thread)
    const running = thread.run({ ...settings, ...withInput, onPaused: 'queue' } as never)
    const ended = await this.#follow(process, running as unknown as Promise<Outcome>)
    if (next !== undefined && 'input' in withInput) {
      if ('outcome' in ended) await this.#stage.heard(next, ended.outcome)
      else this.#stage.leaves(next)
    }
    return ended
  }

  async #byWorker(process: Mortal, program: Program, settings: object): Promise<Ended> {
    let ended: Ended | undefined
    const worker = process.hf.worker({
      ...settings,
      programs: [program],
      handleSignals: false,
      maxCrashes: 1_000_000,
      onEvent: (event) => {
        if (event.type === 'ended') ended = { outcome: event.outcome }
        if (event.type === 'error' || event.type === 'stopped')
          ended = { error: 'error' in event ? event.error : STOPPED }
      },
    })
    for (let i = 0; ended === undefined && process.state === 'alive' && i < PATIENCE; i++) {
      await this.#stage.advance(STEP_MS)
      if (i >= 8 && worker.active === 0 && ended === undefined) ended = { idle: true }
    }
    if (process.state !== 'alive') return { gone: true }
    if ('idle' in (ended ?? {})) await this.#checkIdle(worker)
    const stopped = await this.#follow(
      process,
      worker.stop().then(() => undefined as never),
    )
    return 'gone' in stopped ? stopped : (ended ?? { error: new Error('A worker took a run and did not end it.') })
  }

  /** A worker that finds nothing is right only if nothing is due. It looks twice a second: a lease may just have ended. */
  async #checkIdle(worker: { readonly active: number }): Promise<void> {
    for (let i = 0; i < 4 && (await this.#isDue()); i++) await this.#stage.advance(STEP_MS)
    if (worker.active > 0 || !(await this.#isDue())) return
    const { threads } = await this.#stage.observer.threads({ thread: this.#stage.thread })
    const found = JSON.stringify([threads, await this.#stage.state()])
    throw new Error(`No worker takes it up, though it is not over: ${found}`)
  }

  async #isDue(): Promise<boolean> {
    const { threads } = await this.#stage.observer.threads({ thread: this.#stage.thread })
    const { run, inputs = [] } = await this.#stage.state()
    const isOpen = run?.status === 'running' ? run.waiting === undefined : inputs.length > 0
    return threads[0]?.claimedBy === null && isOpen && run?.status !== 'failed' && run?.status !== 'incompatible'
  }

  async #follow(process: Mortal, running: Promise<Outcome>): Promise<Ended> {
    let ended: Ended | undefined
    running.then(
      (outcome) => (ended = { outcome }),
      (error: unknown) => (ended = { error }),
    )
    for (let i = 0; i < PATIENCE; i++) {
      await this.#stage.advance(i < 4 ? 1 : STEP_MS)
      if (ended !== undefined) return ended
      if (process.state !== 'alive') return { gone: true }
    }
    throw new Error(`A run hangs: ${JSON.stringify(await this.#stage.state())}`)
  }

  #onMoment(process: Mortal): void {
    this.#moments++
    for (const waking of this.#wakings) if (waking.at === this.#moments) waking.process.wake()
    while ((this.#blows[0]?.at ?? Number.POSITIVE_INFINITY) <= this.#moments)
      this.#strike(this.#blows.shift() as Blow, process)
  }

  #strike(blow: Blow, process: Mortal): void {
    switch (blow.kind) {
      case 'kill':
        return process.kill()
      case 'freeze':
        this.#wakings.push({ at: this.#moments + blow.for, process })
        return process.freeze()
      case 'lose':
        process.loses = blow.landed ? 'after' : 'before'
        return
      default:
        this.#guests.come(blow.kind, this.#moments)
    }
  }

  async #passLease(round: number): Promise<void> {
    const { chaos, place, processes, observer, thread } = this.#stage
    const { delays } = chaos
    if (place.leasesByClock) {
      // Clients that wait and workers that woke look several times a second: days would take minutes.
      const awake = this.#guests.present > 0 || processes.some(({ stale, state }) => stale && state === 'alive')
      const ms = awake ? LEASE_MS + 1 : (delays[round % delays.length] ?? LEASE_MS)
      return this.#stage.advance(ms)
    }
    const log = await observer.log(thread)
    if (!log.exists) return
    const claim = await log.claim({ owner: 'observer', ms: 60_000, force: true })
    await claim.release()
  }

  /** A process that slept through it all wakes up when it is over, and must change nothing. */
  async #wakeTheFrozen(): Promise<void> {
    // Nobody else may come meanwhile, or what he changes is blamed on the woken.
    this.#blows.length = 0
    await this.#guests.settle()
    const before = await this.#stage.whole()
    for (const process of this.#stage.processes) process.wake()
    for (let i = 0; i < 10; i++) await this.#stage.advance(LEASE_MS)
    const after = await this.#stage.whole()
    if (!isDeepStrictEqual(after, before)) {
      const found = `A woken process changed ${JSON.stringify(before)} to ${JSON.stringify(after)}`
      this.#stage.world.violations.push(found)
    }
  }
}

const STOPPED = Object.assign(new Error('stopped'), { code: 'fenced' })
