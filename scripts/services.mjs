// @ts-check
/** `npm run services`: the servers of the tests, for as long as it runs. */
import { once } from 'node:events'
import { startServices } from './services/index.mjs'

const { running, env, stop } = await startServices({ need: ['postgres', 'redis', 'redis-cluster', 'pgbouncer'] })

const width = Math.max(...running.map(({ name }) => name.length))
for (const { name, value, about } of running) {
  console.log(`${name.padEnd(width)}  ${about}`)
  for (const url of value.split(',')) console.log(`${' '.repeat(width)}  ${url}`)
}
console.log('\n# for the shell in which you run the tests:')
for (const [name, value] of Object.entries(env)) console.log(`export ${name}='${value}'`)
console.log('\nRunning until Ctrl-C.')

// Nothing here keeps Node alive by itself: the servers are detached on purpose.
const alive = setInterval(() => {}, 60_000)
await Promise.race(['SIGINT', 'SIGTERM', 'SIGHUP'].map((signal) => once(process, signal)))
clearInterval(alive)
console.log('\nStopping.')
await stop()
