import fc from 'fast-check'
import type { Outcome } from 'holdfast'
import { inputFor } from './build.js'
import type { Blow, Chaos } from './chaos.js'
import type { Mortal } from './mortal.js'
import type { ProgramSpec, WorkSpec } from './spec.js'
import { isExpected, keyOf, LEASE_MS, type Place, Stage, STEP_MS } from './stage.js'
import { resultOf } from './world.js'

/** How a message reaches its thread: left for a worker, run by whoever brings it, or run after whoever runs now. */
type Way = 'enqueue' | 'run' | 'queue' | 'interrupt'

/** More messages than a thread would keep in mind if it kept a window of them, many of them sent more than once. */
export interface Deliveries {
  /** Messages that come first, all at once. */
  readonly first: number
  /** Who waits for his message to be run, among the first. */
  readonly waiting: readonly number[]
  readonly later: readonly (readonly { readonly n: number; readonly way: Way }[])[]
  readonly work: WorkSpec
  readonly blows: readonly Blow[]
  readonly skews: readonly number[]
}

const delivery = fc.record({
  n: fc.oneof(fc.integer({ min: 1, max: 10 }), fc.integer({ min: 1, max: 130 })),
  way: fc.constantFrom<Way>('enqueue', 'run', 'queue'),
})
const moment = fc.integer({ min: 1, max: 900 })

export const deliveries: fc.Arbitrary<Deliveries> = fc.record({
  first: fc.integer({ min: 101, max: 120 }),
  waiting: fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: 3 }),
  later: fc.array(fc.array(delivery, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 3 }),
  work: fc.record({
    effect: fc.constantFrom('once' as const, 'idempotent' as const, 'reconcilable' as const),
    ms: fc.constantFrom(0, 30),
    mishaps: fc.constant([]),
    hopeless: fc.constant(false),
    spareAttempts: fc.constant(2),
    store: fc.constant(false),
    shortTtl: fc.constant(false),
    reconcile: fc.constant('truth' as const),
    onUnknown: fc.constant('pause' as const),
  }),
  blows: fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('kill' as const), at: moment }),
      fc.record({ kind: fc.constant('freeze' as const), at: moment, for: fc.constantFrom(20, 200) }),
      fc.record({ kind: fc.constant('lose' as const), at: moment, landed: fc.boolean() }),
    ),
    { maxLength: 4 },
  ),
  skews: fc.array(fc.constantFrom(0, 30_000, -3_600_000), { maxLength: 2 }),
})

/** Every message is run exactly once, and whoever sent it hears of its own run. Throws when a rule was broken. */
export async function deliver(plan: Deliveries, place: Place): Promise<void> {
  await new Delivery(plan, place).run()
}

class Delivery {
  readonly #plan: Deliveries
  readonly #stage: Stage
  readonly #blows: Blow[]
  readonly #wakings: { readonly at: number; readonly process: Mortal }[] = []
  #moments = 0
  #waiting = 0

  constructor(plan: Deliveries, place: Place) {
    this.#plan = plan
    this.#blows = [...plan.blows].sort((a, b) => a.at - b.at)
    const body = [{ kind: 'step' as const, work: plan.work, caught: false }]
    const spec: ProgramSpec = { kind: 'flow', body }
    const { skews } = plan
    const chaos: Chaos = { blows: [], modes: [], options: [], delays: [], secondInput: false, skews }
    this.#stage = new Stage(spec, chaos, place, (process) => this.#onMoment(process))
  }

  async run(): Promise<void> {
    const { world } = this.#stage
    const { first, waiting, later } = this.#plan
    const all = Array.from({ length: first }, (_, i) => ({ n: i + 1, way: 'enqueue' as Way }))
    this.#bring(all[0].n, 'enqueue')
    await this.#stage.advance(1)
    for (const n of waiting) this.#bring(n, 'queue')
    // From one process: a hundred that write at once spend their time deciding again.
    const sender = this.#stage.newClient()
    await this.#bringAll(all.slice(1), () => sender)
    for (const some of later) await this.#bringAll(some)
    const { begun, violations } = await this.#stage.history()
    world.checkCounts()
    world.violations.push(...violations)
    const run = new Set(world.calls.map(({ place }) => place))
    for (const n of this.#stage.wanted) {
      const times = begun.get(keyOf(n)) ?? 0
      if (times !== 1) world.violations.push(`Message ${n} was run ${times} times`)
      if (!run.has(placeOf(n))) world.violations.push(`Message ${n} did nothing`)
    }
    if (world.violations.length > 0) throw new Error(`Rules were broken:\n${world.violations.join('\n')}`)
  }

