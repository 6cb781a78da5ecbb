// A worker that stands still between two steps, because it is stopped, or because its own code blocks the event loop:
//   node charging.mjs <url> <file> <lease in ms> <stopped | blocked> <thread> …
// Prints "between" when all threads are past their first step, waits for a line on stdin, and prints how each ended.
import { once } from 'node:events'
import { readSync } from 'node:fs'
import { openHoldfast } from 'holdfast'
import { charging } from './charging-program.mjs'

const [url, file, lease, how, ...threads] = process.argv.slice(2)
const hf = await openHoldfast(url)
let waiting = 0
let release
const go = new Promise((resolve) => {
  release = resolve
})
if (how === 'stopped') void once(process.stdin, 'data').then(release)
const between = () => {
  if (++waiting < threads.length) return go
  console.log('between')
  if (how === 'blocked') {
    // Nothing of this process runs until the line is there: no timer, no renewal, no reply that has arrived.
    readSync(0, Buffer.alloc(1))
    release()
  }
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
if (how === 'stopped') process.stdin.destroy()
await hf.close()
