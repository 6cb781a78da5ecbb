/** What a user may write, checked strictly against the installed types: a wrong one of ours is an error there. */
export const TYPED_PROGRAM = `import { agent, flow, graph, last, openHoldfast, tool, type LanguageModel, type Outcome } from 'holdfast'
import { HoldfastClient } from 'holdfast/client'
import { createServer } from 'holdfast/server'
import { driverSuite, startModelServer, virtualClock } from 'holdfast/testing'

declare const model: LanguageModel
const text = {
  '~standard': {
    version: 1 as const,
    vendor: 'mine',
    validate: (value: unknown) => ({ value: value as { orderId: string } }),
    types: undefined as { input: { orderId: string }; output: { orderId: string } } | undefined,
  },
}
const support = agent({
  name: 'support',
  version: '1.0.0',
  model,
  tools: {
    find: tool({
      description: 'Finds an order',
      inputSchema: text,
      jsonSchema: { type: 'object', properties: { orderId: { type: 'string' } } },
      effect: 'read',
      execute: ({ orderId }) => orderId.toUpperCase(),
    }),
  },
})
const add = flow({ name: 'add', version: '1.0.0' }, async (ctx, input: number) => ctx.step('add', () => input + 1))
const counter = graph({ name: 'counter', version: '1.0.0', state: { count: last<number>(undefined, { initial: 0 }) } })

const hf = await openHoldfast('memory:')
const outcome: Outcome<unknown, number> = await hf.thread(add, 'a').run({ input: 1 })
if (outcome.status === 'completed') outcome.output.toFixed()
const said = await hf.thread(support, { user: 'u' }).run({ input: 'Hello' })
if (said.status === 'paused') await hf.thread(support, 'a').answer(said.pauses[0]?.id ?? '', { approved: true })
await using server = await startModelServer({ reply: ['Hello'] })
const web = createServer(hf, { programs: [add], tokens: [{ token: 'a-token-of-some-length' }], worker: false })
const healthy: Response = await web.fetch(new Request('http://localhost/v1/health'))
const client = new HoldfastClient({ baseUrl: 'http://localhost', token: 'a-token-of-some-length' })
export const used = [healthy.ok, client.thread('a'), server.url, counter, driverSuite, virtualClock()]
await hf.close()
`
