import fc from 'fast-check'
import { type Context, flow, type FlowProgram, Holdfast, openHoldfast } from 'holdfast'
import { openDriver, systemClock } from 'holdfast/driver'
import { LogStore, ops } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { describe, expect, it } from 'vitest'
import { mortalDriver } from '../../support/mortal-driver.js'
import { randomly, rounds } from '../../support/scale.js'

const { remove } = ops

const turns = async (count: number) => {
  for (let i = 0; i < count; i++) await Promise.resolve()
}

const NAMED = { name: 'waits', version: '1.0.0' }
const DAY = 24 * 60 * 60 * 1000

type Kind = 'pause' | 'receive' | 'sleep'

/** Waits without a key. */
const wait = (ctx: Context, kind: Kind): Promise<unknown> => {
  if (kind === 'pause') return ctx.pause('well?')
  return kind === 'receive' ? ctx.receive('news') : ctx.sleep(DAY)
}

const needsKey = { status: 'failed', error: { code: 'invalid-program', message: expect.stringContaining('key') } }

describe.each<Kind>(['pause', 'receive', 'sleep'])('unkeyed waits of kind %s', (kind) => {
  /** Runs to its end, doing what it waits for. */
  async function complete(body: (ctx: Context) => Promise<unknown>): Promise<unknown> {
    let skipped = 0
    const clock = { ...systemClock(), now: () => Date.now() + skipped }
    await using hf = new Holdfast(new LogStore(await openMemory(), { clock }))
    const thread = hf.thread(
      flow<number, unknown>(NAMED, (ctx) => body(ctx)),
      't',
    )
    let outcome = await thread.run({ input: 1 })
    for (let said = 0; outcome.status === 'paused' && said < 20; said++) {
      const [pause] = outcome.pauses
      if (pause) await thread.answer(pause.id, said)
      else if (kind === 'receive') await thread.signal('news', said)
      else skipped += DAY + 1
      outcome = await thread.run()
    }
    return outcome.status === 'failed' ? outcome.error : outcome.status
  }

  const sequences: Record<string, (ctx: Context) => Promise<unknown>> = {
    'in a loop': async (ctx) => {
      for (let i = 0; i < 3; i++) await wait(ctx, kind)
    },
    'in a function of its own, behind a step': async (ctx) => {
      const one = async (key: number) => {
        await ctx.step('before', { key }, () => key)
        return wait(ctx, kind)
      }
      for (let i = 0; i < 3; i++) await one(i)
    },
    'in a function of its own, behind other code': async (ctx) => {
      const one = async () => {
        await new Promise(setImmediate)
        return wait(ctx, kind)
      }
      for (let i = 0; i < 3; i++) await one()
    },
    'beside steps that run in parallel': async (ctx) => {
      const beside = Promise.all([1, 2, 3].map((key) => ctx.step('beside', { key }, () => turns(key * 10))))
      for (let i = 0; i < 3; i++) {
        await wait(ctx, kind)
        await ctx.step('handle', { key: i }, () => i)
      }
      await beside
    },
    'between and after fan-outs': async (ctx) => {
      const fan = (round: number) =>
        Promise.all([1, 2].map((key) => ctx.step('fan', { key: `${round} ${key}` }, () => key)))
      const one = async (key: number) => {
        await ctx.step('before', { key }, () => key)
        return wait(ctx, kind)
      }
      for (let i = 0; i < 3; i++) {
        await fan(i)
        await one(i)
      }
    },
    'called in one go': async (ctx) => {
      await Promise.all([wait(ctx, kind), wait(ctx, kind), wait(ctx, kind)])
    },
  }
  for (const [name, body] of Object.entries(sequences)) {
    it(`go on ${name}`, async () => {
      expect(await complete(body)).toBe('completed')
    })
  }

  const branches: Record<string, (ctx: Context, branch: string) => Promise<unknown>> = {
    'behind a step each': async (ctx, branch) => {
      await ctx.step(branch, () => branch)
      return wait(ctx, kind)
    },
    'behind other code': async (ctx, branch) => {
      await turns(branch === 'a' ? 3 : 5)
      return wait(ctx, kind)
    },
    'again and again': async (ctx) => {
      await wait(ctx, kind)
      return wait(ctx, kind)
    },
  }
  for (const [name, body] of Object.entries(branches)) {
    it(`are refused in parallel branches, ${name}, with the advice to pass a key`, async () => {
      const error = await complete((ctx) => Promise.all(['a', 'b'].map((branch) => body(ctx, branch))))
      expect(error).toMatchObject(needsKey.error)
    })
  }
})

