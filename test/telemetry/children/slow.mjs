// Runs threads of a slow program until it is killed: says which step it is at, and reports its figures every 100 ms.
//   node slow.mjs <store> <thread> <model url>
import { openHoldfast } from 'holdfast'
import { makeSlowAgent } from '../slow-agent.mjs'

const [url, thread, modelUrl] = process.argv.slice(2)
const hf = await openHoldfast(url, { telemetry: { flushEveryMs: 100 } })
const outcome = await hf
  .thread(
    makeSlowAgent(modelUrl, () => process.stdout.write('slow\n')),
    thread,
  )
  .run({ input: 'Go on.', leaseMs: 1000 })
process.stdout.write(`${outcome.status}\n`)
await hf.close()
