import { type Effect, END, flow, graph, last, START } from 'holdfast'
import type { StepPolicy } from 'holdfast/types'
import { describe, expect, it } from 'vitest'
import { dies, twoLives } from '../../support/two-lives.js'

const named = { name: 'pays', version: '1.0.0' }
const state = { paid: last<string>(undefined, { initial: '' }) }

/** The same program in two versions: what a step says of itself changes, what it does does not. */
type Charge = StepPolicy<string> & { readonly idempotencyKey?: string }

const asFlow = (charge: Charge | undefined, call: (key: string) => string) =>
  flow<number, string>(named, async (ctx) => {
    await ctx.step('look', () => 1)
    return charge ? ctx.step('charge', charge, ({ idempotencyKey }) => call(idempotencyKey)) : 'nothing to pay'
  })

const asNode = (charge: Charge | undefined, call: (key: string) => string) =>
  graph({ ...named, state })
    .node('charge', {
      effect: charge?.effect ?? 'read',
      ...(charge?.reconcile ? { reconcile: charge.reconcile } : {}),
      run: (_, ctx) => ({ paid: call(ctx.idempotencyKey) }),
    })
    .edge(START, 'charge')
    .edge('charge', END)

/** Begins a charge in a process that dies in its midst, and resumes it with a changed program. */
async function resume(
  program: typeof asFlow | typeof asNode,
  begun: Charge,
  now: Charge | undefined,
  { days = 0 }: { readonly days?: number } = {},
) {
  const { clock, first, second, die } = await twoLives()
  const keys: string[] = []
  const dying = program(begun, (key) => {
    keys.push(key)
    die()
    return 'charged'
  })
  await dies(
    first.thread(dying as ReturnType<typeof asFlow>, 't').run({ input: program === asFlow ? 1 : ({} as never) }),
  )
  const hf = await second()
  await clock.advance(days * 24 * 60 * 60 * 1000)
  const changed = program(now, (key) => {
    keys.push(key)
    return 'charged again'
  })
  const thread = hf.thread(changed as ReturnType<typeof asFlow>, 't')
  return { outcome: await thread.run(), thread, keys }
}

