// A process that runs a thread step by step, or one that reads its events and prints each as a line of JSON.
//   node events.mjs run <url> <thread> [step at which it hangs until it is killed]
//   node events.mjs read <url> <thread> [after]
import { setTimeout as delay } from 'node:timers/promises'
import { flow, openHoldfast } from 'holdfast'

const [role, url, thread, after] = process.argv.slice(2)
const hf = await openHoldfast(url)

export const program = flow({ name: 'counting', version: '1.0.0' }, async (ctx) => {
  for (let i = 0; i < 30; i++) {
    await ctx.step('count', { key: i }, async () => {
      if (role === 'run' && after === String(i)) await delay(600_000)
      await delay(5)
      return i
    })
  }
  return 'counted'
})

if (role === 'run') {
  console.log('running')
  for (;;) {
    const { status } = await hf.thread(program, thread).run({ input: {}, key: 'once', leaseMs: 1000 })
    if (status === 'completed') break
    // The one that was killed still holds its lease.
    await delay(100)
  }
} else {
  for await (const event of hf.inspect(thread).events(after === undefined ? {} : { after })) {
    // One write per event, so that a kill falls between events and also inside of entries.
    process.stdout.write(`${JSON.stringify(event)}\n`)
    await delay(1)
  }
}
await hf.close()
