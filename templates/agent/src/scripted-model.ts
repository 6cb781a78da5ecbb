// Plays the model, so that the project works offline and its tests give the same result every time. It is asked over
// real HTTP, as a model is, and sees what a model would see.
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModel } from 'holdfast'
import { type ModelServerRequest, type ScriptedReply, startModelServer } from 'holdfast/testing'

export async function scriptedModel(): Promise<LanguageModel> {
  const server = await startModelServer({ reply: play, unref: true })
  return createOpenAICompatible({ name: 'local', baseURL: server.url, includeUsage: true })('scripted')
}

function play({ messages }: ModelServerRequest): ScriptedReply {
  const asked = messages.findLastIndex(({ role }) => role === 'user')
  const said = String(messages[asked]?.['content'])
  const results = messages.slice(asked).filter(({ role }) => role === 'tool')
  const last = results.at(-1)
  if (last === undefined) {
    const orderId = /ORD-\d+/.exec(said)?.[0]
    return orderId ? call('getOrder', { orderId }) : 'Hello! Which order is it about?'
  }
  const result = parse(String(last['content']))
  if (result['label'] !== undefined) return `Done: your return label is ${result['label']}.`
  if (result['id'] === undefined) return `I am sorry, that is not possible: ${last['content']}`
  if (/back|return|refund/i.test(said)) return call('openReturn', { orderId: result['id'] })
  return `Order ${result['id']}, ${result['item']}, was ${result['status']}.`
}

function call(name: string, input: Record<string, unknown>): ScriptedReply {
  return { toolCalls: [{ name, arguments: input }] }
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}
