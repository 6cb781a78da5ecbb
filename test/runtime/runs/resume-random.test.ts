import fc from 'fast-check'
import { type Context, flow, Holdfast, NotExecutedError } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { randomly, rounds } from '../../support/scale.js'

// Random programs that lose the errors of their steps: whatever fails, and whenever it is mended, a resumed run does
// nothing twice that is done, never undoes what it went on from, and is never taken for another program.

type Part =
  | { readonly kind: 'step'; readonly effect: 'read' | 'idempotent' | 'once' }
  | { readonly kind: 'all' | 'settled' | 'row'; readonly parts: readonly Part[] }
  | { readonly kind: 'caught'; readonly part: Part }

const { part } = fc.letrec<{ part: Part }>((tie) => ({
  part: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ kind: fc.constant('step' as const), effect: fc.constantFrom('read', 'idempotent', 'once') }),
    fc.record({
      kind: fc.constantFrom('all' as const, 'settled' as const, 'row' as const),
      parts: fc.array(tie('part'), { minLength: 1, maxLength: 3 }),
    }),
    fc.record({ kind: fc.constant('caught' as const), part: tie('part') }),
  ) as fc.Arbitrary<Part>,
}))

class World {
  readonly broken = new Set<string>()
  readonly done: string[] = []
  isLinked = false
  readonly effects = new Set<string>()
  /** Effects that had failed when a fallback was done for them, or for one beside them. */
  readonly decided = new Set<string>()

  async run(ctx: Context, { kind, ...spec }: Part, at: string): Promise<void> {
    const rest = spec as { parts: Part[]; part: Part; effect: 'read' }
    switch (kind) {
      case 'step':
        return this.#step(ctx, at, rest.effect)
      case 'row':
        for (const [i, one] of rest.parts.entries()) await this.run(ctx, one, `${at}.${i}`)
        return
      case 'caught':
        return this.run(ctx, rest.part, `${at}.c`).catch(async () => {
          await this.#step(ctx, `${at}.fallback`, 'once')
          for (const name of this.effects)
            if (this.broken.has(name) && name.startsWith(`${at}.c`)) this.decided.add(name)
        })
      case 'all':
        await Promise.all(rest.parts.map((one, i) => this.run(ctx, one, `${at}.${i}`)))
        return
      default: {
        const settled = await Promise.allSettled(rest.parts.map((one, i) => this.run(ctx, one, `${at}.${i}`)))
        const errors = settled.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
        // What failed is not said, at first: the error leads nowhere.
        if (errors.length > 0) throw this.isLinked ? new AggregateError(errors) : new Error(`some of ${at} failed`)
      }
    }
  }

  async #step(ctx: Context, name: string, effect: 'read' | 'idempotent' | 'once'): Promise<void> {
    if (effect !== 'read') this.effects.add(name)
    await ctx.step(name, { effect, retry: { attempts: 1 } }, () => {
      if (this.broken.has(name)) throw new NotExecutedError(`${name} is broken`)
      this.done.push(name)
    })
  }
}

it('a resumed run does nothing twice, undoes nothing, and ends where nothing was decided on', async () => {
  await fc.assert(
    fc.asyncProperty(
      part,
      fc.infiniteStream(fc.nat(3)),
      fc.array(fc.boolean(), { maxLength: 3 }),
      async (spec, draws, mends) => {
        const clock = virtualClock()
        const hf = new Holdfast(new LogStore(await openDriver('memory:', { clock }), { clock }))
        const world = new World()
        const names = namesOf(spec, 'p')
        for (const name of names) if (draws.next().value === 0) world.broken.add(name)
        const program = flow({ name: 'p', version: '1.0.0' }, (ctx) => world.run(ctx, spec, 'p'))
        const drive = async (options: object) => {
          let over = false
          const running = hf.thread(program, 't').run({ leaseMs: 60_000, ...options } as never)
          const mark = () => (over = true)
          running.then(mark, mark)
          while (!over) await clock.advance(100)
          return running
        }
        let outcome = await drive({ input: 1 })
        const resume = async (isMended: boolean) => {
          expect(outcome).toMatchObject({ status: 'failed', canResume: true })
          if (isMended) world.broken.clear()
          outcome = await drive({})
        }
        const isOver = () => outcome.status === 'completed'
        for (let i = 0; i < mends.length && !isOver(); i++) await resume(mends[i] as boolean)
        for (let i = 0; i < 6 && !isOver(); i++) await resume(true)
        // Beside what a fallback was done for, effects stay failed until the error leads to them.
        if (!isOver()) expect(world.done.join()).toContain('fallback')
        world.isLinked = true
        for (let i = 0; i < 12 && !isOver(); i++) await resume(true)
        expect(outcome.status).toBe('completed')
        expect(world.done.toSorted()).toEqual([...new Set(world.done)].toSorted())
        for (const name of world.decided) expect(world.done).not.toContain(name)
        await hf.close()
      },
    ),
    randomly(rounds(150, 10_000)),
  )
})

function namesOf(spec: Part, at: string): readonly string[] {
  if (spec.kind === 'step') return [at]
  if (spec.kind === 'caught') return namesOf(spec.part, `${at}.c`)
  return spec.parts.flatMap((one, i) => namesOf(one, `${at}.${i}`))
}
