// @ts-check
import { randomUUID } from 'node:crypto'
import { push } from 'holdfast'
import { hashValue } from '#src/runtime/hash-value.js'
import { PROGRAM, VERSION } from '#src/runtime/situation.js'

/**
 * Leaves input for a worker, as a server does that answers before the work begins: the thread is made and due.
 * @param {import('holdfast').Holdfast} hf
 * @param {{ plan: { name: string, version: string } }} program
 * @param {string} thread @param {import('holdfast').Value} value @param {string} [key]
 */
export async function queueInput(hf, program, thread, value, key = thread) {
  const { name, version } = program.plan
  const now = Date.now()
  const record = { id: randomUUID(), key, hash: hashValue(value), value, at: now }
  await (await hf.log(thread)).update(() => [
    {
      kind: 'input',
      ops: [push('inputs', record)],
      index: { status: 'active', wakeAt: now, metadata: { [PROGRAM]: name, [VERSION]: version } },
    },
  ])
}
