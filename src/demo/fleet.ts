import { type Child, startChild } from './child.js'
import type { Dice } from './dice.js'
import type { FromWorker, Reply, ToWorker, WorkerSettings } from './shop/messages.js'

/** A worker that lives. */
export interface FleetWorker {
  readonly name: string
  readonly pid: number
  readonly startedAt: number
  /** It has opened the store and looks for work. */
  readonly ready: boolean
  /** Conversations that it holds, as far as it said. */
  readonly holds: ReadonlySet<string>
}

export interface FleetEvents {
  held(thread: string, at: number): void
  ended(thread: string, status: string, reply: Reply | undefined): void
  /** A worker is no more, and held these. */
  killed(threads: readonly string[], at: number, worker: { readonly name: string; readonly pid: number }): void
  /** What went wrong in a worker, or with one. */
  trouble(message: string): void
}

interface Member {
  readonly name: string
  readonly startedAt: number
  readonly child: Child<ToWorker, FromWorker>
  readonly holds: Set<string>
  ready: boolean
}

/** A worker that ends by itself more often than this, over the whole day, is not replaced anymore. */
const MOST_FAILURES = 10

/** Worker processes, of which any may be killed and is replaced. */
export class Fleet {
  readonly #settings: Omit<WorkerSettings, 'name'>
  readonly #events: FleetEvents
  readonly #members: Member[] = []
  #started = 0
  #kills = 0
  #failures = 0
  #stopping = false

  constructor(settings: Omit<WorkerSettings, 'name'>, events: FleetEvents) {
    this.#settings = settings
    this.#events = events
  }

  get workers(): readonly FleetWorker[] {
    return this.#members.map(({ name, startedAt, ready, holds, child }) => ({
      name,
      startedAt,
      ready,
      holds,
      pid: child.pid,
    }))
  }

  /** Every worker is up and looks for work. */
  get whole(): boolean {
    return this.#members.every(({ ready }) => ready)
  }

  get kills(): number {
    return this.#kills
  }

  /** Starts so many workers and waits until they look for work. */
  async start(count: number): Promise<void> {
    const members = Array.from({ length: count }, () => this.#add())
    await Promise.all(members.map(({ child }) => child.next('ready')))
  }

  /** Kills one, chosen by the dice, and starts another in its place. */
  killOne(dice: Dice): void {
    const working = this.#members.filter(({ ready }) => ready)
    if (working.length === 0) return
    const victim = dice.pick(working)
    this.#remove(victim)
    this.#kills++
    const at = Date.now()
    victim.child.process.kill('SIGKILL')
    this.#add()
    // What it said before it died is still on its way: only then is it known what it held.
    void victim.child.ended.then(() => this.#events.killed([...victim.holds], at, describe(victim)))
  }

  /** Lets all of them finish what they do. */
  async stop(): Promise<void> {
    this.#stopping = true
    const leaving = this.#members.splice(0)
    for (const member of leaving) {
      if (member.ready) member.child.send({ type: 'stop' })
      else member.child.process.kill('SIGKILL')
    }
    await Promise.all(leaving.map(({ child }) => child.ended))
  }

  /** Ends all of them at once. */
  async abandon(): Promise<void> {
    this.#stopping = true
    const leaving = this.#members.splice(0)
    for (const { child } of leaving) child.process.kill('SIGKILL')
    await Promise.all(leaving.map(({ child }) => child.ended))
  }

  #add(): Member {
    const name = `worker-${++this.#started}`
    const holds = new Set<string>()
    const child = startChild<ToWorker, FromWorker>('./worker-process.js', { ...this.#settings, name }, (message) =>
      this.#hear(member, message),
    )
    const member: Member = { name, startedAt: Date.now(), child, holds, ready: false }
    this.#members.push(member)
    void child.ended.then(({ code, complaint }) => this.#noticeEnd(member, code, complaint))
    return member
  }

  #hear(member: Member, message: FromWorker): void {
    switch (message.type) {
      case 'ready':
        member.ready = true
        return
      case 'held':
        member.holds.add(message.thread)
        return this.#events.held(message.thread, message.at)
      case 'ended':
        member.holds.delete(message.thread)
        return this.#events.ended(message.thread, message.status, message.reply)
      case 'error':
        return this.#events.trouble(`${member.name}: ${message.message}`)
    }
  }

  // Nobody killed it: it failed. Its conversations are taken over all the same.
  #noticeEnd(member: Member, code: number | null, complaint: string): void {
    if (this.#stopping || !this.#members.includes(member)) return
    this.#remove(member)
    this.#failures++
    this.#events.trouble(`${member.name} ended by itself (${code}). ${complaint}`)
    this.#events.killed([...member.holds], Date.now(), describe(member))
    if (this.#failures <= MOST_FAILURES) this.#add()
  }

  #remove(member: Member): void {
    this.#members.splice(this.#members.indexOf(member), 1)
  }
}

function describe({ name, child }: Member): { readonly name: string; readonly pid: number } {
  return { name, pid: child.pid }
}