describe('an effect that was begun', () => {
  it.each(
    (['read', 'idempotent', 'reconcilable'] as const).flatMap((effect) => [
      { where: 'a step', program: asFlow, effect },
      { where: 'a node', program: asNode, effect },
    ]),
  )('as once in $where is put to a person, though the program calls it $effect now', async ({ program, effect }) => {
    const reconcile = () => ({ outcome: 'not-executed' as const })
    const now: Charge = effect === 'reconcilable' ? { effect, reconcile } : { effect }
    const { outcome, keys } = await resume(program, { effect: 'once' }, now)
    expect(outcome).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
    expect(keys).toHaveLength(1)
  })

  it.each([asFlow, asNode])(
    'as reconcilable is put to a person when the program can no longer ask',
    async (program) => {
      const reconcile = () => ({ outcome: 'not-executed' as const })
      const { outcome, keys } = await resume(program, { effect: 'reconcilable', reconcile }, { effect: 'idempotent' })
      expect(outcome).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
      expect(keys).toHaveLength(1)
    },
  )

  it('as reconcilable is asked about where the program still can, whatever it calls the step', async () => {
    const reconcile = () => ({ outcome: 'executed' as const, result: 'found' })
    const begun: Charge = { effect: 'reconcilable', reconcile }
    const { outcome } = await resume(asFlow, begun, { effect: 'idempotent', reconcile })
    expect(outcome).toMatchObject({ status: 'completed', output: 'found' })
    expect(await resume(asFlow, begun, { effect: 'once', reconcile })).toMatchObject({ outcome: { status: 'paused' } })
  })

  it('is asked about by the key that it was begun with, also when the program brings another now', async () => {
    const asked: string[] = []
    const reconcile = (key: string) => {
      asked.push(key)
      return { outcome: 'executed' as const, result: 'found' }
    }
    const begun: Charge = { effect: 'reconcilable', reconcile, idempotencyKey: 'order-1' }
    for (const idempotencyKey of ['order-2', undefined]) {
      const now = { effect: 'reconcilable' as const, reconcile, ...(idempotencyKey ? { idempotencyKey } : {}) }
      expect((await resume(asFlow, begun, now)).outcome).toMatchObject({ status: 'completed', output: 'found' })
    }
    expect(asked).toStrictEqual(['order-1', 'order-1'])
  })

  it('shows a person the key that it was begun with', async () => {
    const { outcome } = await resume(asFlow, { effect: 'once', idempotencyKey: 'order-1' }, { effect: 'once' })
    expect(outcome).toMatchObject({ pauses: [{ question: { effect: 'once', idempotencyKey: 'order-1' } }] })
  })

  it.each(['once', 'reconcilable'] as const)(
    'as %s and that the program no longer comes to ends the run as incompatible, and stays open',
    async (effect: Effect) => {
      const reconcile = () => ({ outcome: 'unknown' as const })
      const begun: Charge = effect === 'reconcilable' ? { effect, reconcile } : { effect }
      const { outcome, thread } = await resume(asFlow, begun, undefined)
      expect(outcome).toMatchObject({ status: 'incompatible' })
      expect(JSON.stringify(outcome)).toMatch(/charge.*begun/)
      expect(await thread.run()).toMatchObject({ status: 'incompatible' })
    },
  )

  it('is not forgotten when it comes back with another input, and the program catches that', async () => {
    const { first, second, die } = await twoLives()
    let charges = 0
    const program = (input: string) =>
      flow<number, string>(named, async (ctx) => {
        const charge = () => {
          charges++
          die()
          return 'charged'
        }
        await ctx.step('charge', { effect: 'once', input }, charge).catch(() => 'it did not work')
        return ctx.step('charge again', { effect: 'once' }, charge)
      })
    await dies(first.thread(program('10 EUR'), 't').run({ input: 1 }))
    const hf = await second()
    expect(await hf.thread(program('20 EUR'), 't').run()).toMatchObject({ status: 'incompatible' })
    expect(charges).toBe(1)
    expect(await hf.thread(program('10 EUR'), 't').run()).toMatchObject({
      status: 'paused',
      pauses: [{ kind: 'unknown-effect' }],
    })
  })

  it('is not taken for left when a sibling fails again before the program has come back to it', async () => {
    const { first, second, die } = await twoLives()
    let life = 1
    let calls = 0
    const program = flow<number, unknown>(named, async (ctx) => {
      let failed = () => {}
      const hasFailed = new Promise<void>((resolve) => {
        failed = resolve
      })
      return Promise.all([
        (async () => {
          // In its second life it is busy with other things when the failure is told again.
          if (life === 2) for (let i = 0; i < 5; i++) await new Promise(setImmediate)
          return ctx.step('charge', { effect: 'once' }, async () => {
            calls++
            if (life === 1) await hasFailed
            die()
          })
        })(),
        ctx
          .step('look', { retry: { attempts: 1 } }, () => {
            throw new Error('not there')
          })
          .finally(failed),
      ])
    })
    await dies(first.thread(program, 't').run({ input: 1 }))
    const hf = await second()
    life = 2
    expect(await hf.thread(program, 't').run()).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('not there') },
    })
    expect(calls).toBe(1)
  })

  it('is named when the program fails before it comes to it', async () => {
    const { first, second, die } = await twoLives()
    const program = (fails: boolean) =>
      flow<number, string>(named, async (ctx) => {
        await ctx.step('look', () => 1)
        if (fails) throw new Error('the shop is closed')
        return ctx.step('charge', { effect: 'once' }, () => {
          die()
          return 'charged'
        })
      })
    await dies(first.thread(program(false), 't').run({ input: 1 }))
    const hf = await second()
    const outcome = await hf.thread(program(true), 't').run()
    expect(outcome).toMatchObject({ status: 'incompatible' })
    expect(JSON.stringify(outcome)).toMatch(/charge.*begun.*the shop is closed/)
    expect(await hf.thread(program(false), 't').run()).toMatchObject({
      status: 'paused',
      pauses: [{ kind: 'unknown-effect' }],
    })
  })

  it('inside of a node is not forgotten when the node no longer comes to it', async () => {
    const { first, second, die } = await twoLives()
    const program = (charges: boolean) =>
      graph({ ...named, state })
        .node('pay', async (_, ctx) => {
          if (!charges) return { paid: 'nothing' }
          return { paid: await ctx.step('charge', { effect: 'once' }, () => (die(), 'charged')) }
        })
        .edge(START, 'pay')
        .edge('pay', END)
    await dies(first.thread(program(true), 't').run({ input: {} }))
    const hf = await second()
    expect(await hf.thread(program(false), 't').run()).toMatchObject({ status: 'incompatible' })
    expect(await hf.thread(program(true), 't').run()).toMatchObject({ status: 'paused' })
  })

  it('inside of a subgraph is not forgotten when its node is a function now', async () => {
    const { first, second, die } = await twoLives()
    const inner = graph({ name: 'inner', version: '1.0.0', state })
      .node('charge', { effect: 'once', run: () => (die(), { paid: 'charged' }) })
      .edge(START, 'charge')
      .edge('charge', END)
    const before = graph({ ...named, state })
      .node('pay', inner)
      .edge(START, 'pay')
      .edge('pay', END)
    const after = graph({ ...named, state })
      .node('pay', () => ({ paid: 'nothing' }))
      .edge(START, 'pay')
      .edge('pay', END)
    await dies(first.thread(before, 't').run({ input: {} }))
    const hf = await second()
    const outcome = await hf.thread(after, 't').run()
    expect(outcome).toMatchObject({ status: 'incompatible' })
    expect(JSON.stringify(outcome)).toMatch(/charge.*begun/)
    expect(await hf.thread(before, 't').run()).toMatchObject({ status: 'paused' })
  })

  const pays = (name = 'pays') => graph({ ...named, name, state })

  it('in a node is not forgotten when the node is a subgraph now', async () => {
    const { first, second, die } = await twoLives()
    let charged = 0
    const before = pays()
      .node('pay', { effect: 'once', run: () => (charged++, die(), { paid: 'charged' }) })
      .edge(START, 'pay')
      .edge('pay', END)
    const inner = pays('inner')
      .node('charge', () => ({ paid: `${++charged} times` }))
      .edge(START, 'charge')
      .edge('charge', END)
    const after = pays().node('pay', inner).edge(START, 'pay').edge('pay', END)
    await dies(first.thread(before, 't').run({ input: {} }))
    const hf = await second()
    const outcome = await hf.thread(after, 't').run()
    expect(outcome).toMatchObject({ status: 'incompatible' })
    expect(JSON.stringify(outcome)).toMatch(/pay.*begun/)
    expect(charged).toBe(1)
    expect(await hf.thread(before, 't').run()).toMatchObject({ status: 'paused' })
  })

  it.each(['begun', 'done'])('inside of a node, and %s, keeps the node from doing it itself now', async (how) => {
    for (const now of ['an effect', 'a subgraph'] as const) {
      const { first, second, die } = await twoLives()
      let charged = 0
      const before = pays()
        .node('pay', async (_, ctx) => {
          await ctx.step('charge', { effect: 'once' }, () => {
            charged++
            if (how === 'begun') die()
          })
          await ctx.step('note', () => die())
          return {}
        })
        .edge(START, 'pay')
        .edge('pay', END)
      const own = pays(now === 'an effect' ? 'pays' : 'inner')
        .node('pay', { effect: 'once', run: () => ({ paid: `${++charged} times` }) })
        .edge(START, 'pay')
        .edge('pay', END)
      const after = now === 'an effect' ? own : pays().node('pay', own).edge(START, 'pay').edge('pay', END)
      await dies(first.thread(before, 't').run({ input: {} }))
      const hf = await second()
      const outcome = await hf.thread(after, 't').run()
      expect(outcome).toMatchObject({ status: 'incompatible' })
      expect(JSON.stringify(outcome)).toContain('pay/charge')
      expect(charged).toBe(1)
    }
  })

  it('and done in a subgraph under way keeps a function in its place from doing it again', async () => {
    const { first, second, die } = await twoLives()
    let charged = 0
    const inner = graph({ name: 'inner', version: '1.0.0', state })
      .node('charge', { effect: 'once', run: () => ({ paid: `${++charged} times` }) })
      .node('note', () => (charged === 1 && die(), {}))
      .edge(START, 'charge')
      .edge('charge', 'note')
      .edge('note', END)
    const before = pays().node('pay', inner).edge(START, 'pay').edge('pay', END)
    const after = pays()
      .node('pay', { effect: 'once', run: () => ({ paid: `${++charged} times` }) })
      .edge(START, 'pay')
      .edge('pay', END)
    await dies(first.thread(before, 't').run({ input: {} }))
    const hf = await second()
    expect(await hf.thread(after, 't').run()).toMatchObject({ status: 'incompatible' })
    expect(charged).toBe(1)
  })
})
