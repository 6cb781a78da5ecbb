// @ts-check
import { flow, Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore, ops } from 'holdfast/log'
import { makeOurs, runOurs } from '../agent/ours.mjs'
import { budgetOf } from '../budget.mjs'
import { state } from '../statistics.mjs'

const { set } = ops

/** @typedef {import('../statistics.mjs').Line} Line */
/** What a measured piece of work is: `prepare` is not counted. @typedef {{ steps: number, prepare?: () => Promise<void>, work: () => Promise<void> }} Job */

/**
 * What a step costs in CPU time of the whole process (garbage collection included), on the memory driver: nothing is
 * waited for, so this is what our own code takes. Runs once however many backends are asked for.
 * @param {{ quick: boolean, rounds: number, progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ quick, rounds, progress, report }) {
  const driver = await openDriver('memory:')
  const hf = new Holdfast(new LogStore(driver))
  let names = 0
  const id = () => `cpu ${names++}`
  const calls = quick ? 30 : 300
  const singles = quick ? 50 : 500
  const recorded = quick ? 400 : 4000
  const looker = makeOurs(calls)
  const single = flow({ name: 'single', version: '1.0.0' }, (ctx) => ctx.step('only', () => PAYLOAD))
  /** @type {readonly (readonly [id: string, what: string, make: () => Job])[]} */
  const lines = [
    ['cpu.update', 'log.update of 1 KB', () => updates(hf, id(), singles)],
    ['cpu.flow50', 'step of a flow, 50 results on record', () => steps(hf, id(), 50, 100)],
    [
      'cpu.flow4000',
      `step of a flow, ${recorded.toLocaleString('en-US')} results on record`,
      () => steps(hf, id(), recorded, quick ? 50 : 400),
    ],
    [
      'cpu.agent',
      `step of an agent, ${calls} tool calls in one run`,
      () => ({ steps: calls * 2 + 1, work: () => runOurs(hf, looker, id(), calls) }),
    ],
    ['cpu.run', 'run with one step', () => runs(hf, single, id(), singles)],
  ]
  try {
    for (const [id, what, make] of lines) {
      const found = []
      for (let round = 0; round <= rounds; round++) {
        progress(`cpu: ${what}, round ${round + 1} of ${rounds + 1}`)
        const spent = await spend(make())
        // The first warms it up.
        if (round > 0) found.push(spent)
      }
      report(state({ id, backend: 'memory', what: `${what}, CPU`, unit: 'time', ...budgetOf(id) }, found))
    }
  } finally {
    await hf.close()
  }
}

/** CPU milliseconds per step. @param {Job} job */
async function spend({ steps, prepare, work }) {
  await prepare?.()
  const before = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000 / steps
}

const PAYLOAD = { text: 'a line of what a tool found out '.repeat(8), at: 'somewhere', count: 3 }
const KILOBYTE = { text: 'x'.repeat(1000) }

/** @param {Holdfast} hf @param {string} id @param {number} count @returns {Job} */
function updates(hf, id, count) {
  return {
    steps: count,
    work: async () => {
      const log = await hf.log(id)
      for (let i = 0; i < count; i++) await log.update(() => [{ kind: 'step', ops: [set('value', KILOBYTE)] }])
    },
  }
}

/**
 * Steps of a flow that has so many results on record already.
 * @param {Holdfast} hf @param {string} id @param {number} recorded @param {number} count @returns {Job}
 */
function steps(hf, id, recorded, count) {
  let reached = () => {}
  let go = () => {}
  const full = new Promise((resolve) => (reached = () => resolve(undefined)))
  const started = new Promise((resolve) => (go = () => resolve(undefined)))
  const program = flow({ name: 'steps', version: '1.0.0' }, async (ctx) => {
    for (let key = 0; key < recorded; key++) await ctx.step('turn', { key }, () => PAYLOAD)
    reached()
    await ctx.step('wait', () => started.then(() => null))
    for (let key = 0; key < count; key++) await ctx.step('more', { key }, () => PAYLOAD)
  })
  /** @type {Promise<unknown>} */
  let run
  return {
    steps: count,
    prepare: async () => {
      run = hf.thread(program, id).run({ input: null })
      await full
    },
    work: async () => {
      go()
      await run
    },
  }
}

/** @param {Holdfast} hf @param {any} program @param {string} id @param {number} count @returns {Job} */
function runs(hf, program, id, count) {
  return {
    steps: count,
    work: async () => {
      for (let i = 0; i < count; i++) await hf.thread(program, `${id} ${i}`).run({ input: i })
    },
  }
}
