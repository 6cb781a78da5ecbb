// A worker process of the tests: node fleet-worker.mjs <store> <connection> <queue> <service> <name>
import { openHoldfast } from 'holdfast'
import { openBullmq } from 'holdfast/bullmq'
import { makeOrders } from './orders.mjs'

const [store, connection, queue, service, name] = process.argv.slice(2)
const hf = await openHoldfast(store)
const engine = await openBullmq(hf, { connection, queue, reconcileMs: 1000 })
// Short, so that what a killed process held is soon somebody else's; nothing depends on how short.
const bull = { lockDuration: 2000, stalledInterval: 1000 }
const worker = engine.worker({ programs: [makeOrders(service, name)], concurrency: 8, leaseMs: 3000, name, bull })
process.send('ready')
await worker.done()
await engine.close()
await hf.close()
process.disconnect()
