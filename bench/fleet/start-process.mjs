// @ts-check
// Opens a store and starts a worker: tells how long it took until the worker had looked for work, and how much memory it holds.
import { Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { makePrograms } from './program.mjs'

const [url = ''] = process.argv.slice(2)
const began = performance.now()
const driver = await openDriver(url)
/** @type {() => void} */
let looked = () => {}
const hasLooked = new Promise((/** @type {(value: void) => void} */ resolve) => {
  looked = resolve
})
const watched = new Proxy(driver, {
  get(target, name) {
    const value = Reflect.get(target, name, target)
    if (name !== 'takeDue') return typeof value === 'function' ? value.bind(target) : value
    return async (/** @type {any[]} */ ...args) => {
      const page = await value.apply(target, args)
      looked()
      return page
    }
  },
})
const hf = new Holdfast(new LogStore(watched))
const worker = hf.worker({ programs: Object.values(makePrograms(() => {}).programs), handleSignals: false })
await hasLooked
const ms = performance.now() - began
process.send?.({ ms, rss: process.memoryUsage().rss })
await worker.stop()
await hf.close()
process.disconnect()
