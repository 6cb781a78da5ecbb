import fc from 'fast-check'
import type { RunState } from '#src/runtime/run/state/run-state.js'
import { type Context, type Effect, flow, type Holdfast, type Outcome } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { type VirtualClock, virtualClock } from 'holdfast/testing'
import { Mortal, type Universe } from '../simulation/mortal.js'

/** A run of the family: what it waits for, what it pays, and the runs that it awaits. */
export interface Member {
  readonly pays: Effect
  readonly waits: 'nothing' | 'answer' | 'signal' | 'time'
  readonly children: readonly Member[]
  /** Its children run at the same time. */
  readonly sideBySide: boolean
  /** It takes its turn on a thread that others of its generation use as well. */
  readonly shared: boolean
}

export interface FamilyHistory {
  readonly top: Member
  readonly blows: readonly { readonly kind: 'kill' | 'freeze' | 'lose' | 'cancel'; readonly at: number }[]
  /** How each process comes to the family: it calls the first run, or works for all programs, or for every second one. */
  readonly ways: readonly ('run' | 'worker' | 'half a worker')[]
}

const member = (depth: number): fc.Arbitrary<Member> =>
  fc.record({
    pays: fc.constantFrom<Effect>('read', 'idempotent', 'reconcilable', 'once'),
    waits: fc.constantFrom('nothing', 'nothing', 'nothing', 'answer', 'signal', 'time'),
    children: depth === 0 ? fc.constant([]) : fc.array(member(depth - 1), { maxLength: 2 }),
    sideBySide: fc.boolean(),
    shared: fc.nat(3).map((drawn) => drawn === 0),
  })

const moment = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 300 }))
const blow = fc.record({
  kind: fc.constantFrom('kill', 'kill', 'kill', 'freeze', 'freeze', 'lose', 'cancel'),
  at: moment,
})

export const familyHistory: fc.Arbitrary<FamilyHistory> = fc.record({
  top: member(2),
  blows: fc.array(blow as fc.Arbitrary<FamilyHistory['blows'][number]>, { maxLength: 5 }),
  ways: fc.array(fc.constantFrom('run', 'worker', 'half a worker'), { minLength: 1, maxLength: 3 }),
})

const LEASE_MS = 10_000
const STEP_MS = 250
/** A process that has not come to rest by then never will. */
const PATIENCE = 4000
const MAX_ROUNDS = 60
const TOP = 'top'

/** Plays a history to its end. Throws when a payment was made twice, or a run never ended, or ended as none of it should. */
export async function playFamily(history: FamilyHistory): Promise<void> {
  const clock = virtualClock()
  const driver = await openDriver('memory:', { clock })
  try {
    await new Family(history, driver, clock).play()
  } finally {
    await driver.close()
  }
}

class Family {
  readonly #history: FamilyHistory
  readonly #clock: VirtualClock
  readonly #universe: Universe
  readonly #observer: Holdfast
  readonly #processes: Mortal[] = []
  /** What was paid under which key, and how often each member's payment took effect. */
  readonly #paid = new Map<string, string>()
  readonly #counts = new Map<string, number>()
  readonly #violations: string[] = []
  #blows: FamilyHistory['blows']
  #moments = 0
  #cancelling: Promise<void> = Promise.resolve()
  #isCancelled = false

  constructor(history: FamilyHistory, driver: Universe['driver'], clock: VirtualClock) {
    this.#history = history
    this.#clock = clock
    this.#blows = history.blows.toSorted((a, b) => a.at - b.at)
    let ids = 0
    const randomId = () => `id-${String(ids++).padStart(6, '0')}`
    const onMoment = (process: Mortal) => this.#onMoment(process)
    this.#universe = { driver, clock, leasesByClock: true, landings: [], era: 0, underWay: 0, randomId, onMoment }
    this.#observer = new Mortal(this.#universe, 'observer', { immortal: true }).hf
  }

