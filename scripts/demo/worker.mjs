// @ts-check
// One worker of the demo: takes a conversation over, goes on where it stands, and is killed by its parent at any moment.
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { openHoldfast, push, set } from 'holdfast'

const [store = '', thread = '', turns = '12'] = process.argv.slice(2)
const say = (/** @type {object} */ event) => writeSync(1, `${JSON.stringify({ pid: process.pid, ...event })}\n`)

const hf = await openHoldfast(store)
const log = await hf.log(thread)
const messages = /** @type {unknown[]} */ (log.fold.state.messages ?? [])
say({ event: 'resumed', turns: messages.length, checkpoint: log.checkpoint ?? null })

// The demo's parent has seen the worker before die, so there is no lease to wait for.
const claim = await log.claim({ owner: `worker ${process.pid}`, ms: 10_000, force: true })
for (let turn = messages.length + 1; turn <= Number(turns); turn++) {
  await sleep(60 + Math.random() * 120) // the model thinks
  const message = { role: turn % 2 ? 'user' : 'assistant', text: `Turn ${turn} of the conversation.`, at: new Date() }
  const { entries } = await claim.update(() => [
    { kind: 'step', ops: [push('messages', message), set('turn', turn)], index: { status: 'active' } },
  ])
  say({ event: 'saved', turn, checkpoint: entries[0]?.id })
}
await claim.release(() => [{ kind: 'step', index: { status: 'completed' } }])
say({ event: 'completed' })
await hf.close()
