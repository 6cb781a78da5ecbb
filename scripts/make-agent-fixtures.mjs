// Writes threads of agents, as this version stores them, into test/fixtures/agent-v3. test/agent/fixtures.test.ts resumes,
// replays and forks every one of them for ever. Those in agent-v1 are of a version whose steps recorded what they returned,
// and whose claims had entries of their own; those in agent-v2 of one whose runs repeated the hash of their input.
//
// A fixture is never rewritten once it was released: threads like it are out there. This script therefore leaves files
// alone that exist, and SHA256SUMS lets the test notice one that was changed. Before records take another form, give the
// folder the next number. Times and ids are fixed.
//
//   node scripts/make-agent-fixtures.mjs
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from './build.mjs'

const folder = join(dirname(fileURLToPath(import.meta.url)), '..', 'test', 'fixtures', 'agent-v3')

if (!(await build())) process.exit(1)
const { agent, Holdfast, tool } = await import('../dist/index.js')
const { LogStore } = await import('../dist/log/index.js')
const { openMemory } = await import('../dist/drivers/memory/memory-driver.js')
const { virtualClock } = await import('../dist/testing/virtual-clock.js')

const never = () => new Promise(() => {})

/** How many replies a run has: one call, two calls at once, the answer. */
const CALLS = [1, 2, 0]

function makeAgent(stage, hanging) {
  let replies = 0
  const model = {
    specificationVersion: 'v3',
    provider: 'fixture',
    modelId: 'scripted',
    supportedUrls: {},
    async doGenerate() {
      const number = replies++
      const calls = CALLS[number % 3]
      if (stage === 'mid-model' && number === 4) await hanging()
      const content = Array.from({ length: calls }, (_, i) => ({
        type: 'tool-call',
        toolCallId: `call-${number}-${i}`,
        toolName: 'look',
        input: JSON.stringify({ order: `ORD-${number}-${i}` }),
      }))
      if (calls === 0) content.push({ type: 'text', text: `Answer ${number}.` })
      const finishReason = { unified: calls ? 'tool-calls' : 'stop', raw: undefined }
      const usage = { inputTokens: { total: 10 + number }, outputTokens: { total: 5 } }
      return { content, finishReason, usage, warnings: [] }
    },
    async doStream() {
      throw new Error('not used')
    },
  }
  const look = tool({
    description: 'Looks an order up',
    inputSchema: { '~standard': { version: 1, vendor: 'fixture', validate: (value) => ({ value }) } },
    jsonSchema: { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] },
    effect: 'read',
    async execute({ order }) {
      if (stage === 'mid-tool' && order === 'ORD-4-1') await hanging()
      return { order, status: 'in transit' }
    },
  })
  return agent({
    name: 'looker',
    version: '1.0.0',
    model,
    instructions: 'You help.',
    tools: { look },
    prices: { scripted: { input: 2, output: 10 } },
    stream: false,
  })
}

async function makeFixture(stage) {
  const clock = virtualClock({ now: Date.UTC(2026, 0, 2, 3, 4, 5) })
  let ids = 0
  const randomId = () => `fixture-${String(ids++).padStart(8, '0')}`
  const driver = await openMemory({ clock })
  const hf = new Holdfast(new LogStore(driver, { clock, randomId }))
  let hangs
  const hung = new Promise((resolve) => {
    hangs = resolve
  })
  const thread = hf.thread(
    makeAgent(stage, () => {
      hangs()
      return never()
    }),
    stage,
  )
  await thread.run({ input: 'first question', key: 'one' })
  const running = thread.run({ input: 'second question', key: 'two' })
  // A process that dies in the middle: what its other steps had recorded by then is what is found.
  await Promise.race([running, hung])
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
  if (stage === 'forked') {
    const past = await thread.history({ limit: 100 })
    await thread.at(past[3].id).fork({ name: 'other' })
  }
  const { heads } = await driver.heads({ order: 'created', direction: 'asc', limit: 10 })
  const logs = []
  for (const { lease: _, ...head } of heads) {
    const entries = await driver.read(head.log, head.base.seq, 1000)
    logs.push({ head, entries: entries.map(showEntry) })
  }
  const about = `An agent at stage ${stage}. Never change this file; see scripts/make-agent-fixtures.mjs.`
  return { about, format: 1, program: 'looker', stage, logs }
}

function showEntry({ seq, keyframe, hash, header, body }) {
  const base64 = (bytes) => Buffer.from(bytes).toString('base64')
  return { seq, keyframe, hash, header: base64(header), body: base64(body) }
}

mkdirSync(folder, { recursive: true })
for (const stage of ['completed', 'forked', 'mid-model', 'mid-tool']) {
  const file = join(folder, `agent-${stage}.json`)
  if (existsSync(file)) {
    console.log(`kept    agent-${stage}.json`)
    continue
  }
  writeFileSync(file, `${JSON.stringify(await makeFixture(stage), undefined, 1)}\n`)
  console.log(`written agent-${stage}.json`)
}
const sums = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .sort()
  .map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(folder, name)))
        .digest('hex')}  ${name}\n`,
  )
writeFileSync(join(folder, 'SHA256SUMS'), sums.join(''))
process.exit(0)