describe('a wait without a key in one of two branches', () => {
  const landed = (names: readonly string[], seen: [string, unknown][], late = false) =>
    flow<string, unknown>(NAMED, async (ctx, input) => {
      if (input === 'begin') return 'begun'
      return Promise.all(
        names.map(async (name) => {
          await ctx.step(name, () => name)
          // The first time one comes late, and never meets the other.
          if (late && name === 'b') await new Promise(() => {})
          seen.push([name, await ctx.receive('news')])
        }),
      )
    })

  it('never gets what another branch received before a crash', async () => {
    const store = await openMemory()
    const mortal = mortalDriver(store)
    const seen: [string, unknown][] = []
    const first = new Holdfast(new LogStore(mortal.driver))
    await first.thread(landed(['b', 'a'], seen), 't').run({ input: 'begin' })
    await first.inspect('t').signal('news', 'for a')
    // Both steps are recorded, a has its signal, b has not come to it: then the process is gone.
    void first.thread(landed(['b', 'a'], seen, true), 't').run({ input: 'go' })
    while (seen.length === 0) await new Promise(setImmediate)
    expect(seen).toEqual([['a', 'for a']])
    mortal.dieAt(1, 'before')
    const second = new Holdfast(new LogStore(store))
    const log = await second.log('t')
    await (await log.claim({ owner: 'next', ms: 1000, force: true })).release()
    const outcome = await second.thread(landed(['b', 'a'], seen), 't').run()
    expect(outcome).toMatchObject(needsKey)
    expect(seen.filter(([name]) => name === 'b')).toEqual([])
    await second.close()
  })

  it('stays refused when the run is resumed, in whatever order they come', async () => {
    await using hf = await openHoldfast('memory:')
    const seen: [string, unknown][] = []
    await hf.thread(landed(['a', 'b'], seen), 't').run({ input: 'begin' })
    await hf.inspect('t').signal('news', 'one')
    await hf.inspect('t').signal('news', 'two')
    expect(await hf.thread(landed(['a', 'b'], seen), 't').run({ input: 'go' })).toMatchObject(needsKey)
    const before = seen.length
    expect(await hf.thread(landed(['b', 'a'], seen), 't').run()).toMatchObject(needsKey)
    expect(seen).toHaveLength(before)
  })

  it('is told apart by its order of arrival in a run that version 0.1 began', async () => {
    await using hf = await openHoldfast('memory:')
    const program = flow<number, unknown>(NAMED, (ctx) =>
      Promise.all(
        ['a', 'b'].map(async (name) => {
          await ctx.step(name, () => name)
          return [name, await ctx.receive('news')]
        }),
      ),
    )
    const failing = flow<number, unknown>(NAMED, () => Promise.reject(new Error('not yet')))
    await hf.thread(failing, 't').run({ input: 1 })
    const log = await hf.log('t')
    const claim = await log.claim({ owner: 'version 0.1', ms: 1000 })
    await claim.update(() => [{ kind: 'step', ops: [remove(['run', 'incarnation'])] }])
    await claim.release()
    const thread = hf.thread(program, 't')
    expect(await thread.run()).toMatchObject({ status: 'paused' })
    await thread.signal('news', 'one')
    await thread.signal('news', 'two')
    expect(await thread.run()).toMatchObject({
      output: [
        ['a', 'one'],
        ['b', 'two'],
      ],
    })
  })
})

