import { append, graph, START } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { dies, twoLives } from '../support/two-lives.js'

const state = { trail: append<string>() }

/** How the program asks before it pays. */
interface Gates {
  readonly approval?: boolean
  readonly before?: boolean
}

function pays({ approval, before }: Gates, charge: () => string, inside = false) {
  const program = graph({ name: 'pays', version: '1.0.0', state })
    .node('pay', {
      ...(inside ? {} : { effect: 'once' as const }),
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
