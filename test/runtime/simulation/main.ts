import { parseArgs } from 'node:util'
import { type Kind, KINDS, play } from './play.js'

// npm run simulate -- --kind changes --seed 13 --count 5000: plays histories of the crash model and says what broke.
const { values } = parseArgs({
  options: {
    kind: { type: 'string', multiple: true, default: [...KINDS] },
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '1000' },
    json: { type: 'boolean', default: false },
  },
})

let isBroken = false
for (const kind of values.kind) {
  if (!KINDS.includes(kind as Kind)) throw new Error(`--kind must be one of ${KINDS.join(', ')}, not "${kind}".`)
  const began = performance.now()
  const { histories, found } = await play(kind as Kind, Number(values.seed), Number(values.count))
  isBroken ||= found !== undefined
  if (values.json) console.log(JSON.stringify({ kind, histories, found }))
  else console.log(`${kind}: ${histories} histories, seed ${values.seed}, ${Math.round(performance.now() - began)} ms`)
  if (found && !values.json) {
    console.log(`${found.message}\nAgain: HOLDFAST_TEST_SEED=${found.seed} HOLDFAST_TEST_PATH=${found.path}`)
    console.log(JSON.stringify(found.history))
  }
}
process.exitCode = isBroken ? 1 : 0
