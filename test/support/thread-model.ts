import { isDeepStrictEqual } from 'node:util'
import { Holdfast, isHoldfastError, type OpenPause, type Outcome } from 'holdfast'
import type { Driver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { type MortalDriver, mortalDriver } from './mortal-driver.js'
import { type Seeded, seeded } from './seeded.js'
import { type Deed, MIGRATED, newProgram, oldProgram, type Payments } from './thread-world.js'

/** What one branch should look like, as plain as it can be said. */
interface Branch {
  readonly name: string
  readonly deeds: Deed[]
  /** What has come of the deeds that are done. */
  readonly log: string[]
  /** What was answered, by place. */
  readonly answers: Map<number, string>
  /** Payments that a person allowed. */
  readonly allowed: Set<number>
  /** Payments that happened on this very branch. */
  readonly paid: Set<number>
  readonly asksFirst: boolean
  readonly note: string
  inputs: number
}

/** The part of a fold that tells where in its script a checkpoint lies. */
interface Recorded {
  readonly state?: Readonly<Record<string, unknown>>
  readonly run?: { readonly number: number }
  readonly inputs?: readonly { readonly value?: { readonly script?: readonly Deed[] } }[]
  readonly steps?: Readonly<Record<string, { readonly status: string; readonly result?: unknown }>>
  readonly pauses?: Readonly<
    Record<string, { readonly question: unknown; readonly answer?: { readonly value: unknown } }>
  >
}

const THREAD = 'thread'
const DEEDS: readonly Deed[] = ['read', 'pay', 'ask', 'both']

/** Plays a random history of one thread against the model, and compares whenever the thread rests. */
export async function playHistory(seed: number, store: Driver, tenant: string, commands = 10): Promise<void> {
  await new Player(seed, store, tenant).play(commands)
}

class Player {
  readonly #random: Seeded
  readonly #store: Driver
  readonly #tenant: string
  readonly #payments: Payments = new Map()
  readonly #old = oldProgram(this.#payments)
  readonly #new = newProgram(this.#payments)
  readonly #branches: Branch[] = []
  #process: MortalDriver
  #hf: Holdfast
  #upgraded = false
  #ids = 0
  #keys = 0

  constructor(seed: number, store: Driver, tenant: string) {
    this.#random = seeded(seed)
    this.#store = store
    this.#tenant = tenant
    this.#process = mortalDriver(store)
    this.#hf = this.#start()
    this.#branches.push(newBranch('main', false))
  }

  async play(commands: number): Promise<void> {
    await this.#input(this.#branches[0] as Branch)
    for (let i = 0; i < commands; i++) {
      const branch = this.#random.pick(this.#branches)
      await this.#random.pick([
        () => this.#input(branch),
        () => this.#answer(branch),
        () => this.#answer(branch),
        () => this.#drive(branch, {}),
        () => this.#fork(branch),
        () => this.#upgrade(),
      ])()
    }
    // A fork never changes its parent, and no branch another: all are as the model says, also those left alone.
    for (const branch of this.#branches) await this.#compare(branch)
    const stranger = this.#hf.tenant(`${this.#tenant}-other`).thread(this.#old, THREAD)
    same(await stranger.state(), undefined, 'a thread of another tenant')
  }

  async #input(branch: Branch): Promise<void> {
    const script = Array.from({ length: 1 + this.#random.below(3) }, () => this.#random.pick(DEEDS))
    branch.deeds.push(...script)
    branch.inputs++
    await this.#drive(branch, { input: { script }, key: `key ${this.#keys++}`, onPaused: 'queue' })
  }

  /** Runs the thread, dies at random on the way, and goes on in new processes until it rests. */
  async #drive(branch: Branch, options: object): Promise<void> {
    if (this.#random.chance(0.5)) {
      this.#process.dieAt(1 + this.#random.below(14), this.#random.pick(['before', 'after']))
    }
    let outcome = await this.#alive(branch, () => this.#thread(branch.name).run(options as never))
    // An input that was taken before is answered from the record: whatever else waits is run now.
    outcome = await this.#alive(branch, () => this.#thread(branch.name).run({}))
    while (outcome.status === 'paused') {
      const effects = outcome.pauses.filter(({ kind }) => kind === 'unknown-effect' || kind === 'permission')
      if (effects.length === 0) break
      for (const pause of effects) await this.#decide(branch, pause)
      outcome = await this.#alive(branch, () => this.#thread(branch.name).run({}))
    }
    this.#process.spare()
    this.#advance(branch)
    await this.#compare(branch, outcome)
  }

  /** Says of an effect what is true, or whether it may happen. */
  async #decide(branch: Branch, { id, kind, question }: OpenPause): Promise<void> {
    const { input: at } = question as { readonly input: number }
    const happened = this.#payments.get(`${branch.name}:${at}`) === 1
    const allowed = this.#random.chance(0.5)
    const value =
      kind === 'unknown-effect'
        ? happened
          ? { outcome: 'succeeded', result: `paid ${at}` }
          : { outcome: 'not-executed' }
        : allowed
          ? { allowed }
          : { allowed, result: `instead of ${at}` }
    if (kind === 'permission') {
      if (!branch.asksFirst) throw new Error(`Permission was asked for on ${branch.name}.`)
      if (allowed) branch.allowed.add(at)
      else branch.answers.set(at, `instead of ${at}`)
    }
    await this.#tell(branch, id, value)
  }

  async #answer(branch: Branch): Promise<void> {
    const pauses = await this.#hf.tenant(this.#tenant).inspect(THREAD, { branch: branch.name }).pauses()
    const pause = pauses.find(({ kind }) => kind === 'question')
    if (pause === undefined) return
    const { at } = pause.question as { readonly at: number }
    const value = this.#keys++
    branch.answers.set(at, `told ${value}`)
    if (this.#random.chance(0.3)) this.#process.dieAt(1 + this.#random.below(4), this.#random.pick(['before', 'after']))
    await this.#tell(branch, pause.id, value)
    this.#process.spare()
    const second = await this.#hf
      .tenant(this.#tenant)
      .inspect(THREAD, { branch: branch.name })
      .answer(pause.id, 'too late')
      .then(
        () => 'taken',
        (error: unknown) => (isHoldfastError(error, 'pause-closed') ? 'closed' : error),
      )
    same(second, 'closed', 'a second answer')
  }

  /** Answers, over deaths: the one answer that counts is the first. */
  async #tell(branch: Branch, pause: string, value: unknown): Promise<void> {
    let tries = 0
    await this.#alive(branch, async () => {
      try {
        tries++
        await this.#hf.tenant(this.#tenant).inspect(THREAD, { branch: branch.name }).answer(pause, value)
      } catch (error) {
        // The process died after the store had taken it.
        if (tries === 1 || !isHoldfastError(error, 'pause-closed')) throw error
      }
    })
  }

  async #fork(parent: Branch): Promise<void> {
    const thread = this.#thread(parent.name)
    const past = await thread.history({ limit: 1000 })
    const { id } = this.#random.pick(past)
    const fold = (await thread.at(id).fold()).state as Recorded
    const log = logOf(fold.state)
    const inputs = (fold.run?.number ?? 0) + (fold.inputs?.length ?? 0)
    const waiting = (fold.inputs ?? []).flatMap(({ value }) => value?.script ?? [])
    const deeds = [...((fold.state?.['script'] ?? []) as readonly Deed[]), ...waiting]
    same(log, parent.log.slice(0, log.length), `the past of ${parent.name} at ${id}`)
    same(deeds, parent.deeds.slice(0, deeds.length), `the inputs of ${parent.name} at ${id}`)
    const effects = this.#random.pick(['ask', 'allow'] as const)
    const note = this.#random.chance(0.5)
      ? `note ${this.#keys++}`
      : ((fold.state?.['note'] as string | undefined) ?? '')
    const fork = newBranch(`b${this.#branches.length}`, effects === 'ask', note)
    fork.deeds.push(...deeds)
    fork.log.push(...log)
    fork.inputs = inputs
    for (const { question, answer } of Object.values(fold.pauses ?? {})) {
      const { at } = question as { readonly at?: number }
      if (answer !== undefined && at !== undefined) fork.answers.set(at, `told ${String(answer.value)}`)
    }
    const done = Object.entries(fold.steps ?? {}).find(
      ([path, { status }]) => path.endsWith('/pay') && status === 'done',
    )
    const inherited = done ? { at: log.length, result: String(done[1].result) } : undefined
    if (inherited) fork.answers.set(inherited.at, inherited.result)
    const before = await thread.history({ limit: 1000 })
    // Before its first run the state has no keys to set: the note comes with the program.
    const edit = note === '' ? {} : { set: { note } }
    await thread.at(id).fork({ name: fork.name, effects, ...edit } as never)
    same(await thread.history({ limit: 1000 }), before, `the history of ${parent.name}`)
    this.#branches.push(fork)
    if (this.#random.chance(0.7) && deeds.length > 0) await this.#drive(fork, {})
  }

  async #upgrade(): Promise<void> {
    this.#upgraded ||= this.#random.chance(0.5)
  }

  /** What the model makes of its deeds: each in turn, up to a question without an answer. */
  #advance(branch: Branch): void {
    const { deeds, log, answers, allowed, asksFirst, paid } = branch
    for (let at = log.length; at < deeds.length; at++) {
      const deed = deeds[at] as Deed
      const answer = answers.get(at)
      if (deed === 'ask' && answer === undefined) return
      if (deed === 'pay' && answer === undefined) {
        if (asksFirst && !allowed.has(at)) throw new Error(`${branch.name} may not pay at ${at} before it has asked.`)
        paid.add(at)
      }
      log.push(answer ?? { read: `read ${at}`, pay: `paid ${at}`, both: `ab ${at}`, ask: '' }[deed])
    }
  }

  async #compare(branch: Branch, outcome?: Outcome<unknown, unknown>): Promise<void> {
    const { name, log, deeds, paid } = branch
    const state = (await this.#thread(name).state()) as Readonly<Record<string, unknown>> | undefined
    same(logOf(state), log, `the log of ${name}`)
    if (outcome) {
      same(outcome.status, log.length < deeds.length ? 'paused' : 'completed', `the status of ${name}`)
      same(state?.['at'], log.length, `the count of ${name}`)
      same(state?.['note'], branch.note, `the note of ${name}`)
    }
    const marks = ((state?.['journal'] ?? []) as readonly string[]).filter((line) => line === MIGRATED)
    if (marks.length > 1) throw new Error(`The state of ${name} was migrated ${marks.length} times.`)
    const happened = [...this.#payments].filter(([place]) => place.startsWith(`${name}:`))
    same(happened.toSorted(), [...paid].map((at) => [`${name}:${at}`, 1]).toSorted(), `the payments of ${name}`)
  }

  /** Does something; when the process dies over it, another one takes the thread over and does it again. */
  async #alive<Result>(branch: Branch, what: () => Promise<Result>): Promise<Result> {
    for (;;) {
      const done = what().then((result) => ({ result }))
      // Of a dead process nothing is heard any more.
      done.catch(() => {})
      const ended = await Promise.race([done, this.#process.died])
      if (ended !== 'died') return ended.result
      this.#process = mortalDriver(this.#store)
      this.#hf = this.#start()
      await this.#takeOver(branch)
      if (this.#random.chance(0.2)) await this.#upgrade()
      if (this.#random.chance(0.3)) this.#process.dieAt(1 + this.#random.below(14), 'after')
    }
  }

  /** What time does when a lease runs out. */
  async #takeOver({ name }: Branch): Promise<void> {
    const log = await this.#hf.tenant(this.#tenant).log(THREAD, { branch: name })
    if (!log.exists) return
    const claim = await log.claim({ owner: 'next', ms: 60_000, force: true })
    await claim.release()
  }

  #start(): Holdfast {
    const random = this.#random
    const randomId = () => `${(this.#ids++).toString(36)}-${random.below(2 ** 31).toString(36)}`
    return new Holdfast(new LogStore(this.#process.driver, { clock: virtualClock(), randomId }))
  }

  #thread(branch: string) {
    const program = this.#upgraded ? this.#new : this.#old
    return this.#hf.tenant(this.#tenant).thread(program as ReturnType<typeof oldProgram>, THREAD, { branch })
  }
}

function newBranch(name: string, asksFirst: boolean, note = ''): Branch {
  return {
    name,
    deeds: [],
    log: [],
    answers: new Map(),
    allowed: new Set(),
    paid: new Set(),
    asksFirst,
    note,
    inputs: 0,
  }
}

/** What the thread wrote down, whatever its version. */
function logOf(state: Readonly<Record<string, unknown>> | undefined): readonly string[] {
  return ((state?.['journal'] ?? state?.['log'] ?? []) as readonly string[]).filter((line) => line !== MIGRATED)
}

function same(found: unknown, expected: unknown, what: string): void {
  if (isDeepStrictEqual(found, expected)) return
  throw new Error(`${what} is ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`)
}
