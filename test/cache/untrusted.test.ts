import { randomBytes } from 'node:crypto'
import { withCache } from '#src/cache/cached-driver.js'
import fc from 'fast-check'
import { flow, Holdfast } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { lyingCache } from '../support/lying-cache.js'
import { randomly, rounds } from '../support/scale.js'
import { playHistory } from '../support/thread-model.js'

const only = process.env['HOLDFAST_TEST_SEED']
const HISTORIES = rounds(30, 3000)
const WORKS = ['run', 'run', 'run', 'enqueue', 'answer', 'cancel', 'erase', 'prune', 'none', 'resume'] as const

interface Step {
  readonly do: (typeof WORKS)[number]
  readonly thread: number
  readonly key: number
}

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({ do: fc.constantFrom(...WORKS), thread: fc.nat(1), key: fc.nat(5) }),
  { minLength: 5, maxLength: 25 },
)

interface Work {
  readonly n: number
}

const makeProgram = (done: number[]) =>
  flow<Work, string>({ name: 'work', version: '1.0.0' }, async (ctx, { n }) => {
    await ctx.step('work', () => void done.push(n))
    return n % 2 ? `${n} ${String(await ctx.pause('go on?'))}` : `${n}`
  })

const threadOf = (hf: Holdfast, program: ReturnType<typeof makeProgram>, { thread }: Step) =>
  hf.thread(program, `t${thread}`)

/** What a history comes to, step by step, and which pieces of work were done. */
async function play(history: readonly Step[], first: Holdfast, second: Holdfast): Promise<unknown> {
  const done: number[] = []
  const program = makeProgram(done)
  const told: unknown[] = []
  for (const [at, step] of history.entries()) {
    // Two processes in turn: what one kept in memory is outdated by the other.
    const hf = at % 3 === 0 ? second : first
    const thread = threadOf(hf, program, step)
    told.push(
      await act(hf, thread, step).catch((error: unknown) => (error as { code?: string }).code ?? String(error)),
      await thread.state(),
      await thread.pauses().then(
        ({ length }) => length,
        () => 'none',
      ),
    )
  }
  return { told, done }
}

async function act(hf: Holdfast, thread: ReturnType<typeof threadOf>, step: Step): Promise<unknown> {
  const id = `t${step.thread}`
  const given = { input: { n: step.key }, key: `k${step.key}`, expect: 'existing' } as const
  switch (step.do) {
    case 'run':
      return show(await thread.run({ ...given, onPaused: step.thread ? 'queue' : 'return' }))
    case 'resume':
      return show(await thread.run())
    case 'none':
      return show(await thread.run({ ...given, frequency: 'none' }))
    case 'enqueue':
      return (await thread.enqueue(given.input, { key: given.key })).input
    case 'cancel':
      return thread.cancel()
    case 'erase':
      return hf.erase(id)
    case 'prune': {
      const [newest] = await thread.history({ limit: 1, all: true })
      return newest && hf.prune(id, newest.seq)
    }
    case 'answer': {
      const [pause] = await thread.pauses()
      return pause && thread.answer(pause.id, `yes ${step.key}`)
    }
  }
}

/** What is the same in every store: all but ids and times. */
function show(outcome: object): unknown {
  const { status, input, restarted, output, pauses } = outcome as Record<string, unknown>
  return { status, input, restarted, output, pauses: (pauses as unknown[] | undefined)?.length }
}

describe('a cache that tells what it likes', () => {
  it(`changes nothing of what runs, answers, forks, upgrades and crashes come to, ${HISTORIES} times`, async () => {
    const told = new Map<string, number>()
    for (const seed of only === undefined ? Array.from({ length: HISTORIES }, (_, i) => i) : [Number(only)]) {
      const lying = lyingCache(seed)
      const driver = withCache(await openDriver('memory:'), lying.cache)
      await playHistory(seed, driver, `t${seed}`).catch((cause: unknown) => {
        throw new Error(`Seed ${seed}: ${(cause as Error).message}`, { cause })
      })
      for (const [way, times] of lying.told) told.set(way, (told.get(way) ?? 0) + times)
    }
    // Otherwise nothing was tried.
    if (only !== undefined) return
    for (const way of ['right', 'older', 'damaged', 'cut', 'forged']) expect(told.get(way)).toBeGreaterThan(0)
  })

  const keys = { current: 'k', masters: { k: randomBytes(32) } }
  for (const [name, options] of [
    ['plain', {}],
    ['encrypted', { keys }],
  ] as const) {
    it(`leaves every answer as it is without one, ${name}`, async () => {
      const open = (driver: Driver, more = {}) => new Holdfast(new LogStore(driver, { ...options, ...more }))
      const property = fc.asyncProperty(steps, fc.nat(), async (history, seed) => {
        const plain = await openDriver('memory:')
        const cached = withCache(await openDriver('memory:'), lyingCache(seed).cache)
        const expected = await play(history, open(plain), open(plain, { cacheBytes: 0 }))
        expect(await play(history, open(cached), open(cached, { cacheBytes: 0 }))).toEqual(expected)
      })
      await fc.assert(property, randomly(rounds(25, 2000)))
    })
  }
})
