import { append, graph, openHoldfast, START } from 'holdfast'
import { ops } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { dies, twoLives } from '../../support/two-lives.js'

const { set } = ops

const state = { trail: append<string>() }

/** How the program asks before it pays. */
interface Gates {
  readonly approval?: boolean
  readonly before?: boolean
}

function pays({ approval, before }: Gates, charge: () => string, inside = false, policy: object = {}) {
  const program = graph({ name: 'pays', version: '1.0.0', state })
    .node('pay', {
      ...(inside ? {} : { effect: 'once' as const, ...policy }),
      approval: {
        needed: () => approval ?? false,
        question: () => ({ pay: 40 }),
        answer: { type: 'object', properties: { approved: { type: 'boolean' } }, required: ['approved'] },
        approved: (_input, answer) => (answer as { amount?: number }).amount,
        denied: () => ({ trail: 'denied' }),
      },
      run: async (_state, ctx) => ({
        trail: `${inside ? await ctx.step('charge', { effect: 'once' }, charge) : charge()} ${String(ctx.input)}`,
      }),
    })
    .edge(START, 'pay')
  return before ? program.pauseBefore('pay') : program
}

/** Dies in the midst of the payment, after answering what is asked before it, and resumes with other gates. */
async function resume(was: Gates, now: Gates, { inside = false, answer }: { inside?: boolean; answer?: unknown } = {}) {
  const { first, second, die } = await twoLives()
  let charged = 0
  const charge = () => {
    charged++
    die()
    return 'paid'
  }
  const dying = first.thread(pays(was, charge, inside), 't')
  const running = dying.run({ input: { trail: 'order' } })
  if (answer === undefined) await dies(running)
  else {
    const asked = await running
    if (asked.status !== 'paused') throw new Error(asked.status)
    await dying.answer(asked.pauses[0].id, answer)
    await dies(dying.run())
  }
  const hf = await second()
  const thread = hf.thread(pays(now, charge, inside), 't')
  const outcome = await thread.run()
  if (outcome.status !== 'paused') throw new Error(outcome.status)
  expect(charged).toBe(1)
  return { outcome, thread }
}

describe('a gate that changes its mind after a crash', () => {
  it.each([
    { what: 'an approval', now: { approval: true } },
    { what: 'a pause before the node', now: { before: true } },
    { what: 'both', now: { approval: true, before: true } },
  ])('is not asked about what was begun: $what', async ({ now }) => {
    for (const inside of [false, true]) {
      const { outcome, thread } = await resume({}, now, { inside })
      expect(outcome.pauses).toMatchObject([{ kind: 'unknown-effect' }])
      await thread.answer(outcome.pauses[0].id, { outcome: 'succeeded', result: inside ? 'paid' : { trail: ['paid'] } })
      const { state } = await thread.run()
      expect(state.trail).toStrictEqual(['order', expect.stringContaining('paid')])
    }
  })

  it('keeps what was approved and what the answer brought when the gates are gone', async () => {
    const edited = await resume({ approval: true }, {}, { answer: { approved: true, amount: 7 }, inside: true })
    expect(edited.outcome.pauses).toMatchObject([{ kind: 'unknown-effect' }])
    await edited.thread.answer(edited.outcome.pauses[0].id, { outcome: 'succeeded', result: 'paid' })
    expect((await edited.thread.run()).state.trail).toStrictEqual(['order', 'paid 7'])

    const answer = { approved: true, update: { trail: ['by ann'] } }
    const updated = await resume({ before: true }, {}, { answer })
    expect(updated.outcome.pauses).toMatchObject([{ kind: 'unknown-effect' }])
    await updated.thread.answer(updated.outcome.pauses[0].id, { outcome: 'succeeded', result: {} })
    expect((await updated.thread.run()).state.trail).toStrictEqual(['order', 'by ann'])
  })
})

describe('an answer to a gate', () => {
  it('holds, though the next version no longer asks before that node', async () => {
    const hf = await openHoldfast('memory:')
    const charge = () => 'paid'
    const asked = await hf.thread(pays({ before: true }, charge), 't').run({ input: { trail: 'order' } })
    if (asked.status !== 'paused') throw new Error(asked.status)
    const thread = hf.thread(pays({}, charge), 't')
    await thread.answer(asked.pauses[0].id, { approved: false })
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { trail: ['order'] } })
    await hf.close()
  })
})

