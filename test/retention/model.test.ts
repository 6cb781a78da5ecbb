import fc from 'fast-check'
import { append, END, graph, Holdfast, START } from 'holdfast'
import { type Clock, type Driver, openDriver, systemClock } from 'holdfast/driver'
import { LogStore, type TenantId } from 'holdfast/log'
import { afterAll, describe, expect, it } from 'vitest'
import type { Archive } from '#src/archive/archive.js'
import { parsePlaces } from '#src/archive/attach.js'
import type { ArchivePlace } from 'holdfast/data'
import { everyBackend } from '../support/every-backend.js'
import { randomly, rounds } from '../support/scale.js'

const DAY = 24 * 60 * 60 * 1000
const TTL = 3 * DAY
const LAST = 4
const LARGE = 70_000

/** What a thread is told to do: reply, or reply after a question. Every third thing that is said is a large value. */
const talk = graph({ name: 'talk', version: '1.0.0', state: { said: append<string>() } })
  .node('reply', async ({ said }, ctx) => {
    if (said.at(-1)?.startsWith('ask')) await ctx.pause('go on?')
    return { said: `reply ${said.length}` }
  })
  .edge(START, 'reply')
  .edge('reply', END)

type Step =
  | { readonly do: 'run'; readonly thread: number; readonly way: 'reply' | 'ask' | 'large' }
  | { readonly do: 'answer' | 'enqueue' | 'untag' | 'prune'; readonly thread: number }
  | { readonly do: 'fork' | 'tag'; readonly thread: number; readonly at: number }
  | { readonly do: 'archive' | 'restore' | 'archive past'; readonly thread: number }
  | { readonly do: 'wait'; readonly days: number }
  | { readonly do: 'sweep' }

const thread = fc.nat(2)
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('run' as const),
        thread,
        way: fc.constantFrom('reply' as const, 'ask' as const, 'large' as const),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constantFrom('answer' as const, 'untag' as const, 'prune' as const), thread }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('enqueue' as const), thread }) },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constantFrom('archive' as const, 'restore' as const, 'archive past' as const),
        thread,
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ do: fc.constantFrom('fork' as const, 'tag' as const), thread, at: fc.nat(9) }),
    },
    { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), days: fc.integer({ min: 1, max: 4 }) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('sweep' as const) }) },
  ),
  { minLength: 12, maxLength: 30 },
)

interface Branch {
  lastUse: number
  open: boolean
  /** Tags and the checkpoints that they mark. */
  readonly tags: Map<string, string>
  /** What each checkpoint said when it was new. */
  readonly states: Map<string, string>
  /** Checkpoints that left the store for the archive. */
  readonly past: Set<string>
}

/** Branches of a thread. A name that is used again after its thread went is another life. */
interface Life {
  readonly number: number
  readonly branches: Map<string, Branch>
}

/** An archive in memory: what is archived is the matter here, not where. */
function placeInMemory(): ArchivePlace & { readonly files: Map<string, Uint8Array> } {
  const files = new Map<string, Uint8Array>()
  return {
    files,
    description: 'memory',
    put: async (name, bytes) => void files.set(name, bytes),
    get: async (name) => files.get(name),
    remove: async (name) => void files.delete(name),
    async *list(prefix) {
      for (const [name, { length }] of [...files]) if (name.startsWith(prefix)) yield { name, size: length, at: 0 }
    },
  }
}

/** Real time, of which days can be left out: expiry sees the gap, leases don't. */
function shiftedClock(): Clock & { skip(ms: number): void } {
  const system = systemClock()
  let skipped = 0
  return {
    bootId: system.bootId,
    now: () => system.now() + skipped,
    monotonic: () => system.monotonic(),
    sleep: (ms, signal) => system.sleep(ms, signal),
    skip: (ms) => {
      skipped += ms
    },
  }
}

class World {
  readonly hf: Holdfast
  readonly clock = shiftedClock()
  readonly threads = new Map<string, Map<string, Branch>>()
  /** As each thread was when it was archived last. */
  readonly archived = new Map<string, Life>()
  readonly place = placeInMemory()
  readonly #lives = new Map<string, number>()
  readonly #archives: boolean
  #forks = 0
  #begun = 0

  /** `archives`: the policy archives what it removes. */
  constructor(backend: Driver, tenant: string, archives: boolean) {
    const retention = { ttlMs: TTL, keepLast: LAST, archive: archives }
    const options = { clock: this.clock, retention }
    const { driver, archive } = parsePlaces({ archive: this.place })(backend, () => this.clock.now())
    const parts = {
      archive: archive as Archive,
      driver,
      openMemory: () => openDriver('memory:'),
      view: (memory: Driver) => new Holdfast(new LogStore(memory, options)),
    }
    this.#archives = archives
    this.hf = new Holdfast(new LogStore(driver, options), undefined, undefined, { archive: parts }).tenant(tenant)
  }

