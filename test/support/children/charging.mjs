// A worker that can be stopped between two steps:
//   node charging.mjs <url> <file> <lease in ms> <thread> …
// Prints "between" when all threads are past their first step, waits for a line on stdin, and prints how each ended.
import { once } from 'node:events'
import { openHoldfast } from 'holdfast'
import { charging } from './charging-program.mjs'

const [url, file, lease, ...threads] = process.argv.slice(2)
const hf = await openHoldfast(url)
let waiting = 0
const go = once(process.stdin, 'data')
const between = () => {
  if (++waiting === threads.length) console.log('between')
  return go
}
await Promise.all(
  threads.map(async (thread) => {
    const running = hf.thread(charging(file, 'first', between), thread).run({ input: 1, leaseMs: Number(lease) })
    const end = await running.then(
      ({ status }) => status,
      ({ code }) => code,
    )
    console.log(`ended ${thread} ${end}`)
  }),
)
process.stdin.destroy()
await hf.close()
