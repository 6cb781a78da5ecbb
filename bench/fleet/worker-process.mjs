// @ts-check
// A worker in a process of its own, with the options that users get; tells its parent when a run starts, or how many did, and
// when it is told to stop what it took of the processors.
//   node worker-process.mjs <store> <options as JSON: places, leaseMs>
import { openHoldfast } from 'holdfast'
import { makePrograms } from './program.mjs'

const TELL_EVERY_MS = 20

const [url = '', given = '{}'] = process.argv.slice(2)
const { places, leaseMs } = JSON.parse(given)
let count = 0
let told = 0
const counting = places === undefined ? undefined : setInterval(tellCount, TELL_EVERY_MS)
const { programs, walk } = makePrograms((id, at) => {
  if (counting === undefined) process.send?.({ id, at })
  else count++
})
const hf = await openHoldfast(url)
const before = process.cpuUsage()
const worker = hf.worker({
  programs: Object.values(programs),
  ...(places === undefined ? {} : { concurrency: places }),
  ...(leaseMs === undefined ? {} : { leaseMs }),
})
// After a signal: what it did not end is another's by now.
void worker.done().then(leave)
process.on('message', async (order) => {
  if (order === 'walk') return walk()
  const { user, system } = process.cpuUsage(before)
  clearInterval(counting)
  process.send?.({ cpuMs: (user + system) / 1000 })
  await worker.stop()
})
process.on('disconnect', () => process.exit())
process.send?.('ready')

function tellCount() {
  if (count === told) return
  process.send?.({ started: count - told })
  told = count
}

async function leave() {
  await hf.close()
  if (process.connected) process.disconnect()
}
