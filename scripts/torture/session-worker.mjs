// @ts-check
// A worker process of the sessions. Options are one JSON argument; SIGTERM ends it in good order.
//   node session-worker.mjs '{"url": "sqlite:…", "service": "http://…", "leaseMs": 2000, …}'
// Prints "ready", "terminating", "taken <thread>", "ended <thread> <status>" and "stopped <thread>".
import { writeSync } from 'node:fs'
import { isHoldfastError, openHoldfast } from 'holdfast'
import { endWithParent } from './end-with-parent.mjs'
import { makePrograms } from './session-programs.mjs'
import { makeWorkerPrograms } from './worker-programs.mjs'

/** @typedef {{ url: string, service: string, table?: string | undefined, mark?: string, leaseMs?: number, concurrency?: number, pollMs?: number, graceMs?: number, maxCrashes?: number, name?: string }} SessionWorkerOptions */

const options = /** @type {SessionWorkerOptions} */ (JSON.parse(/** @type {string} */ (process.argv[2])))
const { url, service, table, mark, ...settings } = options
endWithParent()
const say = (/** @type {string} */ line) => writeSync(1, `${line}\n`)
const hf = await open()
const programs = {
  ...makePrograms({ service, table, ...(mark === undefined ? {} : { mark }) }),
  ...makeWorkerPrograms({ service }),
}
const worker = hf.worker({
  ...settings,
  programs: Object.values(programs),
  context: () => ({ worker: settings.name }),
  onEvent: (event) => {
    if (event.type === 'taken' || event.type === 'stopped') say(`${event.type} ${event.log}`)
    if (event.type === 'ended') say(`ended ${event.log} ${event.outcome.status}`)
    if (event.type === 'error') console.error(event.error)
  },
})
process.once('SIGTERM', () => say('terminating'))
say('ready')
await worker.done()
await hf.close()
say('closed')

/** On a machine that is busy with everything else, a server may take longer to answer than a client waits for it. */
async function open() {
  for (let tries = 1; ; tries++) {
    try {
      return await openHoldfast(url)
    } catch (error) {
      if (!isHoldfastError(error, 'unavailable') || tries === 6) throw error
    }
  }
}