  async #bringAll(
    some: readonly { readonly n: number; readonly way: Way }[],
    client = () => this.#stage.newClient(),
  ): Promise<void> {
    for (const { n, way } of some) this.#bring(n, way, client())
    for (let round = 0; round < 60; round++) {
      await this.#work()
      if (this.#waiting === 0 && (await this.#isDone())) return
      await this.#stage.advance(LEASE_MS + 1)
    }
    throw new Error(`It does not end, with ${this.#waiting} waiting: ${JSON.stringify(await this.#stage.state())}`)
  }

  #bring(n: number, way: Way, client: Mortal = this.#stage.newClient()): void {
    this.#waiting++
    void this.#send(n, way, client)
      .catch((error: unknown) => {
        if (!isExpected(error, this.#stage)) this.#stage.world.violations.push(`Who sent ${n} hears ${String(error)}`)
      })
      .finally(() => this.#waiting--)
  }

  async #send(n: number, way: Way, client: Mortal): Promise<void> {
    const { spec, thread, wanted, world } = this.#stage
    const handle = client.hf.thread(this.#stage.program(client) as never, thread)
    const input = inputFor(spec, n)
    const key = keyOf(n)
    if (way === 'enqueue') {
      await handle.enqueue(input as never, { key })
      wanted.add(n)
      return
    }
    const busy = way === 'run' ? 'reject' : way
    const outcome = (await handle.run({ input, key, busy, leaseMs: LEASE_MS } as never)) as unknown as Outcome
    await this.#stage.heard(n, outcome)
    if (outcome.status === 'completed' && !isResultOf(outcome.output, n)) {
      world.violations.push(`Who sent ${n} hears of another: ${JSON.stringify(outcome.output)}`)
    }
  }

  /** One worker, until it finds nothing more or is gone. */
  async #work(): Promise<void> {
    const process = this.#stage.newProcess()
    const worker = process.hf.worker({
      programs: [this.#stage.program(process)],
      handleSignals: false,
      maxCrashes: 1_000_000,
      leaseMs: LEASE_MS,
    })
    let idle = 0
    while (process.state === 'alive' && idle < 8) {
      await this.#stage.advance(STEP_MS)
      await this.#answerAll()
      idle = worker.active === 0 ? idle + 1 : 0
    }
    if (process.state !== 'alive') return
    let stopped = false
    void worker.stop().finally(() => {
      stopped = true
    })
    for (let i = 0; i < 200 && !stopped && process.state === 'alive'; i++) await this.#stage.advance(STEP_MS)
  }

  async #answerAll(): Promise<void> {
    if (Object.keys((await this.#stage.state()).pauses ?? {}).length === 0) return
    const { view, world } = this.#stage
    for (const { id, question } of await view.pauses()) {
      const answer = world.answer((question as { idempotencyKey: string }).idempotencyKey)
      await view.answer(id, answer).catch(() => {})
    }
  }

  async #isDone(): Promise<boolean> {
    const { run, inputs = [] } = await this.#stage.state()
    return inputs.length === 0 && run?.status === 'completed'
  }

  #onMoment(process: Mortal): void {
    this.#moments++
    for (const waking of this.#wakings) if (waking.at === this.#moments) waking.process.wake()
    while ((this.#blows[0]?.at ?? Number.POSITIVE_INFINITY) <= this.#moments) {
      const blow = this.#blows.shift() as Blow
      if (blow.kind === 'kill') process.kill()
      if (blow.kind === 'lose') process.loses = blow.landed ? 'after' : 'before'
      if (blow.kind !== 'freeze') continue
      this.#wakings.push({ at: this.#moments + blow.for, process })
      process.freeze()
    }
  }
}

function placeOf(n: number): string {
  return `0/${n}:f.0`
}

function isResultOf(output: unknown, n: number): boolean {
  return Array.isArray(output) && output[0] === resultOf(placeOf(n))
}