describe('a gate behind a node that a later version no longer has', () => {
  const program = (asks: boolean) => {
    const made = graph({ name: 'pays', version: '1.0.0', state })
      .node('pay', { effect: 'once', run: () => ({ trail: 'paid' }) })
      .node('sign', async (_, ctx) => ({ trail: String(await ctx.receive('signature')) }))
      .node('close', async (_, ctx) => ({ trail: String(await ctx.receive('close')) }))
      .edge(START, 'pay')
      .edge(START, 'sign')
      .edge(['pay', 'sign'], 'close')
    return asks ? made.pauseAfter('pay') : made
  }

  async function ask() {
    const hf = await openHoldfast('memory:')
    const asked = await hf.thread(program(true), 't').run({ input: { trail: 'order' } })
    if (asked.status !== 'paused') throw new Error(asked.status)
    return { hf, pause: asked.pauses[0].id, thread: hf.thread(program(false), 't') }
  }

  it('asks no more when the node is left, and holds nothing up', async () => {
    const { hf, pause, thread } = await ask()
    await thread.signal('signature', 'signed')
    const outcome = await thread.run()
    expect(outcome).toMatchObject({ status: 'paused', state: { trail: ['order', 'paid', 'signed'] }, pauses: [] })
    await expect(thread.answer(pause, { approved: false })).rejects.toMatchObject({ code: 'pause-closed' })
    await thread.signal('close', 'closed')
    expect(await thread.run()).toMatchObject({ status: 'completed' })
    await hf.close()
  })

  it('keeps the answer that was given', async () => {
    const { hf, pause, thread } = await ask()
    await thread.answer(pause, { approved: false })
    await thread.signal('signature', 'signed')
    expect(await thread.run()).toMatchObject({ status: 'paused', state: { trail: ['order', 'signed'] }, pauses: [] })
    await hf.close()
  })
})

describe('a node with a gate whose record the store may have lost', () => {
  /** A run that waits at its gate, of a store that came back after that: what was answered, and done, may be lost. */
  async function waitsAtGate(gates: Gates, policy: object = {}) {
    const hf = await openHoldfast('memory:')
    let charged = 0
    const program = pays(gates, () => `charge ${++charged}`, false, policy)
    const thread = hf.thread(program, 't')
    const asked = await thread.run({ input: { trail: 'order' } })
    if (asked.status !== 'paused') throw new Error(asked.status)
    const log = await hf.log('t')
    const claim = await log.claim({ owner: 'the store', ms: 1000 })
    const { run } = log.fold.state as { run: { id: string } }
    await claim.update(() => [{ kind: 'effect', ops: [set('gap', { since: Date.now(), runs: [run.id] })] }])
    await claim.release()
    return { hf, thread, gate: asked.pauses[0].id, charged: () => charged }
  }

  it.each([
    { what: 'an approval', gates: { approval: true } },
    { what: 'a pause before the node', gates: { before: true } },
  ])('is asked what became of it first, and only then whether it may begin: $what', async ({ gates }) => {
    const { hf, thread, gate, charged } = await waitsAtGate(gates)
    // A no, said by somebody who does not know better.
    await thread.answer(gate, { approved: false })
    for (let i = 0; i < 2; i++) {
      const asked = await thread.run()
      if (asked.status !== 'paused') throw new Error(asked.status)
      expect(asked.pauses).toMatchObject([{ kind: 'unknown-effect' }])
    }
    const [{ id } = { id: '' }] = await thread.pauses()
    await thread.answer(id, { outcome: 'succeeded', result: { trail: 'found' } })
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { trail: ['order', 'found'] } })
    expect(charged()).toBe(0)
    await hf.close()
  })

  it.each([
    { what: 'an approval', gates: { approval: true }, approved: true },
    { what: 'an approval', gates: { approval: true }, approved: false },
    { what: 'a pause before the node', gates: { before: true }, approved: true },
    { what: 'a pause before the node', gates: { before: true }, approved: false },
  ])('begins as the gate says when nothing was done: $what, $approved', async ({ gates, approved }) => {
    const { hf, thread, gate, charged } = await waitsAtGate(gates)
    await thread.answer(gate, { approved })
    const asked = await thread.run()
    if (asked.status !== 'paused') throw new Error(asked.status)
    await thread.answer(asked.pauses[0].id, { outcome: 'not-executed' })
    expect(await thread.run()).toMatchObject({ status: 'completed' })
    expect(charged()).toBe(approved ? 1 : 0)
    await hf.close()
  })

  it('is not asked for again when the other side says that nothing was done', async () => {
    const { hf, thread, gate, charged } = await waitsAtGate(
      { approval: true },
      { effect: 'reconcilable', reconcile: () => ({ outcome: 'not-executed' }) },
    )
    await thread.answer(gate, { approved: true })
    expect(await thread.run()).toMatchObject({ status: 'completed' })
    expect(charged()).toBe(1)
    await hf.close()
  })
})
