// Writes threads as the runtime of stored format 1 leaves them into test/fixtures/runtime-v1: of a graph and a flow that
// are deliberately old, at every stage where a thread can be found. test/runtime/versions/fixtures.test.ts resumes every one of
// them for ever, by newer programs.
//
// A fixture is never rewritten once it was released: threads like it are out there. This script therefore leaves files
// alone that exist, and SHA256SUMS lets the test notice one that was changed. For a new stage add one below; when the
// runtime keeps its state in another way, copy this script and its folder. Times and ids are fixed.
//
//   node scripts/make-runtime-fixtures.mjs
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from './build.mjs'

const folder = join(dirname(fileURLToPath(import.meta.url)), '..', 'test', 'fixtures', 'runtime-v1')

if (!(await build())) process.exit(1)
const { append, END, flow, graph, Holdfast, last, LogStore, START } = await import('../dist/index.js')
const { openMemory } = await import('../dist/drivers/memory/memory-driver.js')
const { virtualClock } = await import('../dist/testing/virtual-clock.js')

const HOUR = 3_600_000
const never = () => new Promise(() => {})

/** The graph as it was: `stage` in its state decides how far a thread comes. */
function oldDesk(hanging) {
  const polish = graph({
    name: 'polish',
    version: '1.0.0',
    state: { text: last(), rounds: last(undefined, { initial: 0 }) },
  })
    .node('improve', ({ text, rounds }) => ({ text: `${text}!`, rounds: rounds + 1 }))
    .node('ask', async ({ text }, ctx) => {
      const said = await ctx.pause({ polish: text })
      return { text: `${text} (${said})` }
    })
    .edge(START, 'improve')
    .edge('improve', 'ask')
    .edge('ask', END)
  return graph({
    name: 'desk',
    version: '1.0.0',
    retry: { attempts: 1 },
    state: { stage: last(), text: last(), notes: append() },
  })
    .node('classify', () => ({ notes: ['classified'] }))
    .node('draft', async ({ stage }, ctx) => {
      if (stage === 'mid-run') await hanging()
      await ctx.step('look up', () => 'found')
      return { text: 'a draft' }
    })
    .node('proof', async ({ stage, text }) => {
      if (stage === 'mid-join') await hanging()
      return { text: `${text}, proofread` }
    })
    .node('review', async ({ stage }, ctx) => {
      if (stage === 'failed') throw new Error('the reviewer is away')
      if (stage === 'sleeping') await ctx.sleep(HOUR)
      if (stage === 'paused') return { notes: [await ctx.pause({ review: 'now' })] }
      return { notes: ['reviewed'] }
    })
    .node('polish', polish, { input: ({ text }) => ({ text }), output: ({ text }) => ({ text }) })
    .branch('review', ({ stage }) => (stage === 'nested' ? 'polish' : END), ['polish', END])
    .edge(START, 'classify')
    .edge(START, 'draft')
    .edge('draft', 'proof')
    .edge(['classify', 'proof'], 'review')
    .edge('polish', END)
}

/** The flow as it was. */
function oldOrder(hanging) {
  return flow({ name: 'order', version: '1.0.0', retry: { attempts: 1 } }, async (ctx, { stage }) => {
    const price = await ctx.step('price', { input: stage }, () => 40)
    const [stock] = await Promise.all([
      ctx.step('stock', () => 'in stock'),
      ctx.step('reserve', async () => {
        if (stage === 'mid-run') await hanging()
        return true
      }),
    ])
    if (stage === 'sleeping') await ctx.sleep(HOUR)
    const said = stage === 'paused' ? await ctx.pause({ pay: price }) : 'not asked'
    if (stage === 'failed') await ctx.step('charge', () => Promise.reject(new Error('no funds')))
    return { price, stock, said }
  })
}

const STAGES = {
  desk: ['completed', 'failed', 'mid-join', 'mid-run', 'nested', 'paused', 'sleeping'],
  order: ['completed', 'failed', 'mid-run', 'paused', 'sleeping'],
}

async function makeFixture(name, stage) {
  const clock = virtualClock({ now: Date.UTC(2026, 0, 2, 3, 4, 5) })
  let ids = 0
  const randomId = () => `fixture-${String(ids++).padStart(8, '0')}`
  const driver = await openMemory({ clock })
  const hf = new Holdfast(new LogStore(driver, { clock, randomId }))
  let hangs
  const hung = new Promise((resolve) => {
    hangs = resolve
  })
  const hanging = () => {
    hangs()
    return never()
  }
  const program = name === 'desk' ? oldDesk(hanging) : oldOrder(hanging)
  const running = hf.thread(program, stage).run({ input: { stage }, key: 'the-input' })
  // A process that dies in the middle: what its other steps had recorded by then is what is found.
  await Promise.race([running, hung])
  for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
  const { heads } = await driver.heads({ order: 'created', direction: 'asc', limit: 10 })
  const logs = []
  for (const { lease: _, ...head } of heads) {
    const entries = await driver.read(head.log, head.base.seq, 1000)
    logs.push({ head, entries: entries.map(showEntry) })
  }
  return {
    about: `${name} at stage ${stage}: runtime of format 1. Never change this file; see scripts/make-runtime-fixtures.mjs.`,
    format: 1,
    program: name,
    stage,
    logs,
  }
}

function showEntry({ seq, keyframe, hash, header, body }) {
  const base64 = (bytes) => Buffer.from(bytes).toString('base64')
  return { seq, keyframe, hash, header: base64(header), body: base64(body) }
}

mkdirSync(folder, { recursive: true })
for (const [name, stages] of Object.entries(STAGES)) {
  for (const stage of stages) {
    const file = join(folder, `${name}-${stage}.json`)
    if (existsSync(file)) {
      console.log(`kept    ${name}-${stage}.json`)
      continue
    }
    writeFileSync(file, `${JSON.stringify(await makeFixture(name, stage), undefined, 1)}\n`)
    console.log(`written ${name}-${stage}.json`)
  }
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
// Threads that hang in the middle would keep waiting.
process.exit(0)
