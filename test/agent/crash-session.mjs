// One session of 20 turns, for a child that is killed and for the test that takes it up again.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { agent, tool } from 'holdfast'
import { z } from 'zod'

export const TURNS = 20
export const THREAD = 'session'

/** What the scripted model does: decided by the conversation alone. */
export function reply({ messages }) {
  const turn = messages.filter(({ role }) => role === 'user').length
  if (messages.at(-1)?.role === 'tool') return `That is done (${turn}).`
  const call = (name, i = 0) => ({ name, id: `call-${turn}-${i}`, arguments: { orderId: `ORD-${turn}-${i}` } })
  switch (turn % 5) {
    case 1:
      return { toolCalls: [call('status')] }
    case 2:
      return { toolCalls: [call('status', 0), call('note', 1), call('status', 2)] }
    case 3:
      return { toolCalls: [call('charge')] }
    case 4:
      return { toolCalls: [call('refund')] }
    default:
      return `You are welcome (${turn}).`
  }
}

/** The outside world: one line for each time that a tool ran, which no crash of ours takes back. */
export function readLedger(file) {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []
}

export function makeAgent(modelUrl, ledger, phase) {
  const inputSchema = z.object({ orderId: z.string() })
  const run =
    (name) =>
    (input, { callId }) => {
      appendFileSync(ledger, `${phase} ${name} ${callId}\n`)
      return { name, ...input }
    }
  return agent({
    name: 'support',
    version: '1.0.0',
    model: createOpenAICompatible({ name: 'local', baseURL: modelUrl, includeUsage: true })('scripted'),
    instructions: 'You help customers.',
    tools: {
      status: tool({ inputSchema, effect: 'read', execute: run('status') }),
      note: tool({ inputSchema, effect: 'idempotent', execute: run('note') }),
      charge: tool({ inputSchema, effect: 'once', execute: run('charge') }),
      refund: tool({ inputSchema, effect: 'once', needsApproval: true, execute: run('refund') }),
    },
  })
}

/** Says everything that the customer says, and answers what a person is asked. Resumes what is unfinished. */
export async function drive(hf, program, ledger) {
  const thread = hf.thread(program, THREAD)
  let outcome
  for (let turn = 1; turn <= TURNS; turn++) {
    const options = { input: `Message ${turn}`, key: `message-${turn}`, leaseMs: 1000, busy: 'queue' }
    outcome = await thread.run(options)
    while (outcome.status === 'paused') {
      for (const { id, kind, question } of outcome.pauses) {
        await thread.answer(id, kind === 'approval' ? { approved: true } : lookUp(question, ledger))
      }
      outcome = await thread.run(options)
    }
    if (outcome.status !== 'completed') throw new Error(`turn ${turn}: ${JSON.stringify(outcome)}`)
  }
  return outcome
}

// What a person does who is asked about an unknown outcome: looks at the other side.
function lookUp({ input }, ledger) {
  const happened = readLedger(ledger).some((line) => line.endsWith(` ${input.callId}`))
  return happened ? { outcome: 'succeeded', result: { name: input.name, ...input.input } } : { outcome: 'not-executed' }
}
