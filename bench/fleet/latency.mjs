// @ts-check
import { setTimeout as sleep } from 'node:timers/promises'
import { openHoldfast } from 'holdfast'
import { machineMs, makePrograms, TOKENS } from './program.mjs'
import { startWorker } from './worker-child.mjs'

/** @typedef {{ wake: number[], answer: number[], signal: number[] }} Delays */

/**
 * From input, an answer or a signal in this process until the first step in another, one after another.
 * @param {string} url @param {number} count @returns {Promise<Delays>}
 */
export async function measureDelays(url, count) {
  const hf = await openHoldfast(url)
  const worker = await startWorker(url)
  const { woken, answered, signalled } = makePrograms(() => {}).programs
  /** @param {number} id @param {() => Promise<unknown>} send */
  const delay = async (id, send) => {
    // At any moment between two looks.
    await sleep(50 + ((id * 37) % 200))
    const heard = worker.heard()
    const began = machineMs()
    await send()
    return (await heard).at - began
  }
  /** @type {Delays} */
  const delays = { wake: [], answer: [], signal: [] }
  try {
    // The first finds its programs uncompiled.
    for (let id = 0; id <= count; id++) {
      const wake = await delay(id, () => hf.thread(woken, `woken ${id}`).enqueue(id))
      const asks = hf.thread(answered, `answered ${id}`)
      await asks.enqueue(id)
      const paused = await untilPaused(asks)
      const answer = await delay(id, () => asks.answer(paused, 'yes'))
      const waits = hf.thread(signalled, `signalled ${id}`)
      await waits.enqueue(id)
      await untilPaused(waits)
      const signal = await delay(id, () => waits.signal('go', 1))
      if (id === 0) continue
      delays.wake.push(wake)
      delays.answer.push(answer)
      delays.signal.push(signal)
    }
    return delays
  } finally {
    await worker.stop()
    await hf.close()
  }
}

/** @param {{ waitFor(): Promise<any> }} thread @returns {Promise<string>} the id of what it waits for */
async function untilPaused(thread) {
  for (;;) {
    const outcome = await thread.waitFor()
    if (outcome.status === 'paused') return outcome.pauses[0]?.id ?? ''
    await sleep(5)
  }
}

/**
 * Tokens of a run in another process: how late they are heard here, and the CPU that the run's process takes while it emits
 * them, with somebody who listens and without.
 * @param {string} url @param {number} runs
 */
export async function measureTokens(url, runs) {
  const hf = await openHoldfast(url)
  const worker = await startWorker(url)
  const { talking } = makePrograms(() => {}).programs
  /** @type {number[]} */
  const delays = []
  /** @type {{ heard: number[], unheard: number[] }} */
  const cpu = { heard: [], unheard: [] }
  try {
    for (let i = 0; i <= 2 * runs; i++) {
      const isHeard = i % 2 === 1
      const thread = hf.thread(talking, `talking ${i}`)
      await thread.enqueue(undefined)
      if (isHeard) {
        for await (const event of thread.events({ live: true })) {
          if (event.type === 'custom') delays.push(machineMs() - /** @type {{ at: number }} */ (event.value).at)
        }
      }
      const outcome = await thread.waitFor({ timeoutMs: 120_000 })
      if (outcome.status !== 'completed') throw new Error(`A run that talks ended as ${outcome.status}.`)
      // The first has everything uncompiled.
      if (i > 0) cpu[isHeard ? 'heard' : 'unheard'].push(Number(outcome.output))
    }
    return { delays, cpu, share: delays.length / (runs * TOKENS) }
  } finally {
    await worker.stop()
    await hf.close()
  }
}
