// npm start [message]. Run it again after a crash, or after an approval: it continues where it stopped.
import { readFileSync } from 'node:fs'
import { openHoldfast } from 'holdfast'
import { support } from './agent.ts'

const config = JSON.parse(readFileSync(new URL('../holdfast.config.json', import.meta.url), 'utf8')) as {
  store: string
}
const session = process.env['SESSION'] ?? 'demo-1'
const message = process.argv.slice(2).join(' ')

const hf = await openHoldfast(process.env['HOLDFAST_STORE'] ?? config.store)
const thread = hf.thread(support, session)
const outcome = await thread.run({
  // A key names the input, so that the first message runs once, however often you start this.
  ...(message ? { input: message } : { input: 'I want to send ORD-2 back.', key: 'first message' }),
  leaseMs: Number(process.env['LEASE_MS'] ?? 10_000),
})

switch (outcome.status) {
  case 'completed':
    console.log(outcome.output)
    break
  case 'paused':
    console.log(`It waits for a person: ${JSON.stringify(outcome.pauses[0]?.question)}`)
    console.log(`Say yes with: npx holdfast approve ${session} && npm start`)
    break
  case 'busy':
    console.log(`Busy: another process is running it, for at least ${outcome.remainingMs} ms.`)
    break
  default:
    console.error(outcome)
    process.exitCode = 1
}
await hf.close()
