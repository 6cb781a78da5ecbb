// @ts-check
import { spawnChild } from './spawn-child.mjs'

/** @typedef {ReturnType<typeof spawnChild> & { name: string, holds: Set<string> }} FleetWorker */
/** @typedef {Omit<import('./session-worker.mjs').SessionWorkerOptions, 'name'>} FleetOptions */

/**
 * Worker processes of which any may be killed and replaced. Knows which threads each of them holds, by what they say.
 * @param {FleetOptions} options
 * @param {(worker: FleetWorker, event: 'taken' | 'ended' | 'stopped', thread: string, status: string) => void} [onEvent]
 */
export function startFleet(options, onEvent) {
  /** @type {FleetWorker[]} */
  const workers = []
  let started = 0

  return {
    workers,
    /** Starts one more and waits until it works. @param {Partial<FleetOptions>} [more] */
    async add(more = {}) {
      const name = `worker-${started++}`
      const holds = new Set()
      const child = spawnChild([JSON.stringify({ ...options, ...more, name })], {
        script: './session-worker.mjs',
        onLine: (line) => {
          const [, event, thread, status = ''] = /^(taken|ended|stopped) thread (".*?")(?: (\w+))?$/.exec(line) ?? []
          if (event === undefined || thread === undefined) return
          const id = JSON.parse(thread)
          if (event === 'taken') holds.add(id)
          else holds.delete(id)
          onEvent?.(worker, /** @type {any} */ (event), id, status)
        },
      })
      /** @type {FleetWorker} */
      const worker = { ...child, name, holds }
      workers.push(worker)
      await worker.line('ready')
      return worker
    },
    /** Ends one without a warning. @param {FleetWorker} worker */
    async kill(worker) {
      workers.splice(workers.indexOf(worker), 1)
      worker.child.kill('SIGKILL')
      if ((await worker.exited) !== null) throw new Error(`${worker.name} ended by itself: ${worker.errors()}`)
    },
    /** Ends all in good order. Returns what they wrote to stderr. */
    async stop() {
      const ending = workers.splice(0)
      for (const { child } of ending) child.kill('SIGTERM')
      const codes = await Promise.all(ending.map(({ exited }) => exited))
      ending.forEach(({ name, errors }, i) => {
        if (codes[i] !== 0) throw new Error(`${name} ended with ${codes[i]}: ${errors()}`)
      })
    },
    /** After a failure: nothing stays behind. */
    async abandon() {
      const ending = workers.splice(0)
      for (const { child } of ending) child.kill('SIGKILL')
      await Promise.all(ending.map(({ exited }) => exited))
    },
  }
}

/** The service in its own process. @param {number} [seed] without one it never fails */
export async function startService(seed) {
  const service = spawnChild(seed === undefined ? [] : [String(seed)], { script: './service.mjs' })
  const url = (await service.line('listening')).split(' ')[1] ?? ''
  return {
    url,
    async stop() {
      service.child.kill('SIGKILL')
      await service.exited
    },
  }
}
