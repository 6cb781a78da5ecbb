import type { Outcome } from 'holdfast'
import { inputFor } from './build.js'
import { SHARED } from './build-flow.js'
import type { Visit } from './chaos.js'
import { isExpected, keyOf, LEASE_MS, PATIENCE, STEP_MS, type Stage } from './stage.js'

/** People and other processes: they answer, send signals and input, cancel, and wait for the thread. */
export class Guests {
  readonly #stage: Stage
  readonly #signalled = new Set<string>()
  #signals = 0
  #present = 0
  /** Somebody ended a run, or put another in its place. */
  cut = false

  constructor(stage: Stage) {
    this.#stage = stage
  }

  get present(): number {
    return this.#present
  }

  come(kind: Visit, moment: number): void {
    this.#present++
    void this.#visit(kind, moment)
      .catch((error: unknown) => this.#stage.world.violations.push(`A guest (${kind}) was told: ${String(error)}`))
      .finally(() => this.#present--)
  }

  /** Waits until all have what they came for. */
  async settle(): Promise<void> {
    for (let i = 0; i < PATIENCE && this.#present > 0; i++) await this.#stage.advance(STEP_MS)
    if (this.#present > 0) throw new Error('A client waits for ever.')
  }

  /** Does what the run waits for: answers, signals, or time. */
  async help(): Promise<void> {
    const { place, world } = this.#stage
    await this.answerAll()
    const { run, signals = {} } = await this.#stage.state()
    let shared = signals[SHARED]?.length ?? 0
    for (const wait of run?.waiting ?? []) {
      if (wait.kind !== 'signal' || wait.until !== undefined) continue
      if (wait.name !== SHARED) await this.#signal(wait.name)
      else if (shared-- <= 0) await this.#signalShared()
    }
    const { threads } = await this.#stage.observer.threads({ thread: this.#stage.thread })
    const wakeAt = threads[0].wakeAt
    if (!wakeAt) return
    const ms = wakeAt.getTime() - place.clock.now()
    if (ms > LONGEST_WAIT_MS) world.violations.push(`Nobody is to look for ${ms} ms, though nothing waits that long`)
    await this.#stage.advance(Math.max(0, ms) + 1)
  }

  async answerAll(): Promise<void> {
    const { view } = this.#stage
    for (const pause of await view.pauses()) {
      const { id, kind, question, step } = pause
      if (pause.expiresAt) continue
      // Another may have been faster.
      await view.answer(id, this.#answerTo(id, kind, step, question)).catch((error: { code?: string }) => {
        if (error.code !== 'pause-closed') throw error
      })
    }
  }

  #answerTo(id: string, kind: string, step: string, question: unknown): unknown {
    if (kind === 'unknown-effect') {
      return this.#stage.world.answer((question as { idempotencyKey: string }).idempotencyKey)
    }
    if (kind === 'question') return `answer to ${JSON.stringify(question)} (${id})`
    const drawn = [...step].reduce((sum, letter) => sum + letter.charCodeAt(0), this.#stage.chaos.mood ?? 0) % 4
    if (drawn === 0) return { approved: false }
    const update = drawn === 1 && kind !== 'approval' ? { update: { log: [`${kind} ${step}`] } } : {}
    return { approved: true, ...update }
  }

  async #signal(name: string): Promise<void> {
    if (this.#signalled.has(name)) return
    this.#signalled.add(name)
    const value = `signal ${name}`
    this.#stage.world.waits.send(value)
    await this.#stage.view.signal(name, value)
  }

  async #signalShared(): Promise<void> {
    const value = `${SHARED} signal ${this.#signals++}`
    this.#stage.world.waits.send(value)
    await this.#stage.view.signal(SHARED, value)
  }

  async #visit(kind: Visit, moment: number): Promise<void> {
    const { observer, thread, world, view, chaos } = this.#stage
    if (!(await observer.log(thread)).exists) return
    switch (kind) {
      case 'answer':
        return this.answerAll()
      case 'signal':
        for (const name of world.wanted) await (name === SHARED ? this.#signalShared() : this.#signal(name))
        return
      case 'cancel':
        this.cut = true
        await view.cancel()
        return
      case 'interrupt':
        this.cut = true
        return this.#deliver(3, { busy: 'interrupt', onPaused: 'queue' })
      case 'replace':
        this.cut = true
        return this.#deliver(4, { busy: 'queue', onPaused: 'cancel' })
      case 'wait-for':
        return void (await view.waitFor())
      case 'redeliver':
        return this.#deliver(1, { busy: 'queue', onPaused: 'queue' })
      default:
        if (!chaos.secondInput) return
        // One waits for its own input to end, the other leaves it for whoever drives the thread.
        return moment % 2 === 0 ? this.#leave(2) : this.#deliver(2, { busy: 'queue', onPaused: 'queue' })
    }
  }

  async #leave(n: number): Promise<void> {
    const { spec, thread } = this.#stage
    const client = this.#stage.newClient()
    const handle = client.hf.thread(this.#stage.program(client) as never, thread)
    this.#stage.kept.add(n)
    await this.#orExpected(handle.enqueue(inputFor(spec, n) as never, { key: keyOf(n) }))
  }

  async #deliver(n: number, options: object): Promise<void> {
    const { spec, thread } = this.#stage
    const client = this.#stage.newClient()
    const handle = client.hf.thread(this.#stage.program(client) as never, thread)
    const given = { input: inputFor(spec, n), key: keyOf(n), leaseMs: LEASE_MS, ...options }
    this.#stage.asking.push(n)
    const outcome = await this.#orExpected(handle.run(given as never) as Promise<unknown> as Promise<Outcome>)
    this.#stage.asking.splice(this.#stage.asking.indexOf(n), 1)
    if (outcome) await this.#stage.heard(n, outcome)
    else this.#stage.kept.add(n)
  }

  async #orExpected<Result>(request: Promise<Result>): Promise<Result | undefined> {
    return request.catch((error: unknown) => {
      if (!isExpected(error, this.#stage)) throw error
      return undefined
    })
  }
}

/** The longest sleep, expiry or time limit of a program, and some. */
const LONGEST_WAIT_MS = 70_000
