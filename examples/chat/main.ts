// A chat in the browser whose agent survives reloads, restarts and kills.
//   npm run example:chat            then open the address that it prints
// Without a key a local server plays the model. For a real one: MODEL_URL=… MODEL_KEY=… MODEL_NAME=… npm run example:chat
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { openHoldfast } from 'holdfast'
import { type ScriptedReply, startModelServer } from 'holdfast/testing'
import { startChat } from './chat-server.js'
import { makeSupport } from './support-agent.js'

const { MODEL_URL, MODEL_KEY, MODEL_NAME = 'deepseek-chat', PORT = '8788', STORE = 'sqlite:chat.db' } = process.env
const played = MODEL_URL === undefined ? await startModelServer({ reply: play }) : undefined
const provider = createOpenAICompatible({
  name: 'model',
  baseURL: MODEL_URL ?? (played?.url as string),
  includeUsage: true,
  ...(MODEL_KEY === undefined ? {} : { apiKey: MODEL_KEY }),
})
const hf = await openHoldfast(STORE)
const listening = await startChat(hf, [makeSupport(provider(MODEL_NAME))], Number(PORT))
console.log(`${listening.url}/ is a page with useChat, ${listening.url}/stream one with useStream.`)
console.log('Ask for "a return of ORD-1". Ctrl-C stops.')
process.once('SIGINT', async () => {
  await listening.close()
  await hf.close()
  await played?.close()
})

/** What the played model says: it looks orders up, and returns them if it is asked to. */
function play({
  messages,
}: {
  readonly messages: readonly { readonly role: string; readonly content?: unknown }[]
}): ScriptedReply {
  const last = messages.at(-1)
  const said = String(messages.findLast(({ role }) => role === 'user')?.content ?? '')
  const orderId = /ORD-\w+/.exec(said)?.[0] ?? 'ORD-1'
  if (last?.role === 'tool') return { text: `Done: ${String(last.content)}` }
  if (/return/i.test(said)) return { toolCalls: [{ name: 'returnOrder', arguments: { orderId } }] }
  if (/order/i.test(said)) return { toolCalls: [{ name: 'getOrder', arguments: { orderId } }] }
  return { text: 'Hello! Ask me about an order, or for a return.' }
}