  async play(): Promise<void> {
    await this.#comeToRest()
    const before = JSON.stringify([...this.#counts])
    // Those that stood still go on when all is over. What they begin then ends before its first step.
    for (const process of this.#processes) process.wake()
    for (let i = 0; i < 5; i++) await this.#clock.advance(LEASE_MS)
    await this.#comeToRest()
    const after = JSON.stringify([...this.#counts])
    if (after !== before) this.#violations.push(`A woken process paid: ${before} became ${after}`)
    await this.#judge()
    if (this.#violations.length > 0) throw new Error(`Rules were broken:\n${this.#violations.join('\n')}`)
  }

  async #comeToRest(): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      if (await this.#isOver()) return this.#cancelling
      await this.#round(round)
      await this.#help()
    }
    throw new Error(`The family never ends: ${JSON.stringify(await this.#threads())}`)
  }

  async #round(round: number): Promise<void> {
    const { ways } = this.#history
    const { run } = (await this.#observer.log(TOP)).fold.state as RunState
    // What members that nobody calls still owe, or were left, is for whoever looks for work.
    const way = run && hasEnded(run.status) ? 'worker' : ways[round % ways.length]
    const process = new Mortal(this.#universe, `p${this.#processes.length}`)
    this.#processes.push(process)
    const programs = this.#programs(process)
    const first = programs[0] as (typeof programs)[number]
    let outcome: Outcome | undefined
    let isOver = false
    const end = (ended?: unknown) => {
      outcome = ended as Outcome | undefined
      isOver = true
    }
    const worker =
      way === 'run'
        ? undefined
        : process.hf.worker({
            programs: programs.filter((_, i) => way === 'worker' || i % 2 === round % 2),
            leaseMs: LEASE_MS,
            handleSignals: false,
            maxCrashes: 1_000_000,
          })
    const given = { input: '0', key: 'only', leaseMs: LEASE_MS } as const
    const thread = process.hf.thread(first, TOP)
    const begun =
      worker === undefined ? thread.run({ ...given, onPaused: 'queue' }) : thread.enqueue('0', { key: 'only' })
    begun.then(worker === undefined ? end : () => {}, (error: { readonly code?: string }) => {
      if (!['fenced', 'unavailable'].includes(error.code ?? ''))
        this.#violations.push(`A caller was told: ${String(error)}`)
      end()
    })
    for (let i = 0; i < PATIENCE && !isOver && process.state === 'alive'; i++) {
      await this.#clock.advance(STEP_MS)
      if (worker && i >= 8 && worker.active === 0) break
    }
    if (process.state === 'alive' && worker) await this.#finish(process, worker.stop())
    else if (!isOver && process.state === 'alive')
      this.#violations.push(`A call never ends: ${JSON.stringify(outcome)}`)
    if (process.state !== 'alive') await this.#clock.advance(LEASE_MS + 1)
  }

  async #finish(process: Mortal, ending: Promise<void>): Promise<void> {
    let isOver = false
    void ending.finally(() => (isOver = true))
    while (!isOver && process.state === 'alive') await this.#clock.advance(STEP_MS)
  }

  /** Does what the members wait for: answers, signals, time. */
  async #help(): Promise<void> {
    for (const { thread, waiting } of await this.#threads()) {
      const view = this.#observer.inspect(thread)
      for (const { id, kind, question } of await view.pauses()) {
        const key = (question as { readonly idempotencyKey?: string }).idempotencyKey ?? ''
        const found = this.#paid.get(key)
        const told = found === undefined ? { outcome: 'not-executed' } : { outcome: 'succeeded', result: found }
        await view.answer(id, kind === 'unknown-effect' ? told : 'yes').catch((error: { readonly code?: string }) => {
          if (error.code !== 'pause-closed') throw error
        })
      }
      for (const wait of waiting) if (wait.kind === 'signal') await view.signal(wait.name, 'go', { key: wait.name })
    }
    await this.#clock.advance(SLEEP_MS)
  }

  async #isOver(): Promise<boolean> {
    const { threads } = await this.#observer.threads()
    const ends = ['completed', 'failed']
    return threads.length > 0 && threads.every(({ status, wakeAt }) => ends.includes(status) && wakeAt === null)
  }

  async #threads() {
    const { threads } = await this.#observer.threads()
    const found = threads.map(async ({ thread }) => {
      const { seq, state } = (await this.#observer.log(thread)).fold
      const { run, inputs = [], children, errands, parked } = state as RunState
      return {
        thread,
        seq,
        run: run?.status,
        waiting: run?.waiting ?? [],
        inputs: inputs.length,
        children,
        errands,
        parked,
      }
    })
    return Promise.all(found)
  }

  async #judge(): Promise<void> {
    const { top } = this.#history
    for (const { thread, inputs, children, errands, parked } of await this.#threads()) {
      if (inputs === 0 && children === undefined && errands === undefined && parked === undefined) continue
      this.#violations.push(`${String(thread)} still has ${JSON.stringify({ inputs, children, errands, parked })}`)
    }
    for (const [path, count] of this.#counts) if (count > 1) this.#violations.push(`${path} paid ${count} times`)
    const outcome = await this.#observer.inspect(TOP).waitFor({ timeoutMs: 0 })
    if (outcome.status === 'failed' && this.#isCancelled) return
    const output = outcome.status === 'completed' ? outcome.output : outcome
    const expected = expectedOf(top, '0')
    if (JSON.stringify(output) !== JSON.stringify(expected))
      this.#violations.push(`It ends as ${JSON.stringify(output)}`)
    for (const path of pathsOf(top, '0')) {
      if (memberAt(top, path).pays !== 'read' && !this.#counts.has(path)) this.#violations.push(`${path} never paid`)
    }
  }

  #onMoment(process: Mortal): void {
    this.#moments++
    while ((this.#blows[0]?.at ?? Number.POSITIVE_INFINITY) <= this.#moments) {
      const { kind } = this.#blows[0] as FamilyHistory['blows'][number]
      this.#blows = this.#blows.slice(1)
      if (kind === 'kill') process.kill()
      if (kind === 'freeze') process.freeze()
      if (kind === 'lose') process.loses = this.#moments % 2 === 0 ? 'before' : 'after'
      if (kind === 'cancel') this.#cancelling = this.#cancelling.then(() => this.#cancel())
    }
  }

  async #cancel(): Promise<void> {
    if (!(await this.#observer.log(TOP)).exists) return
    this.#isCancelled = true
    await this.#observer.inspect(TOP).cancel()
  }

  /** One program per generation. */
  #programs(process: Mortal) {
    const run = async (ctx: Context, path: string): Promise<unknown> => {
      const { waits, pays, children, sideBySide } = memberAt(this.#history.top, path)
      if (waits === 'answer') await ctx.pause(`may ${path} pay?`)
      if (waits === 'signal') await ctx.receive(`go ${path}`)
      if (waits === 'time') await ctx.sleep(SLEEP_MS)
      const policy = { effect: pays, reconcile: async (key: string) => this.#reconcile(process, key) }
      const paid = await ctx.step('pay', policy, ({ idempotencyKey }) =>
        this.#pay(process, `${ctx.thread as string}`, path, pays, idempotencyKey),
      )
      const below = programs[path.split('.').length] as (typeof programs)[number]
      const begin = (child: Member, i: number) => {
        const thread = `shared-${path.split('.').length}`
        return ctx.run(below, `c${i}`, `${path}.${i}`, child.shared ? { thread, busy: 'queue' } : {})
      }
      if (sideBySide) return [paid, await Promise.all(children.map(begin))]
      const ended: unknown[] = []
      for (const [i, child] of children.entries()) ended.push(await begin(child, i))
      return [paid, ended]
    }
    const programs = ['first', 'second', 'third'].map((name) => flow<string, unknown>({ name, version: '1.0.0' }, run))
    return programs
  }

  async #pay(process: Mortal, thread: string, path: string, effect: Effect, key: string): Promise<string> {
    if (effect !== 'read' && this.#isOvertaken(process, thread)) {
      this.#violations.push(`${path} starts on ${process.name}, though another has its thread`)
    }
    await process.moment()
    // Nothing can call back what a process that stood still in the middle of a call is about to send.
    if (effect !== 'read' && this.#isOvertaken(process, thread)) await new Promise(() => {})
    // Anybody may read again, also one that was overtaken while it read.
    const counts = effect !== 'read' && !(effect === 'idempotent' && this.#paid.has(key))
    if (counts) this.#counts.set(path, (this.#counts.get(path) ?? 0) + 1)
    this.#paid.set(key, `paid ${path}`)
    await process.moment()
    return `paid ${path}`
  }

  async #reconcile(process: Mortal, key: string) {
    await process.moment()
    const result = this.#paid.get(key)
    return result === undefined ? ({ outcome: 'not-executed' } as const) : ({ outcome: 'executed', result } as const)
  }

  #isOvertaken(process: Mortal, thread: string): boolean {
    const { landings } = this.#universe
    const claim = landings.findLast((landing) => landing.thread === thread && landing.lease === 'claim')
    return process.stale && claim?.process !== process.name
  }
}

const SLEEP_MS = 20_000

function hasEnded(status: string): boolean {
  return status === 'completed' || status === 'cancelled'
}

function memberAt(top: Member, path: string): Member {
  return path
    .split('.')
    .slice(1)
    .reduce((at, i) => at.children[Number(i)] as Member, top)
}

function pathsOf({ children }: Member, path: string): readonly string[] {
  return [path, ...children.flatMap((child, i) => pathsOf(child, `${path}.${i}`))]
}

function expectedOf({ children }: Member, path: string): unknown {
  return [`paid ${path}`, children.map((child, i) => expectedOf(child, `${path}.${i}`))]
}