describe('the first wait of its name', () => {
  /** Plays a flow until it waits no more, with days passing in between. */
  async function play(program: FlowProgram<number, unknown>, signals: readonly string[]) {
    const clock = virtualClock()
    const hf = new Holdfast(new LogStore(await openDriver('memory:', { clock }), { clock }))
    const thread = hf.thread(program, 't')
    let outcome = await thread.run({ input: 1 })
    for (const signal of signals) {
      await thread.signal(signal, `for ${signal}`)
      outcome = await thread.run()
    }
    for (let i = 0; outcome.status === 'paused' && i < 5; i++) {
      await clock.advance(DAY)
      outcome = await thread.run()
    }
    await hf.close()
    return outcome
  }

  it('does not get what another branch received, when that is called again and comes later', async () => {
    const seen: unknown[] = []
    const program = flow<number, unknown>(NAMED, (ctx) =>
      Promise.all([
        (async () => {
          await ctx.receive('a')
          // The first time it is here before the question expires, and later the other comes first.
          if (seen.length > 0) await turns(50)
          seen.push(['first', await ctx.receive('shared')])
        })(),
        (async () => {
          await ctx.pause('well?', { expiresInMs: 1000, onExpire: { answer: 'too late' } })
          seen.push(['second', await ctx.receive('shared', { timeoutMs: 1000 })])
        })(),
      ]),
    )
    expect(await play(program, ['a', 'shared'])).toMatchObject(needsKey)
    expect(seen).toEqual([['first', 'for shared']])
  })

  it('does not sleep for as long as another branch was to', async () => {
    const woken: string[] = []
    let calls = 0
    const program = flow<number, unknown>(NAMED, (ctx) => {
      const life = calls++
      return Promise.all([
        (async () => {
          // The first time it is here at once, and later the other comes first.
          if (life > 0) await turns(50)
          await ctx.sleep(DAY)
          woken.push('after a day')
        })(),
        (async () => {
          await ctx.sleep(DAY / 2, { key: 'half' })
          await ctx.sleep(10 * DAY)
          woken.push('after ten days')
        })(),
      ])
    })
    expect(await play(program, [])).toMatchObject(needsKey)
    expect(woken).not.toContain('after ten days')
  })

  it('gets what it had when the program comes by the same before it, however long anything takes', async () => {
    let calls = 0
    const program = flow<number, unknown>(NAMED, async (ctx) => {
      const life = calls++
      const beside = ctx.step('beside', () => turns(life % 2 === 0 ? 1 : 60))
      await ctx.step('before', () => turns(life % 2 === 0 ? 60 : 1))
      if (life % 2 === 0) await new Promise(setImmediate)
      const got = await ctx.receive('shared')
      await ctx.sleep(DAY)
      await beside
      return got
    })
    expect(await play(program, ['shared'])).toMatchObject({ status: 'completed', output: 'for shared' })
  })
})

