import { agent, append, flow, graph, type Holdfast, type LanguageModel, last, START, tool } from 'holdfast'
import { startModelServer } from 'holdfast/testing'
import { makeCustomers, stockFor } from '#src/demo/shop/customers.js'
import { httpModel } from '#src/demo/http-model.js'
import { playSupport } from '#src/demo/play-support.js'
import { openShop } from '#src/demo/shop/shop.js'
import { makeSupport as makeDemoAgent } from '#src/demo/shop/support-agent.js'
import { z } from 'zod'

/** Programs with everything that the studio shows: questions, approvals, effects of unknown outcome, failures. */
export function makePrograms(model: LanguageModel) {
  const returns = agent({
    name: 'returns',
    version: '2.1.0',
    model,
    instructions: 'You help customers of a small shop with their orders. Be brief.',
    state: { customer: last(z.string().min(1)) },
    tools: {
      getOrder: tool({
        description: 'Looks an order up',
        inputSchema: z.object({ orderId: z.string() }),
        effect: 'read',
        execute: async ({ orderId }) => ({ orderId, status: 'delivered', items: ['Trail boots', 'Wool socks'] }),
      }),
      refund: tool({
        description: 'Pays money back',
        inputSchema: z.object({ orderId: z.string(), amount: z.number().positive(), note: z.string().optional() }),
        effect: 'idempotent',
        needsApproval: true,
        execute: async ({ orderId, amount }) => ({ paid: amount, reference: `REF-${orderId}` }),
      }),
    },
    prices: { '*': { input: 3, output: 15 } },
  })
  const payout = flow({ name: 'payout', version: '1.0.0' }, async (ctx, input: { account: string; amount: number }) => {
    const balance = await ctx.step('balance', async () => 900)
    const done = await ctx.step('transfer', { effect: 'once', input }, async () => {
      throw new Error('socket hang up')
    })
    return { balance, done }
  })
  const survey = flow({ name: 'survey', version: '1.0.0' }, async (ctx, input: { customer: string }) => {
    const answer = await ctx.pause(
      { ask: `How content is ${input.customer}?` },
      { schema: z.object({ mood: z.enum(['good', 'fair', 'poor']), stars: z.number().int(), again: z.boolean() }) },
    )
    return { customer: input.customer, answer }
  })
  const nightly = flow({ name: 'nightly', version: '1.0.0' }, async (ctx) => {
    await ctx.step('collect', async () => ({ files: 12 }))
    await ctx.step('upload', { retry: { attempts: 1 } }, () =>
      Promise.reject(new Error('The bucket refused the upload: 403')),
    )
  })
  const planner = graph({
    name: 'planner',
    version: '1.0.0',
    state: { goal: last<string>(undefined, { initial: '' }), done: append<string>() },
  })
    .node('plan', (state) => ({ done: [`plan ${state.goal}`] }))
    .node('act', (state) => ({ done: [`act on ${state.goal}`] }))
    .edge(START, 'plan')
    .edge('plan', 'act')
  return { returns, payout, survey, nightly, planner }
}

/** The demo's agent as it is served afterwards: its past can be replayed, which calls no model and no shop. */
export async function demoProgram() {
  const shop = await openShop(':memory:', stockFor([]))
  return makeDemoAgent({ model: httpModel('http://127.0.0.1:9', 'scripted-support'), shop })
}

/** Some conversations of the demo: its agent, its shop, its customers and the server that plays its model. */
export async function playDemo(hf: Holdfast, sessions: number, turns: number): Promise<void> {
  const customers = makeCustomers(sessions, 7)
  const shop = await openShop(':memory:', stockFor(customers))
  const server = await startModelServer({ reply: (request) => playSupport(request), keep: 0 })
  try {
    const support = makeDemoAgent({ model: httpModel(server.url, 'scripted-support'), shop })
    await Promise.all(
      customers.map(async (customer) => {
        const thread = hf.thread(support, customer.thread)
        for (const { text } of customer.turns.slice(0, turns)) await thread.run({ input: text })
      }),
    )
  } finally {
    await server.close()
    shop.close()
  }
}
