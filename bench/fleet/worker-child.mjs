// @ts-check
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const SCRIPT = fileURLToPath(new URL('worker-process.mjs', import.meta.url))

/** A worker process that looks for work. @param {string} url @param {number} [places] then it only counts what it starts */
export async function startWorker(url, places) {
  const child = fork(SCRIPT, places === undefined ? [url] : [url, String(places)])
  const exited = once(child, 'exit')
  let started = 0
  child.on('message', (/** @type {any} */ message) => {
    started += message.started ?? 0
  })
  await Promise.race([
    once(child, 'message'),
    exited.then(() => Promise.reject(new Error('The worker of the benchmark ended before it was ready.'))),
  ])
  return {
    /** How many runs it started, as far as it said. */
    started: () => started,
    /** The next that it says. @returns {Promise<any>} */
    heard: async () => (await once(child, 'message'))[0],
    /** Ends it in good order. Returns the milliseconds of CPU that it took. @returns {Promise<number | undefined>} */
    async stop() {
      /** @type {number | undefined} */
      let cpuMs
      child.on('message', (/** @type {any} */ message) => {
        cpuMs = message.cpuMs ?? cpuMs
      })
      if (child.connected) child.send('stop')
      await exited
      return cpuMs
    },
  }
}
