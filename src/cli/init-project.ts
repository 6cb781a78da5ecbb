/** The files of a new project, by path. */
export function projectFiles(project: {
  readonly name: string
  readonly version: string
  readonly store: string
}): Readonly<Record<string, string>> {
  const { name, version, store } = project
  return {
    'package.json': json({
      name,
      version: '0.1.0',
      private: true,
      type: 'module',
      scripts: {
        start: 'node start.mjs',
        worker: 'holdfast worker support.mjs',
        threads: 'holdfast threads',
        test: 'node --test test/',
      },
      dependencies: { holdfast: `^${version}` },
      engines: { node: '>=20.20' },
    }),
    'holdfast.config.json': json({ store }),
    '.gitignore': 'node_modules/\n*.db*\n*.jsonl\n',
    'support.mjs': SUPPORT,
    'shop.mjs': SHOP,
    'model.mjs': MODEL,
    'start.mjs': START,
    'test/survives-a-kill.test.mjs': TEST,
    'README.md': readme(name),
  }
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}

const SUPPORT = `// The program: a customer asks for a return. Every step is recorded once; after a crash its result is read back.
import { flow } from 'holdfast'
import { askModel } from './model.mjs'
import { findOrder, openReturn } from './shop.mjs'

export const support = flow({ name: 'support', version: '1.0.0' }, async (ctx, { orderId, message }) => {
  const order = await ctx.step('find order', () => findOrder(orderId))
  const wish = await ctx.step('understand', () => askModel('What does the customer want? ' + message))

  // Nothing runs while a person thinks: the thread rests in the store, for a second or a month.
  const answer = order.price > 100 ? await ctx.pause({ ask: 'Open a return?', order, wish }) : { approved: true }
  if (!answer.approved) return 'We are sorry: this order can not be returned.'

  // The key is the same after every crash, so the shop opens one return however often it is asked.
  const label = await ctx.step('open return', { effect: 'idempotent', input: { orderId } }, ({ idempotencyKey }) =>
    openReturn(orderId, idempotencyKey),
  )
  return ctx.step('reply', () => askModel('Tell the customer that the return label is ' + label))
})
`

const SHOP = `// The world outside: a shop that knows nothing of Holdfast. Each call leaves a line behind, so tests can count them.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const ORDERS = { 'ORD-1': { item: 'socks', price: 12 }, 'ORD-2': { item: 'coat', price: 240 } }
const JOURNAL = process.env.SHOP_JOURNAL ?? 'shop.jsonl'

export async function findOrder(id) {
  note({ call: 'find order', id })
  const order = ORDERS[id]
  if (!order) throw new Error('There is no order ' + id + '.')
  return { id, ...order }
}

export async function openReturn(id, key) {
  const before = journal().find((line) => line.call === 'open return' && line.key === key)
  if (before) return before.label
  const label = 'RET-' + id
  note({ call: 'open return', id, key, label })
  // The reply takes a while: long enough to be killed before it is recorded.
  await sleep(Number(process.env.SHOP_DELAY_MS ?? 50))
  return label
}

export function journal() {
  return existsSync(JOURNAL) ? readFileSync(JOURNAL, 'utf8').trim().split('\\n').map((line) => JSON.parse(line)) : []
}

function note(line) {
  appendFileSync(JOURNAL, JSON.stringify(line) + '\\n')
  console.error('shop: ' + line.call)
}
`

const MODEL = `// The model. With MODEL_URL any OpenAI-compatible server; without, a local one that answers from a script.
import { startModelServer } from 'holdfast/testing'

let local

export async function askModel(prompt) {
  const url = process.env.MODEL_URL ?? (local ??= await startModelServer({ reply: answer })).url
  const response = await fetch(url + '/chat/completions', {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer ' + (process.env.MODEL_KEY ?? 'none') },
    body: JSON.stringify({ model: process.env.MODEL ?? 'scripted', messages: [{ role: 'user', content: prompt }] }),
  })
  if (!response.ok) throw new Error('The model answered ' + response.status + '.')
  return (await response.json()).choices[0].message.content
}

export async function closeModel() {
  await local?.close()
}

function answer({ messages }) {
  const prompt = String(messages.at(-1).content)
  return { text: prompt.startsWith('Tell') ? 'Done: ' + prompt.split(' is ').at(-1) : 'a return' }
}
`

const START = `// npm start [order] [thread]. Run it again after a crash, or after an approval: it goes on where it stopped.
import { readFileSync } from 'node:fs'
import { openHoldfast } from 'holdfast'
import { closeModel } from './model.mjs'
import { support } from './support.mjs'

const [orderId = 'ORD-2', id = 'demo-1'] = process.argv.slice(2)
const { store } = JSON.parse(readFileSync(new URL('holdfast.config.json', import.meta.url), 'utf8'))
const hf = await openHoldfast(process.env.HOLDFAST_STORE ?? store)
const thread = hf.thread(support, id)

const outcome = await thread.run({
  input: { orderId, message: 'I want to send it back.' },
  key: 'first message',
  lease: Number(process.env.LEASE_MS ?? 10_000),
})
if (outcome.status === 'completed') console.log(outcome.output)
else if (outcome.status === 'paused') {
  console.log('It waits for a person: ' + JSON.stringify(outcome.pauses[0]?.question))
  console.log('Say yes with: npx holdfast approve ' + id + ' && npm start')
} else console.log(outcome)
await hf.close()
await closeModel()
`

const TEST = `// The process is killed after the shop opened the return and before anything of it was recorded.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const start = fileURLToPath(new URL('../start.mjs', import.meta.url))

test('a killed run is resumed, and nothing is done twice', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'support-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const shop = join(folder, 'shop.jsonl')
  const env = {
    ...process.env,
    HOLDFAST_STORE: 'sqlite:' + join(folder, 'agents.db'),
    SHOP_JOURNAL: shop,
    LEASE_MS: '1000',
  }

  const victim = spawn(process.execPath, [start, 'ORD-1', 'test-1'], { env: { ...env, SHOP_DELAY_MS: '60000' } })
  for await (const line of victim.stderr) if (String(line).includes('open return')) break
  victim.kill('SIGKILL')

  // Until the lease of the dead process has run out, the thread is busy.
  let said = ''
  while (!said.includes('RET-ORD-1')) {
    const heir = spawn(process.execPath, [start, 'ORD-1', 'test-1'], { env, stdio: ['ignore', 'pipe', 'inherit'] })
    said = ''
    for await (const chunk of heir.stdout) said += chunk
    if (!said.includes('busy')) break
    await sleep(200)
  }
  assert.match(said, /Done: RET-ORD-1/)

  const calls = readFileSync(shop, 'utf8').trim().split('\\n').map((line) => JSON.parse(line).call)
  assert.deepEqual(calls, ['find order', 'open return'])
})
`

function readme(name: string): string {
  return `# ${name}

A durable agent. It survives crashes, waits for people without holding a process, and does nothing twice.

| command | what it does |
|---|---|
| \`npm start\` | runs a conversation until it waits for an approval |
| \`npx holdfast pauses\` | the questions that are open |
| \`npx holdfast approve demo-1\` | says yes; then \`npm start\` goes on |
| \`npx holdfast history demo-1\` | every checkpoint, and its branches |
| \`npm run worker\` | takes up whatever is due, of any number of threads |
| \`npm test\` | kills a run with SIGKILL and resumes it |

\`support.mjs\` is the program, \`shop.mjs\` the world outside, \`model.mjs\` the model, \`holdfast.config.json\` names the
store. For Postgres, write \`postgres://user@host/database\` there and \`npm install pg\`.
`
}
