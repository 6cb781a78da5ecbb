// A support session over a real shop database.
//   npx tsx main.ts      (in the repository: npm run example:customer-service)
// Without a key a local server plays the model, over real HTTP and with an occasional 429 and 500. For a real one:
//   MODEL_URL=https://api.deepseek.com/v1 MODEL_KEY=… npx tsx main.ts      (MODEL_NAME picks the model)
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { type LanguageModel, openHoldfast, tenantUsage } from 'holdfast'
import { startModelServer } from 'holdfast/testing'
import { playSupport } from './scripted-model.js'
import { openShop } from './shop.js'
import { STOCK } from './orders.js'
import { makeSupport } from './support-agent.js'

/** The day on which this session takes place. */
const TODAY = '2024-11-20'

const CUSTOMER = [
  'Hi, good morning! I have a few questions about my orders.',
  'Where is ORD-2024-8847? I hoped to wear the sweater this weekend.',
  'All right. What have I ordered from you before, by the way? I lost track of my orders.',
  'The Fjellvind boots from ORD-2024-8102 are too tight. Could I exchange them for a bigger size?',
  'Hm, what about black boots in size 42?',
  'Then I would rather return the boots, they do not fit at all.',
  'Thanks. How long does a refund take?',
  'And what about the rain jacket from ORD-2024-8102, could I swap the jacket for size L?',
  'Great, thank you.',
  'One of the bottles leaks. I would like to return the bottle from ORD-2024-8102.',
  'Is the status of my return visible somewhere? Was it approved?',
  'Do you have hiking socks in grey?',
  'And a backpack in green for day trips?',
  'What does shipping cost for that?',
  'I would also like to see a winter jacket in size M.',
  'What about running shoes in white, size 41?',
  'My running shoes from ORD-2024-7719 are worn out already, can I return the running shoes?',
  'Fair enough. Can you check ORD-2024-9999 for me, too?',
  'Never mind, my mistake. When will ORD-2024-8847 arrive again?',
  'Perfect, that is all. Thank you and goodbye!',
]

const folder = mkdtempSync(join(tmpdir(), 'customer-service-'))
const shop = await openShop(join(folder, 'shop.db'), STOCK)
const { model, close } = await openModel()
let hf = await openHoldfast(`sqlite:${join(folder, 'sessions.db')}`)
let thread = hf.thread(makeSupport(model, shop), { user: 'maya', session: 'bf-847' })
const context = { email: 'maya@example.com' }

try {
  for (const [i, line] of CUSTOMER.entries()) {
    say('Maya', line)
    await answer(line, `message-${i + 1}`)
    if (i === 8) await restart('The support process is restarted for an update.')
  }
  const state = await thread.state()
  const { calls, input, output, cost } = await tenantUsage(hf)
  note(`${CUSTOMER.length} turns, ${calls} model calls, ${input} tokens in, ${output} out, cost $${cost.toFixed(4)}.`)
  note(
    `${state?.resumes.count} resumes saved ${state?.resumes.tokensSaved} tokens. Returns in the shop: ${shop.countReturns()}.`,
  )
} finally {
  await hf.close()
  await close()
  shop.close()
  rmSync(folder, { recursive: true, force: true })
}

/** One turn of the customer: until the agent has answered, with a supervisor who decides on what needs approval. */
async function answer(input: string, key: string): Promise<void> {
  let options: { input?: string; key?: string } = { input, key }
  for (;;) {
    const stream = thread.stream({ ...options, context })
    for await (const event of stream) {
      if (event.type === 'retry') note(`the model is busy (${event.error.message.replace(/\.$/, '')}), once more`)
      if (event.type === 'superseded') note('the connection broke, the reply is asked for again')
      if (event.type === 'step' && event.status === 'completed' && event.step.includes('tool ')) {
        note(event.step.replace(/^\d+:tool /, '').replace(/\[\d+\]$/, ''))
      }
    }
    const outcome = await stream.outcome
    if (outcome.status === 'completed') return say('Support', outcome.output)
    if (outcome.status !== 'paused') throw new Error(JSON.stringify(outcome))
    for (const { id, question } of outcome.pauses) {
      const { tool, input: args } = question as { tool: string; input: Record<string, unknown> }
      note(`${tool} of ${args['sku']} waits for a supervisor. No process holds the session meanwhile.`)
      const decision = supervise(String(args['orderId']))
      await restart(`Hours later, in another process, the supervisor ${decision.approved ? 'agrees' : 'declines'}.`)
      await thread.answer(id, decision, { by: 'supervisor' })
    }
    options = {}
  }
}

/** The supervisor of the shop, who keeps to the 30 days. */
function supervise(orderId: string): { approved: boolean; reason?: string } {
  const delivered = shop.order(orderId)?.delivered ?? TODAY
  const days = Math.round((Date.parse(TODAY) - Date.parse(delivered)) / 86_400_000)
  if (days <= 30) return { approved: true }
  return { approved: false, reason: `order ${orderId} arrived ${days} days ago, and returns are open for 30 days.` }
}

async function restart(why: string): Promise<void> {
  note(why)
  await hf.close()
  hf = await openHoldfast(`sqlite:${join(folder, 'sessions.db')}`)
  thread = hf.thread(makeSupport(model, shop), { user: 'maya', session: 'bf-847' })
}

async function openModel(): Promise<{ model: LanguageModel; close: () => Promise<void> }> {
  const { MODEL_URL: baseURL, MODEL_KEY: apiKey, MODEL_NAME: name } = process.env
  if (baseURL !== undefined && apiKey !== undefined) {
    const id = name ?? (await firstModel(baseURL, apiKey))
    const provider = createOpenAICompatible({ name: 'remote', baseURL, apiKey, includeUsage: true })
    return { model: provider(id), close: async () => {} }
  }
  const server = await startModelServer({
    reply: playSupport,
    faults: { seed: 11, rate429: 0.05, rate500: 0.04, dropRate: 0.04 },
    models: ['scripted-support'],
  })
  const provider = createOpenAICompatible({ name: 'local', baseURL: server.url, includeUsage: true })
  return { model: provider('scripted-support'), close: () => server.close() }
}

async function firstModel(baseURL: string, apiKey: string): Promise<string> {
  const response = await fetch(`${baseURL}/models`, { headers: { authorization: `Bearer ${apiKey}` } })
  const { data = [] } = (await response.json()) as { data?: { id: string }[] }
  if (data[0] === undefined) throw new Error('The endpoint lists no models: set MODEL_NAME.')
  return data[0].id
}

function say(who: string, text: string): void {
  const indent = ' '.repeat(10)
  const words = text.split(/\s+/)
  let line = `${who.padEnd(9)} `
  const out: string[] = []
  for (const word of words) {
    if (line.length + word.length > 100) {
      out.push(line)
      line = indent
    }
    line += `${word} `
  }
  console.log(`\n${[...out, line].map((each) => each.trimEnd()).join('\n')}`)
}

function note(text: string): void {
  console.log(`${' '.repeat(10)}· ${text}`)
}
