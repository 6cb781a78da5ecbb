// The demo's model, in a process of its own: answers over HTTP after a while, and counts the tokens as a provider would,
// whether or not whoever asked still lives.
import { type ModelServerRequest, type ScriptedAnswer, startModelServer } from '../testing/index.js'
import { rollDice } from './dice.js'
import type { FromModel, ModelSettings, ToModel } from './shop/messages.js'
import { playSupport } from './play-support.js'

const [settings = '{}'] = process.argv.slice(2)
const { latencyMs } = JSON.parse(settings) as ModelSettings
const dice = rollDice(1, 'latency')
const bill = { calls: 0, tokens: 0 }

const server = await startModelServer({ reply, keep: 0, models: ['scripted-support'] })
process.on('SIGINT', () => {})
process.on('disconnect', () => process.exit(1))
process.on('message', ({ type }: ToModel) => {
  if (type === 'bill') tell({ type: 'bill', ...bill })
})
tell({ type: 'ready', url: server.url })

function reply(request: ModelServerRequest): ScriptedAnswer {
  const said = playSupport(request)
  const answer = typeof said === 'string' ? { text: said } : said
  const output = Math.ceil(((answer.text ?? '').length + JSON.stringify(answer.toolCalls ?? '').length) / 4)
  bill.calls++
  bill.tokens += request.promptTokens + output
  return { ...answer, usage: { input: request.promptTokens, output }, latencyMs: dice.between(...latencyMs) }
}

function tell(message: FromModel): void {
  process.send?.(message)
}
