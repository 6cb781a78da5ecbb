// @ts-check
import { flow } from 'holdfast'
import { openStore } from '../backends.mjs'
import { PAYLOAD } from './payload.mjs'

/**
 * Ours, with the methods of a Peer (peer.mjs).
 * @param {{ url: string }} options
 * @returns {Promise<import('./peer.mjs').Peer>}
 */
export async function open({ url }) {
  const { hf } = await openStore(url)
  return {
    run: (id, count) => oursOf(hf, id, count),
    resume: (id, count) => resumeOurs(url, id, count),
    close: () => hf.close(),
  }
}

/** @param {{ onLast?: () => unknown }} [options] */
function makeSteps({ onLast } = {}) {
  return flow({ name: 'steps', version: '1.0.0' }, async (ctx, /** @type {number} */ count) => {
    for (let key = 0; key < count; key++) await ctx.step('turn', { key }, () => PAYLOAD)
    await ctx.step('last', async () => {
      await onLast?.()
      return null
    })
    return count
  })
}

/** @param {import('holdfast').Holdfast} hf @param {string} id @param {number} count */
async function oursOf(hf, id, count) {
  const { status } = await hf.thread(makeSteps(), id).run({ input: count })
  if (status !== 'completed') throw new Error(`Our flow ended as ${status}.`)
}

/** Milliseconds until the step that has no record, by a store that has not read the thread. @param {string} url @param {string} id @param {number} count */
async function resumeOurs(url, id, count) {
  const first = await openStore(url)
  const stop = new AbortController()
  const interrupted = makeSteps({ onLast: () => stop.abort() })
  await first.hf
    .thread(interrupted, id)
    .run({ input: count, signal: stop.signal })
    .catch(() => {})
  await first.hf.close()
  const { hf } = await openStore(url)
  try {
    let startedAt = 0
    const again = makeSteps({
      onLast: () => {
        startedAt = performance.now()
      },
    })
    const began = performance.now()
    const { status } = await hf.thread(again, id).run()
    if (status !== 'completed' || startedAt === 0) throw new Error(`Our resumed flow ended as ${status}.`)
    return startedAt - began
  } finally {
    await hf.close()
  }
}
