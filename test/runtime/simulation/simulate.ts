import { isDeepStrictEqual } from 'node:util'
import { fateOf } from '#src/runtime/given-input.js'
import { findEnded } from '#src/runtime/input-keys.js'
import type { RunState } from '#src/runtime/run-state.js'
import type { Driver, Holdfast, Log, Outcome } from 'holdfast'
import type { VirtualClock } from 'holdfast/testing'
import { buildProgram, type Program } from './build.js'
import type { Blow, Chaos } from './chaos.js'
import { checkLandings, lookInto } from './check.js'
import { Mortal, type Universe } from './mortal.js'
import type { ProgramSpec } from './spec.js'
import { World } from './world.js'

/** Where a simulation happens. */
export interface Place {
  readonly driver: Driver
  readonly clock: VirtualClock
  /** The store's leases follow the virtual clock: they are waited for. Otherwise a lease is taken by force. */
  readonly leasesByClock: boolean
  readonly thread: string
}

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

const MAX_ROUNDS = 100
const MAX_RESUMES = 4
const LEASE_MS = 10_000
const STEP_MS = 250

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
  readonly #spec: ProgramSpec
  readonly #chaos: Chaos
  readonly #place: Place
  readonly #world: World
  readonly #universe: Universe
  /** Sees the store as it is, and speaks for people: never crashes. */
  readonly #observer: Holdfast
  readonly #processes: Mortal[] = []
  readonly #signalled = new Set<string>()
  readonly #blows: Blow[]
  readonly #wakings: { readonly at: number; readonly process: Mortal }[] = []
  #log: Log | undefined
  #moments = 0
  #visitors = 0
  #ids = 0
  #cancelled = false

  constructor(spec: ProgramSpec, chaos: Chaos, place: Place) {
    this.#spec = spec
    this.#chaos = chaos
    this.#place = place
    const { driver, clock } = place
    this.#world = new World(clock, place.thread)
    this.#blows = [...chaos.blows].sort((a, b) => a.at - b.at)
    const randomId = () => `id-${(this.#ids++).toString().padStart(6, '0')}-${place.thread}`
    this.#universe = {
      driver,
      clock,
      landings: [],
      underWay: 0,
      randomId,
      onMoment: (process) => this.#onMoment(process),
    }
    this.#observer = new Mortal(this.#universe, 'observer', { immortal: true }).hf
    this.#world.look = lookInto(() => this.#state())
  }

  async run(): Promise<Result> {
    const outcome = await this.#toTheEnd()
    // A run that failed may be taken up by anyone, also by one that slept before it claimed the thread.
    if (outcome.status === 'completed') await this.#wakeTheFrozen()
    await this.#settleGuests()
    this.#world.checkCounts()
    if (outcome.status === 'completed' && !this.#cancelled) this.#checkKept(outcome.state)
    this.#world.violations.push(...checkLandings(this.#universe.landings))
    const verified = await this.#observer.verify(this.#place.thread)
    if (verified && verified.problems.length > 0) this.#world.violations.push(JSON.stringify(verified.problems))
    if (this.#world.violations.length > 0) throw new Error(`Rules were broken:\n${this.#world.violations.join('\n')}`)
    const error = outcome.status === 'failed' ? outcome.error : undefined
    return {
      status: outcome.status,
      state: outcome.state,
      output: outcome.status === 'completed' ? outcome.output : undefined,
      error,
      items: await this.#items(),
      calls: this.#world.calls.length,
      cut: this.#cancelled || (error?.message.includes('took effect is unknown') ?? false),
    }
  }

  /** What a node brought is in the state. Both runs that are compared could have lost it. */
  #checkKept(state: Outcome['state']): void {
    // A person may reject what a node with such a gate brought.
    if (this.#spec.kind !== 'graph' || JSON.stringify(this.#spec).includes('"gate":"after"')) return
    const results = (state['results'] ?? {}) as Record<string, unknown>
    for (const { mark } of this.#world.calls) {
      if (!Object.hasOwn(results, mark)) this.#world.violations.push(`The state lost what ${mark} brought`)
    }
  }

  async #toTheEnd(): Promise<Outcome> {
    const failures = new Map<string, number>()
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const ended = await this.#round(round)
      if ('gone' in ended) {
        await this.#passLease(round)
        continue
      }
      if ('error' in ended) {
        if (!isExpected(ended.error)) throw ended.error
        await this.#advance(STEP_MS)
        continue
      }
      const outcome = 'outcome' in ended ? ended.outcome : await this.#read()
      if (outcome === undefined) {
        if ((await this.#state()).run?.waiting) await this.#help()
        else await this.#passLease(round)
        continue
      }
      switch (outcome.status) {
        case 'completed':
          // A client may have driven its own input to the end before we heard of ours.
          if (this.#allTaken(await this.#state())) return (await this.#read()) ?? outcome
          break
        case 'failed':
          failures.set(outcome.error.message, (failures.get(outcome.error.message) ?? 0) + 1)
          if (outcome.canResume && (failures.get(outcome.error.message) ?? 0) > MAX_RESUMES) return outcome
          if (!outcome.canResume && this.#allTaken(await this.#state())) return outcome
          break
        case 'paused':
          await this.#help()
          break
        case 'busy':
          await this.#passLease(round)
          break
        default:
          throw new Error(`The run ended as ${outcome.status}: ${JSON.stringify(outcome)}`)
      }
    }
    throw new Error(`The run did not end: ${JSON.stringify(await this.#state())}`)
  }

  /** One process takes the thread up and drives it as far as it comes. */
  async #round(round: number): Promise<Ended> {
    const { modes, options } = this.#chaos
    const process = this.#newProcess(`p${round}`)
    const program = buildProgram(this.#spec, this.#world, process)
    const state = await this.#state()
    const next = this.#nextInput(state)
    const failed = state.run?.status === 'failed'
    const mode =
      next !== undefined && (isNew(state, next) || failed) ? 'run-input' : (modes[round % modes.length] ?? 'run')
    const settings = { ...options[round % options.length], lease: LEASE_MS }
    if (mode === 'worker' && !failed) return this.#byWorker(process, program, settings)
    const withInput =
      mode === 'run-input' && next !== undefined && !failed ? { input: { n: next }, key: `input-${next}` } : {}
    const thread = process.hf.thread(program as never, this.#place.thread)
    return this.#follow(
      process,
      thread.run({ ...settings, ...withInput, onPaused: 'queue' } as never) as unknown as Promise<Outcome>,
    )
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
    for (let i = 0; ended === undefined && process.state === 'alive' && i < 100; i++) {
      await this.#advance(STEP_MS)
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
    for (let i = 0; i < 4 && (await this.#isDue()); i++) await this.#advance(STEP_MS)
    if (worker.active > 0 || !(await this.#isDue())) return
    const { threads } = await this.#observer.threads({ thread: this.#place.thread })
    throw new Error(`No worker takes it up, though it is not over: ${JSON.stringify([threads, await this.#state()])}`)
  }

  async #isDue(): Promise<boolean> {
    const { threads } = await this.#observer.threads({ thread: this.#place.thread })
    const { run, inputs = [] } = await this.#state()
    const isOpen = run?.status === 'running' ? run.waiting === undefined : inputs.length > 0
    return threads[0]?.claimedBy === null && isOpen && run?.status !== 'failed'
  }

  async #follow(process: Mortal, running: Promise<Outcome>): Promise<Ended> {
    let ended: Ended | undefined
    running.then(
      (outcome) => (ended = { outcome }),
      (error: unknown) => (ended = { error }),
    )
    for (let i = 0; i < 2000; i++) {
      await this.#advance(i < 4 ? 1 : STEP_MS)
      if (ended !== undefined) return ended
      if (process.state !== 'alive') return { gone: true }
    }
    throw new Error(`A run hangs: ${JSON.stringify(await this.#state())}`)
  }

  /** Does what the run waits for: answers, signals, or time. */
  async #help(): Promise<void> {
    await this.#answerAll()
    for (const wait of (await this.#state()).run?.waiting ?? []) {
      if (wait.kind === 'signal' && wait.until === undefined) await this.#signal(wait.name)
    }
    const { threads } = await this.#observer.threads({ thread: this.#place.thread })
    const wakeAt = threads[0].wakeAt
    if (wakeAt) await this.#advance(Math.max(0, wakeAt.getTime() - this.#place.clock.now()) + 1)
  }

  async #answerAll(): Promise<void> {
    const view = this.#observer.inspect(this.#place.thread)
    for (const pause of await view.pauses()) {
      const { id, kind, question, step } = pause
      if (pause.expiresAt) continue
      const answer = this.#answerTo(kind, step, question)
      // Another may have been faster.
      await view.answer(id, answer).catch((error: { code?: string }) => {
        if (error.code !== 'pause-closed') throw error
      })
    }
  }

  #answerTo(kind: string, step: string, question: unknown): unknown {
    if (kind === 'unknown-effect') return this.#world.answer((question as { idempotencyKey: string }).idempotencyKey)
    if (kind === 'question') return `answer to ${JSON.stringify(question)}`
    const drawn = [...step].reduce((sum, letter) => sum + letter.charCodeAt(0), 0) % 4
    if (drawn === 0) return { approved: false }
    return drawn === 1 ? { approved: true, update: { log: [`${kind} ${step}`] } } : { approved: true }
  }

  async #signal(name: string): Promise<void> {
    if (this.#signalled.has(name)) return
    this.#signalled.add(name)
    await this.#observer.inspect(this.#place.thread).signal(name, `signal ${name}`)
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
        this.#visitors++
        void this.#visit(blow.kind)
          .catch((error: unknown) => this.#world.violations.push(String(error)))
          .finally(() => this.#visitors--)
    }
  }

  async #visit(kind: 'answer' | 'signal' | 'cancel' | 'second-input'): Promise<void> {
    const { thread } = this.#place
    if (!(await this.#observer.log(thread)).exists) return
    if (kind === 'answer') await this.#answerAll()
    if (kind === 'signal') for (const name of this.#world.wanted) await this.#signal(name)
    if (kind === 'cancel') {
      this.#cancelled = true
      await this.#observer.inspect(thread).cancel()
    }
    if (kind === 'second-input' && this.#chaos.secondInput) {
      const client = new Mortal(this.#universe, 'client', { immortal: true })
      const program = buildProgram(this.#spec, this.#world, client)
      // One waits for its own input to end, the other leaves it for whoever drives the thread.
      if (this.#moments % 2 === 0) {
        const handle = client.hf.thread(program as never, thread)
        return void (await handle.enqueue({ n: 2 } as never, { key: 'input-2' }))
      }
      const running = client.hf
        .thread(program as never, thread)
        .run({ input: { n: 2 }, key: 'input-2', busy: 'queue', onPaused: 'queue', lease: LEASE_MS } as never)
      await running.catch((error: unknown) => {
        if (!isExpected(error)) throw error
      })
    }
  }

  #newProcess(name: string): Mortal {
    const { skews = [] } = this.#chaos
    // A server goes by a clock of its own, which knows nothing of the virtual one.
    const skew = this.#place.leasesByClock ? (skews[this.#processes.length % skews.length] ?? 0) : 0
    const process = new Mortal(this.#universe, name, { skew })
    this.#processes.push(process)
    return process
  }

  /** The next input that was not taken to its end, by its number. */
  #nextInput(state: RunState): number | undefined {
    return this.#inputs().find((n) => findEnded(state, `input-${n}`, 'main') === undefined)
  }

  #allTaken(state: RunState): boolean {
    return this.#nextInput(state) === undefined
  }

  #inputs(): readonly number[] {
    return this.#chaos.secondInput ? [1, 2] : [1]
  }

  async #state(): Promise<RunState> {
    if (this.#log === undefined) {
      const log = await this.#observer.log(this.#place.thread)
      if (log.exists) this.#log = log
      return log.fold.state as RunState
    }
    return (await this.#log.refresh()).state as RunState
  }

  /** Undefined while another drives the thread. */
  async #read(): Promise<Outcome | undefined> {
    const { run, inputs = [] } = await this.#state()
    if (inputs.length > 0 || (run?.status === 'running' && run.waiting === undefined)) return undefined
    // What it waits for may have come meanwhile.
    const resting = this.#observer.inspect(this.#place.thread).waitFor({ timeoutMs: 0 })
    return resting.catch((error: { code?: string }) => {
      if (error.code !== 'timeout') throw error
      return undefined
    })
  }

  async #passLease(round: number): Promise<void> {
    const { delays } = this.#chaos
    if (this.#place.leasesByClock) {
      // Clients that wait and workers that woke look several times a second: days would take minutes.
      const awake = this.#visitors > 0 || this.#processes.some(({ stale, state }) => stale && state === 'alive')
      const ms = awake ? LEASE_MS + 1 : (delays[round % delays.length] ?? LEASE_MS)
      return this.#advance(ms)
    }
    const log = await this.#observer.log(this.#place.thread)
    if (!log.exists) return
    const claim = await log.claim({ owner: 'observer', ms: 60_000, force: true })
    await claim.release()
  }

  async #advance(ms: number): Promise<void> {
    await this.#place.clock.advance(ms)
    while (this.#universe.underWay > 0) await new Promise((resolve) => setTimeout(resolve, 1))
  }

  /** A process that slept through it all wakes up when it is over, and must change nothing. */
  async #wakeTheFrozen(): Promise<void> {
    // Nobody else may come meanwhile, or what he changes is blamed on the woken.
    this.#blows.length = 0
    await this.#settleGuests()
    const before = await this.#whole()
    for (const process of this.#processes) process.wake()
    for (let i = 0; i < 10; i++) await this.#advance(LEASE_MS)
    const after = await this.#whole()
    if (!isDeepStrictEqual(after, before)) {
      this.#world.violations.push(`A woken process changed ${JSON.stringify(before)} to ${JSON.stringify(after)}`)
    }
  }

  async #whole(): Promise<unknown> {
    const { seq, hash } = (await this.#observer.log(this.#place.thread)).fold
    return { seq, hash, items: await this.#items() }
  }

  async #items(): Promise<unknown> {
    const page = await this.#observer.store
      .scope({ simulation: this.#place.thread })
      .collection('c')
      .list({ limit: 100 })
    return page.items.map(({ key, value }) => [key, value])
  }

  async #settleGuests(): Promise<void> {
    for (let i = 0; i < 100 && this.#visitors > 0; i++) await this.#advance(STEP_MS)
    if (this.#visitors > 0) throw new Error('A client waits for ever.')
  }
}

const STOPPED = Object.assign(new Error('stopped'), { code: 'fenced' })

function isNew(state: RunState, n: number): boolean {
  return fateOf(state, { id: '', key: `input-${n}` }) === 'refused'
}

// A woken process, or one whose replies were lost for long, hears that another took over.
function isExpected(error: unknown): boolean {
  return ['fenced', 'unavailable'].includes((error as { code?: string }).code ?? '')
}
