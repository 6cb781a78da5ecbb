// One process of test/retention/processes.test.ts: runs threads, or sweeps, until it is told to stop.
import { append, END, graph, openHoldfast, START } from 'holdfast'

const [url, role, name, ttl] = process.argv.slice(2)
const ttlMs = Number(ttl)
const hf = await openHoldfast(url, { telemetry: false, retention: { ttlMs, keepLast: 5 } })
let stopped = false
process.on('message', () => {
  stopped = true
})

const talk = graph({ name: 'talk', version: '1.0.0', state: { said: append() } })
  .node('reply', ({ said }) => ({ said: `reply ${said.length}` }))
  .edge(START, 'reply')
  .edge('reply', END)

/** Every acknowledged run of the threads that are kept, and what went wrong. */
const runs = {}
const problems = []

async function write() {
  for (let i = 0; !stopped; i++) {
    const large = i % 3 === 0 ? 'shared'.padEnd(70_000, String(i % 9)) : `turn ${i}`
    const kept = `kept-${name}-${i % 2}`
    const outcome = await hf
      .thread(talk, kept, { retention: { ttlMs: 'never', keepLast: 5 } })
      .run({ input: { said: large } })
    if (outcome.status !== 'completed') problems.push(`${kept}: ${outcome.status}`)
    runs[kept] = (runs[kept] ?? 0) + 1
    // Two processes each, and gone as soon as nobody uses it.
    const brief = `brief-${i % 5}`
    const { status } = await hf.thread(talk, brief).run({ input: { said: large }, busy: 'queue', expect: 'existing' })
    if (status !== 'completed') problems.push(`${brief}: ${status}`)
    if (i % 4 === 0) {
      const [newest] = await hf.inspect(kept).history({ limit: 1 })
      await hf
        .thread(talk, kept)
        .at(newest.id)
        .fork({ name: `fork-${i}` })
    }
  }
}

async function sweep() {
  while (!stopped) {
    await hf.sweep({ graceMs: 30_000 })
    runs.sweeps = (runs.sweeps ?? 0) + 1
  }
}

try {
  await (role === 'write' ? write() : sweep())
} catch (error) {
  problems.push(`${error.code ?? ''} ${error.stack}`)
}
await hf.close()
process.send({ runs, problems }, () => process.disconnect())