describe('waits called in one go, without keys', () => {
  async function setUp() {
    const clock = virtualClock()
    const hf = new Holdfast(new LogStore(await openDriver('memory:', { clock }), { clock }))
    const woken: string[] = []
    const nap = async (ctx: Context, name: string, ask: (ctx: Context) => Promise<unknown>) => {
      await ask(ctx)
      woken.push(name)
    }
    return { clock, hf, woken, nap }
  }
  const asks: Record<string, readonly [(ctx: Context) => Promise<unknown>, (ctx: Context) => Promise<unknown>]> = {
    'sleeps of other lengths': [(ctx) => ctx.sleep(DAY), (ctx) => ctx.sleep(10 * DAY)],
    'sleeps until other dates': [
      (ctx) => ctx.sleep(new Date(Date.UTC(2025, 0, 2))),
      (ctx) => ctx.sleep(new Date(Date.UTC(2025, 0, 12))),
    ],
    'signals with other time limits': [
      (ctx) => ctx.receive('news', { timeoutMs: DAY }),
      (ctx) => ctx.receive('news', { timeoutMs: 10 * DAY }),
    ],
  }

  it.each(Object.entries(asks))(
    'are not swapped by a version that calls them in another order: %s',
    async (_, [a, b]) => {
      const { clock, hf, woken, nap } = await setUp()
      const version = (minor: number) =>
        flow<number, unknown>({ name: 'waits', version: `1.${minor}.0` }, (ctx) => {
          const branches = [() => nap(ctx, 'short', a), () => nap(ctx, 'long', b)]
          return Promise.all((minor === 0 ? branches : branches.reverse()).map((branch) => branch()))
        })
      expect(await hf.thread(version(0), 't').run({ input: 1 })).toMatchObject({ status: 'paused' })
      await clock.advance(DAY + 1)
      expect(await hf.thread(version(1), 't').run()).toMatchObject({
        status: 'incompatible',
        reason: expect.stringContaining('beside other waits'),
      })
      expect(woken).toEqual([])
      // The version that began it goes on.
      expect(await hf.thread(version(0), 't').run()).toMatchObject({ status: 'paused' })
      expect(woken).toEqual(['short'])
      await hf.close()
    },
  )

  it.each([1, 2])(
    'are not asked again by a version that calls them in another order (%i answered)',
    async (answers) => {
      const { hf } = await setUp()
      const said: string[] = []
      const version = (minor: number) =>
        flow<number, unknown>({ name: 'questions', version: `1.${minor}.0` }, (ctx) => {
          const ask = async (question: string) => said.push(`${question} ${await ctx.pause<string>(question)}`)
          return Promise.all((minor === 0 ? ['a?', 'b?'] : ['b?', 'a?']).map(ask))
        })
      const asked = await hf.thread(version(0), 't').run({ input: 1 })
      if (asked.status !== 'paused') throw new Error(asked.status)
      for (const { id, question } of asked.pauses.slice(0, answers)) await hf.inspect('t').answer(id, `to ${question}`)
      expect(await hf.thread(version(1), 't').run()).toMatchObject({
        status: 'incompatible',
        reason: expect.stringContaining('beside other waits'),
      })
      expect(said).toEqual([])
      const again = await hf.thread(version(0), 't').run()
      expect(said).toEqual(['a? to a?', 'b? to b?'].slice(0, answers))
      expect(again).toMatchObject(
        answers === 2 ? { status: 'completed' } : { status: 'paused', pauses: [{ id: asked.pauses[1]?.id }] },
      )
      await hf.close()
    },
  )

  it('may be worded otherwise, also by branches, and are asked again then', async () => {
    const { hf } = await setUp()
    const version = (minor: number) =>
      flow<number, unknown>({ name: 'words', version: `1.${minor}.0` }, (ctx) =>
        Promise.all(['a', 'b'].map((name) => ctx.pause(`${name}${minor}?`))),
      )
    const asked = await hf.thread(version(0), 't').run({ input: 1 })
    if (asked.status !== 'paused') throw new Error(asked.status)
    await hf.inspect('t').answer(asked.pauses[0].id, 'old')
    expect(await hf.thread(version(1), 't').run()).toMatchObject({
      status: 'paused',
      pauses: [{ question: 'a1?' }, { question: 'b1?' }],
    })
    await hf.close()
  })

  it('may ask for another time in one sequence, which keeps the first', async () => {
    const { clock, hf } = await setUp()
    let calls = 0
    const program = flow<number, number>(NAMED, async (ctx) => {
      await ctx.sleep(DAY + calls)
      await ctx.sleep(DAY + calls)
      return ++calls
    })
    const thread = hf.thread(program, 't')
    await thread.run({ input: 1 })
    await clock.advance(DAY + 1)
    calls++
    expect(await thread.run()).toMatchObject({ status: 'paused' })
    await clock.advance(DAY + 1)
    calls++
    expect(await thread.run()).toMatchObject({ status: 'completed' })
    await hf.close()
  })
})

type Op = { readonly kind: 'step' | 'pause' | 'receive'; readonly delays: readonly number[] }

const op: fc.Arbitrary<Op> = fc.record({
  kind: fc.constantFrom('step' as const, 'pause' as const, 'receive' as const, 'receive' as const),
  // One for each life of the process: branches come in another order every time.
  delays: fc.array(fc.nat(25), { minLength: 4, maxLength: 4 }),
})

