import fc from 'fast-check'
import { append, END, graph, Holdfast, START } from 'holdfast'
import { type Clock, type Driver, openDriver, systemClock } from 'holdfast/driver'
import { LogStore, type TenantId } from 'holdfast/log'
import { afterAll, describe, expect, it } from 'vitest'
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
  #forks = 0

  constructor(driver: Driver, tenant: string) {
    const store = new LogStore(driver, { clock: this.clock, retention: { ttlMs: TTL, keepLast: LAST } })
    this.hf = new Holdfast(store).tenant(tenant)
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
        if (first) await this.hf.prune(id, first.seq, { branch: name })
        return
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
    this.threads.set(id, branches)
    const branch = branches.get(name) ?? { lastUse: 0, open, tags: new Map(), states: new Map() }
    branches.set(name, branch)
    Object.assign(branch, { lastUse: this.clock.now(), open })
    const view = this.hf.inspect(id, { branch: name })
    for (const { id: checkpoint } of await view.history({ limit: 100 })) {
      if (branch.states.has(checkpoint)) break
      branch.states.set(checkpoint, JSON.stringify(await view.look(checkpoint).state()))
    }
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
    const swept = await this.hf.sweep({ graceMs: -1e12 })
    expect(swept.threads).toBe(expired.length)
    for (const [id, branches] of expired) {
      this.threads.delete(id)
      for (const name of branches.keys()) kept.delete(`${id} ${name}`)
      expect((await this.hf.tombstone(id))?.reason).toBe('expired')
    }
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
      for (const [name, { states }] of branches) {
        expect((await this.hf.verify(id, { branch: name }))?.problems).toEqual([])
        const view = this.hf.inspect(id, { branch: name })
        for (const { id: checkpoint } of await view.history({ limit: 100 })) {
          const known = states.get(checkpoint)
          if (known !== undefined) expect(JSON.stringify(await view.look(checkpoint).state())).toBe(known)
        }
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
        fc.asyncProperty(steps, async (history) => {
          const tenant = `t${tenants++}` as TenantId
          const world = new World(driver, tenant)
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
          const swept = await world.hf.sweep({ graceMs: -1e12 })
          expect(swept.threads).toBe(world.threads.size)
          expect((await driver.heads({ tenant, limit: 10 })).heads).toEqual([])
          expect(await driver.listBlobs(tenant, { limit: 10 })).toEqual([])
        }),
        randomly(name === 'memory' ? rounds(12) : rounds(2)),
      )
    },
    240_000,
  )
})
