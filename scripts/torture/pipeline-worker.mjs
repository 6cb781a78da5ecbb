// Runs the library and kills itself right after its nth write to the store was acknowledged.
//   node pipeline-worker.mjs <store> <ledger> <table> <nth write, 0 for none> <documents> <chunks> <concurrency> <lease>
import { appendFileSync } from 'node:fs'
import { Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { openPipeline } from 'holdfast/pipeline'
import { endWithParent } from './end-with-parent.mjs'
import { makeDocuments, makePipeline, tableSink } from './pipeline-library.mjs'

const [url, ledger, table, nth, count, chunks, concurrency, leaseMs] = process.argv.slice(2)
endWithParent()
// A process that gets no processor for seconds holds the file for as long; that is no fault of this one.
const driver = await openDriver(url, { sqlite: { busyTimeoutMs: 60_000 } })
let writes = 0

const die = async () => {
  process.kill(process.pid, 'SIGKILL')
  await new Promise(() => {})
}
const counting = new Proxy(driver, {
  get(target, name) {
    const value = Reflect.get(target, name, target)
    if (typeof value !== 'function') return value
    if (name === 'append') {
      return async (batch) => {
        const results = await target.append(batch)
        for (const { status } of results) if (status === 'appended' && ++writes === Number(nth)) await die()
        return results
      }
    }
    if (name === 'transact') {
      return async (...args) => {
        const result = await target.transact(...args)
        if (result.status === 'appended' && ++writes === Number(nth)) await die()
        return result
      }
    }
    return value.bind(target)
  },
})

// Whoever watches sees whether memory grows, also of a process that is killed.
setInterval(() => {
  const { rss } = process.memoryUsage()
  appendFileSync(`${ledger}.memory`, `${JSON.stringify({ pid: process.pid, at: Date.now(), rss })}\n`)
}, 500).unref()

const hf = new Holdfast(new LogStore(counting))
const documents = makeDocuments(Number(count), Number(chunks))
const library = makePipeline(documents, ledger, tableSink(table, url.startsWith('postgres')), {
  concurrency: Number(concurrency),
  // As by default, unless one document is to follow the other.
  ahead: Number(concurrency) === 1 ? 0 : Number(concurrency) + 4,
})
const report = await openPipeline(hf, library).run({ leaseMs: Number(leaseMs) })
await hf.close()
process.stdout.write(
  `${JSON.stringify({ writes, report, peakMb: Math.round(process.resourceUsage().maxRSS / 1024) })}\n`,
)