describe('waits in random fan-outs', () => {
  const spec = fc.record({
    branches: fc.array(fc.array(op, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 4 }),
    sequence: fc.array(op, { maxLength: 3 }),
    deaths: fc.array(fc.record({ at: fc.integer({ min: 1, max: 25 }), after: fc.boolean() }), { maxLength: 4 }),
    early: fc.nat(4),
  })

  it('get each its own, once and the same in every life, and none is lost', { timeout: 600_000 }, () =>
    fc.assert(
      fc.asyncProperty(spec, async ({ branches, sequence, deaths, early }) => {
        const store = await openMemory()
        const seen = new Map<string, unknown>()
        const broken: string[] = []
        const see = (place: string, value: unknown) => {
          if (seen.has(place) && seen.get(place) !== value) broken.push(`${place}: ${seen.get(place)}, then ${value}`)
          seen.set(place, value)
        }
        let life = 0
        const act = async (ctx: Context, { kind, delays }: Op, place: string, key?: string) => {
          await turns(delays[life % delays.length] ?? 0)
          const options = key === undefined ? {} : { key }
          if (kind === 'step') await ctx.step('step', { key: place }, () => place)
          if (kind === 'pause') see(place, await ctx.pause(place, options))
          if (kind === 'receive') see(place, await ctx.receive('news', options))
        }
        const program = flow<string, unknown>(NAMED, async (ctx, input) => {
          if (input === 'begin') return
          await Promise.all([
            ...branches.map(async (ops, b) => {
              for (const [i, one] of ops.entries()) await act(ctx, one, `${b}.${i}`, `${b}.${i}`)
            }),
            (async () => {
              // One sequence without keys, beside all the others.
              for (const [i, { kind, delays }] of sequence.entries()) {
                await turns(delays[life % delays.length] ?? 0)
                if (kind === 'step') await ctx.step('step', { key: `s.${i}` }, () => i)
                if (kind === 'pause') see(`s.${i}`, await ctx.pause(`s.${i}`))
                if (kind === 'receive') see(`s.${i}`, await ctx.receive('news'))
              }
            })(),
          ])
        })
        const all = [...branches.flat(), ...sequence]
        const expected = all.filter(({ kind }) => kind === 'receive').length
        const people = new Holdfast(new LogStore(store))
        await people.thread(program, 't').run({ input: 'begin' })
        let sent = 0
        const signal = async () => {
          if (sent < expected) await people.inspect('t').signal('news', `signal ${sent++}`)
        }
        for (let i = 0; i < early; i++) await signal()
        for (; life < 40; life++) {
          const mortal = mortalDriver(store)
          const death = deaths[life]
          if (death) mortal.dieAt(death.at, death.after ? 'after' : 'before')
          const process = new Holdfast(new LogStore(mortal.driver))
          // The key makes it the same input, also after a death before it was taken.
          const running = process.thread(program, 't').run({ input: 'go', key: 'go' })
          const outcome = await Promise.race([running, mortal.died])
          if (outcome === 'died') {
            const log = await people.log('t')
            await (await log.claim({ owner: 'people', ms: 1000, force: true })).release()
            continue
          }
          if (outcome.status === 'completed') break
          if (outcome.status !== 'paused') throw new Error(JSON.stringify(outcome))
          for (const { id, question } of outcome.pauses.slice(0, 1)) {
            await people.inspect('t').answer(id, `answer to ${JSON.stringify(question)}`)
          }
          await signal()
        }
        expect(broken).toEqual([])
        const received = [...seen.values()].filter((value) => String(value).startsWith('signal'))
        expect(received.sort()).toEqual(Array.from({ length: expected }, (_, i) => `signal ${i}`).sort())
        for (const [place, value] of seen) {
          if (!received.includes(value)) expect(value).toBe(`answer to ${JSON.stringify(place)}`)
        }
        expect(seen.size).toBe(all.filter(({ kind }) => kind !== 'step').length)
        await people.close()
      }),
      randomly(rounds(40)),
    ),
  )

  const unkeyed = fc.record({
    branches: fc.array(fc.array(op, { minLength: 1, maxLength: 3 }), { minLength: 2, maxLength: 3 }),
    deaths: fc.array(fc.record({ at: fc.integer({ min: 1, max: 25 }), after: fc.boolean() }), { maxLength: 4 }),
    early: fc.nat(4),
  })

  it('without a key get their own or none: whose a record is must be certain', { timeout: 600_000 }, () =>
    fc.assert(
      fc.asyncProperty(unkeyed, async ({ branches, deaths, early }) => {
        const store = await openMemory()
        const seen = new Map<string, unknown>()
        const broken: string[] = []
        let life = 0
        const program = flow<string, unknown>(NAMED, async (ctx, input) => {
          if (input === 'begin') return
          const parts = branches.map(async (ops, b) => {
            // Branches that have come by nothing of their own can't be told apart by anything but a key.
            await ctx.step('branch', { key: b }, () => b)
            for (const [i, { kind, delays }] of ops.entries()) {
              const place = `${b}.${i}`
              const delay = delays[life % delays.length] ?? 0
              await turns(delay)
              // Some take long enough for all others to come first.
              for (let i = 15; i < delay; i++) await new Promise(setImmediate)
              if (kind === 'step') await ctx.step('step', { key: place }, () => place)
              else {
                const value = await (kind === 'pause' ? ctx.pause('well?') : ctx.receive('news'))
                const before = seen.get(place)
                if (before !== undefined && before !== value) broken.push(`${place}: ${before}, then ${value}`)
                const other = [...seen].find(([at, got]) => got === value && at !== place)
                if (other) broken.push(`${place} and ${other[0]}: ${value}`)
                seen.set(place, value)
              }
            }
          })
          await Promise.all(parts)
        })
        const people = new Holdfast(new LogStore(store))
        await people.thread(program, 't').run({ input: 'begin' })
        let said = 0
        for (let i = 0; i < early; i++) await people.inspect('t').signal('news', `signal ${said++}`)
        for (; life < 40; life++) {
          const mortal = mortalDriver(store)
          const death = deaths[life]
          if (death) mortal.dieAt(death.at, death.after ? 'after' : 'before')
          const process = new Holdfast(new LogStore(mortal.driver))
          const running = process.thread(program, 't').run({ input: 'go', key: 'go' })
          const outcome = await Promise.race([running, mortal.died])
          if (outcome === 'died') {
            const log = await people.log('t')
            await (await log.claim({ owner: 'people', ms: 1000, force: true })).release()
            continue
          }
          if (outcome.status === 'failed') {
            expect(outcome).toMatchObject(needsKey)
            break
          }
          if (outcome.status === 'completed') break
          if (outcome.status !== 'paused') throw new Error(JSON.stringify(outcome))
          const [pause] = outcome.pauses
          if (pause) await people.inspect('t').answer(pause.id, `answer ${said++}`)
          else await people.inspect('t').signal('news', `signal ${said++}`)
        }
        expect(life).toBeLessThan(40)
        expect(broken).toEqual([])
        await people.close()
      }),
      randomly(rounds(60)),
    ),
  )
})

describe('options of a wait', () => {
  const calls: readonly [string, string, (ctx: Context, options: object) => Promise<unknown>, object][] = [
    ['ctx.pause', 'expiresInMs', (ctx, options) => ctx.pause('well?', options), { expiresIn: 1000 }],
    ['ctx.receive', 'timeoutMs', (ctx, options) => ctx.receive('news', options), { timeout: 1000 }],
    ['ctx.sleep', 'key', (ctx, options) => ctx.sleep(DAY, options), { keys: 'a' }],
  ]
  it.each(calls)(
    'are refused where nobody reads them, which would make it wait for ever: %s',
    async (owner, meant, wait, options) => {
      await using hf = await openHoldfast('memory:')
      const program = flow<number, unknown>(NAMED, (ctx) => wait(ctx, options))
      const [given] = Object.keys(options)
      expect(await hf.thread(program, 't').run({ input: 1 })).toMatchObject({
        status: 'failed',
        error: {
          code: 'invalid-option',
          message: expect.stringMatching(new RegExp(`"${given}" is not recognized by ${owner}.*${meant}`)),
        },
      })
    },
  )
})
