import { Client } from '@langchain/langgraph-sdk'
import { agent, tool } from 'holdfast'
import type { UIMessageChunk } from 'ai'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { calls, setUp } from '../agent/agent-setup.js'
import { setUpServers, TOKENS } from './server-setup.js'

const { serve: serveModel } = setUp()
const { serve } = setUpServers()

async function serveLimited() {
  const { model } = await serveModel({ reply: () => calls(['look']) })
  const look = tool({ inputSchema: z.object({}), effect: 'read', execute: () => 'seen' })
  return serve({ programs: [agent({ name: 'support', version: '1.0.0', model, maxTurns: 1, tools: { look } })] })
}

it('tells native clients that a limit ended a run', async () => {
  const server = await serveLimited()
  const client = server.client()
  const outcome = await client.thread('t').run({ program: 'support', input: 'Go' })
  expect(outcome).toMatchObject({
    status: 'limited',
    limit: 'max-turns',
    reason: expect.stringContaining('limit of 1'),
  })
})

it('tells LangGraph’s clients of an error, as of a recursion limit', async () => {
  const server = await serveLimited()
  const client = new Client({ apiUrl: server.url, apiKey: TOKENS.ada.token, callerOptions: { maxRetries: 0 } })
  const { thread_id: id } = await client.threads.create()
  const events = []
  for await (const event of client.runs.stream(id, 'support', {
    input: { messages: [{ type: 'human', content: 'Go' }] },
  })) {
    events.push(event)
  }
  expect(events.at(-2)).toMatchObject({ event: 'error', data: { error: 'Limit: max-turns' } })
  expect(await client.threads.get(id)).toMatchObject({ status: 'error' })
  expect(await client.runs.list(id)).toMatchObject([{ status: 'error' }])
})

it('ends the AI SDK’s message for its length', async () => {
  const server = await serveLimited()
  const message = { id: 'm', role: 'user', parts: [{ type: 'text', text: 'Go' }] }
  const response = await server.post('/chat', { id: 'c', messages: [message] })
  const chunks = (await response.text())
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)) as UIMessageChunk)
  expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'length' })
})
