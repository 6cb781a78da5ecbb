// Runs the session and kills itself right after its nth append was acknowledged: before anyone hears of it.
//   node crash-child.mjs <store> <model url> <ledger file> <nth append, 0 for none>
import { Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { drive, makeAgent } from './crash-session.mjs'

const [url, modelUrl, ledger, nth] = process.argv.slice(2)
const driver = await openDriver(url)
let appends = 0

const counting = new Proxy(driver, {
  get(target, name) {
    const value = Reflect.get(target, name, target)
    if (typeof value !== 'function') return value
    if (name !== 'append') return value.bind(target)
    return async (batch) => {
      const results = await target.append(batch)
      appends += results.filter(({ status }) => status === 'appended').length
      if (appends === Number(nth)) {
        process.kill(process.pid, 'SIGKILL')
        await new Promise(() => {})
      }
      return results
    }
  },
})

const hf = new Holdfast(new LogStore(counting))
await drive(hf, makeAgent(modelUrl, ledger, 'first'), ledger)
await hf.close()
process.stdout.write(`${appends}\n`)
