// @ts-check
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const SCRIPT = fileURLToPath(new URL('worker-process.mjs', import.meta.url))

/**
 * A worker process that looks for work.
 * @param {string} url
 * @param {{ places?: number, leaseMs?: number }} [options] with `places` it only counts what it starts
 */
export async function startWorker(url, options = {}) {
  const child = fork(SCRIPT, [url, JSON.stringify(options)])
  const exited = once(child, 'exit')
  let started = 0
  /** When each run was started that it named. @type {Map<number, number>} */
  const runs = new Map()
  let onRun = () => {}
  child.on('message', (/** @type {any} */ message) => {
    started += message.started ?? 0
    if (message.id === undefined) return
    runs.set(message.id, message.at)
    onRun()
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
    /** When it started each of these runs, once it has. @param {readonly number[]} ids @returns {Promise<number[]>} */
    hearAll: (ids) =>
      new Promise((resolve) => {
        onRun = () => {
          const times = ids.flatMap((id) => runs.get(id) ?? [])
          if (times.length === ids.length) resolve(times)
        }
        onRun()
      }),
    /** Those of its threads that stand still begin to walk. */
    walk: () => child.send('walk'),
    /** @param {'SIGTERM' | 'SIGKILL'} signal */
    kill: (signal) => child.kill(signal),
    exited,
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