  #lifeOf(id: string): Life {
    const number = this.#lives.get(id) ?? 0
    return structuredClone({ number, branches: this.threads.get(id) as Map<string, Branch> })
  }

  async do(step: Step): Promise<void> {
    if (step.do === 'wait') return this.clock.skip(step.days * DAY)
    if (step.do === 'sweep') return this.sweep()
    const id = `t${step.thread}`
    // Forks are run like the branch that they came from: the newest one is the one that is used.
    const name = [...(this.threads.get(id)?.keys() ?? ['main'])].at(-1) as string
    const branch = this.threads.get(id)?.get(name)
    const handle = this.hf.thread(talk, id, { branch: name })
    switch (step.do) {
      case 'run': {
        if (branch?.open) return
        const input = { said: step.way === 'large' ? 'large'.padEnd(LARGE, id) : step.way }
        const { status } = await handle.run({ input })
        await this.#note(id, name, status === 'paused')
        return
      }
      case 'answer': {
        const [pause] = branch ? await handle.pauses() : []
        if (!pause) return
        await handle.answer(pause.id, true)
        expect((await handle.run()).status).toBe('completed')
        return this.#note(id, name, false)
      }
      case 'enqueue':
        if (!branch || branch.open) return
        await handle.enqueue({ said: 'queued' })
        return this.#note(id, name, true)
      case 'prune': {
        const history = branch ? await handle.history({ limit: 100 }) : []
        const [first] = history.slice(0, 2).reverse()
        if (!first) return
        await this.hf.prune(id, first.seq, { branch: name })
        const kept = new Set((await handle.history({ limit: 100 })).map((one) => one.id))
        // Gone for good, unless it was archived before.
        for (const { id: old } of history) if (!kept.has(old) && !branch?.past.has(old)) branch?.states.delete(old)
        return
      }
      case 'archive past': {
        const history = branch ? await handle.history({ limit: 100 }) : []
        const [first] = history.slice(0, 2).reverse()
        if (!first || !branch) return
        await this.hf.archive.prune(id, first.seq, { branch: name })
        await this.#noteArchived(id, name, history)
        return
      }
      case 'archive': {
        if (!branch) return
        const life = this.#lifeOf(id)
        await this.hf.archive.store(id)
        this.archived.set(id, life)
        this.threads.delete(id)
        expect((await this.hf.tombstone(id))?.reason).toBe('archived')
        return
      }
      case 'restore': {
        const life = this.archived.get(id)
        if (!life) return
        if (branch) return void (await expect(this.hf.archive.restore(id)).rejects.toMatchObject({ code: 'conflict' }))
        await this.hf.archive.restore(id)
        this.#lives.set(id, life.number)
        this.threads.set(id, structuredClone(life.branches))
        return this.check()
      }
      case 'fork':
      case 'tag': {
        const history = branch ? await handle.history({ limit: 100 }) : []
        const chosen = history[step.at % Math.max(1, history.length)]
        if (!chosen || !branch) return
        if (step.do === 'tag') {
          await (await this.hf.log(id, { branch: name })).tag(`tag ${step.at}`, chosen.seq)
          branch.tags.set(`tag ${step.at}`, chosen.id)
          branch.lastUse = this.clock.now()
          return
        }
        const fork = await handle.at(chosen.id).fork({ name: `fork-${this.#forks++}` })
        return this.#note(id, fork.branch, (await fork.pauses()).length > 0)
      }
      case 'untag': {
        const [tag] = branch?.tags.keys() ?? []
        if (tag === undefined || !branch) return
        await (await this.hf.log(id, { branch: name })).untag(tag)
        branch.tags.delete(tag)
        branch.lastUse = this.clock.now()
      }
    }
  }

  /** What is new on a branch, as it was when it was new. */
  async #note(id: string, name: string, open: boolean): Promise<void> {
    const branches = this.threads.get(id) ?? new Map<string, Branch>()
    if (!this.threads.has(id)) this.#lives.set(id, ++this.#begun)
    this.threads.set(id, branches)
    const branch = branches.get(name) ?? { lastUse: 0, open, tags: new Map(), states: new Map(), past: new Set() }
    branches.set(name, branch)
    Object.assign(branch, { lastUse: this.clock.now(), open })
    const view = this.hf.inspect(id, { branch: name })
    for (const { id: checkpoint } of await view.history({ limit: 100 })) {
      if (branch.states.has(checkpoint)) break
      branch.states.set(checkpoint, JSON.stringify(await view.look(checkpoint).state()))
    }
  }

  /** What is no longer among the checkpoints that a branch keeps lies in the archive. */
  async #noteArchived(id: string, name: string, before: readonly { readonly id: string }[]): Promise<void> {
    const kept = new Set((await this.hf.inspect(id, { branch: name }).history({ limit: 100 })).map((one) => one.id))
    const branch = this.threads.get(id)?.get(name)
    for (const { id: checkpoint } of before) if (!kept.has(checkpoint)) branch?.past.add(checkpoint)
  }

  async sweep(): Promise<void> {
    const now = this.clock.now()
    const expired = [...this.threads].filter(([, branches]) =>
      [...branches.values()].every(({ open, tags, lastUse }) => !open && tags.size === 0 && lastUse + TTL <= now),
    )
    const kept = new Map<string, readonly string[]>()
    for (const [id, branches] of this.threads) {
      for (const [name, { tags }] of branches) {
        const history = await this.hf.inspect(id, { branch: name }).history({ limit: 100 })
        const marked = [...tags.values()].map((tag) => history.findIndex((one) => one.id === tag) + 1)
        kept.set(
          `${id} ${name}`,
          history.slice(0, Math.max(LAST, ...marked)).map((one) => one.id),
        )
      }
    }
    const lives = new Map<string, Life>()
    if (this.#archives) for (const id of this.threads.keys()) lives.set(id, this.#lifeOf(id))
    const swept = await this.hf.sweep({ graceMs: -1e12 })
    expect(swept.threads).toBe(expired.length)
    expect(swept.archived).toBe(this.#archives ? swept.threads + swept.cut : 0)
    for (const [id, branches] of expired) {
      this.threads.delete(id)
      for (const name of branches.keys()) kept.delete(`${id} ${name}`)
      expect((await this.hf.tombstone(id))?.reason).toBe(this.#archives ? 'expired, and archived' : 'expired')
      const life = lives.get(id)
      if (life) this.archived.set(id, life)
    }
    if (this.#archives)
      for (const [id, branches] of this.threads)
        for (const [name, { states }] of branches)
          await this.#noteArchived(
            id,
            name,
            [...states.keys()].map((one) => ({ id: one })),
          )
    const { threads } = await this.hf.threads({ limit: 100 })
    expect(threads.map((one) => `${String(one.thread)} ${one.branch}`).sort()).toEqual([...kept.keys()].sort())
    for (const { thread: id, branch } of threads) {
      const view = this.hf.inspect(id, { branch })
      expect((await view.history({ limit: 100 })).map((one) => one.id)).toEqual(kept.get(`${String(id)} ${branch}`))
    }
    await this.check()
  }

  /** Everything that is kept loads, as it was when it was new, and verifies. */
  async check(): Promise<void> {
    for (const [id, branches] of this.threads) {
      for (const [name, { states, past }] of branches) {
        expect((await this.hf.verify(id, { branch: name }))?.problems).toEqual([])
        const view = this.hf.inspect(id, { branch: name })
        for (const { id: checkpoint } of await view.history({ limit: 100 })) {
          const known = states.get(checkpoint)
          if (known !== undefined) expect(JSON.stringify(await view.look(checkpoint).state())).toBe(known)
        }
        for (const checkpoint of past)
          expect(JSON.stringify(await view.look(checkpoint).state())).toBe(states.get(checkpoint))
      }
    }
    expect(await this.hf.collectBlobs({ graceMs: -1e12 })).toMatchObject({ removed: expect.any(Number) })
  }
}

const backends = await everyBackend()
let tenants = 0

describe.each(backends)('retention on $name', ({ name, missing, fresh, cleanup }) => {
  const drivers: Driver[] = []
  afterAll(async () => {
    for (const driver of drivers) await driver.close()
    await cleanup()
  })

  it.skipIf(missing)(
    'keeps exactly what the policy keeps after any history, and gives back the room of the rest',
    async () => {
      const driver = await openDriver(await fresh())
      drivers.push(driver)
      await fc.assert(
        fc.asyncProperty(steps, fc.boolean(), async (history, archives) => {
          const tenant = `t${tenants++}` as TenantId
          const world = new World(driver, tenant, archives)
          for (const step of history) await world.do(step)
          await world.sweep()
          // Nothing is open any more, and nothing is tagged: then nothing stays, not a byte of it.
          for (const [id, branches] of world.threads) {
            for (const [branch, { tags }] of branches) {
              const log = await world.hf.log(id, { branch })
              for (const tag of tags.keys()) await log.untag(tag)
              tags.clear()
              const handle = world.hf.thread(talk, id, { branch })
              for (let status = 'paused'; status === 'paused'; ) {
                for (const pause of await handle.pauses()) await handle.answer(pause.id, true)
                ;({ status } = await handle.run())
              }
              Object.assign(branches.get(branch) as Branch, { open: false, lastUse: world.clock.now() })
            }
          }
          world.clock.skip(10 * DAY)
          await world.sweep()
          expect(world.threads.size).toBe(0)
          expect((await driver.heads({ tenant, limit: 10 })).heads).toEqual([])
          expect(await driver.listBlobs(tenant, { limit: 10 })).toEqual([])
          // What was archived is whole, and erasing it leaves nothing of it there either.
          for (const id of world.archived.keys()) {
            await world.do({ do: 'restore', thread: Number(id.slice(1)) })
            await world.hf.erase(id)
            world.threads.delete(id)
          }
          for (const id of ['t0', 't1', 't2']) await world.hf.erase(id)
          expect([...world.place.files.keys()]).toEqual([])
          await world.hf.collectBlobs({ graceMs: -1e12 })
          expect(await driver.listBlobs(tenant, { limit: 10 })).toEqual([])
        }),
        randomly(name === 'memory' ? rounds(10) : rounds(2)),
      )
    },
    240_000,
  )
})
