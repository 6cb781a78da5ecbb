// Runs a program in a process where `@opentelemetry/api` can't be found, and tells what was asked for and what came out.
//   node without-api.mjs <off|on>
import { register } from 'node:module'
import { MessageChannel } from 'node:worker_threads'

const asked = []
const { port1, port2 } = new MessageChannel()
port1.on('message', (specifier) => asked.push(specifier)).unref()
const hooks = `
  let port
  export const initialize = (data) => { port = data }
  export async function resolve(specifier, context, next) {
    if (!specifier.startsWith('@opentelemetry/')) return next(specifier, context)
    port.postMessage(specifier)
    throw Object.assign(new Error('Cannot find package ' + specifier), { code: 'ERR_MODULE_NOT_FOUND' })
  }
`
register(`data:text/javascript,${encodeURIComponent(hooks)}`, { data: port2, transferList: [port2] })

const { flow, openHoldfast } = await import('holdfast')
const imported = [...asked]
const hf = await openHoldfast('memory:', process.argv[2] === 'off' ? { telemetry: false } : {})
const double = flow({ name: 'double', version: '1.0.0' }, (ctx, input) => ctx.step('double', () => input * 2))
const { output } = await hf.thread(double, 't').run({ input: 21 })
const [figures] = await hf.metrics()
await hf.close()
await new Promise((resolve) => setImmediate(resolve))
console.log(JSON.stringify({ imported, asked, output, counters: figures?.counters ?? null }))
