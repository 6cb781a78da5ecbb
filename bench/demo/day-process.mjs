// @ts-check
// The demo in a process of its own, so that what it and all its children took can be told from everything else.
import { mergeMetrics, openHoldfast } from 'holdfast'
import { runDemo } from '#src/demo/run-demo.js'
import { isProcessMetrics, METRICS_COLLECTION, METRICS_SCOPE } from '#src/internal.js'

const [given = '{}'] = process.argv.slice(2)
const { store, ...day } = JSON.parse(given)
// Whoever wanted to know is gone.
const leave = () => process.exit(1)
process.on('disconnect', leave)
const begun = Date.now()
const report = await runDemo({ ...day, store, tenant: 'demo' })
const hf = await openHoldfast(store)
/** @type {Map<string, Parameters<typeof mergeMetrics>[0][number]>} */
const found = new Map()
for (const one of [hf.tenant('demo'), hf]) {
  const { items } = await one.store.scope(METRICS_SCOPE).collection(METRICS_COLLECTION).list({ limit: 10_000 })
  for (const { value } of items) {
    if (isProcessMetrics(value) && value.startedAt >= begun) found.set(value.process, value)
  }
}
await hf.close()
const { counters } = mergeMetrics([...found.values()])
process.send?.({ report, counters })
process.off('disconnect', leave)
process.disconnect()
