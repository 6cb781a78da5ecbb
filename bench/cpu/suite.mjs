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
  // Code that runs all day is compiled; in a new process that takes ten thousand steps and more.
  const warmups = quick ? 1 : 20
  const looker = makeOurs(calls)
  const single = flow({ name: 'single', version: '1.0.0' }, (ctx) => ctx.step('only', () => PAYLOAD))
  /** @type {readonly (readonly [id: string, what: string, make: () => Job])[]} */
  const lines = [
    ['cpu.update', 'log.update of 1 KB', () => updates(hf, id(), singles)],
    [
      'cpu.flow50',
      'step of a flow, 50 results on record',
      () => steps(hf, id(), { recorded: 50, count: 100, threads: quick ? 1 : 8 }),
    ],
    [
      'cpu.flow4000',
      `step of a flow, ${recorded.toLocaleString('en-US')} results on record`,
      () => steps(hf, id(), { recorded, count: quick ? 50 : 400, threads: 1 }),
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
      for (let round = 0; round < warmups + rounds; round++) {
        progress(`cpu: ${what}, round ${round + 1} of ${warmups + rounds}`)
        const spent = await spend(make())
        if (round >= warmups) found.push(spent)
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
 * Steps of a flow that has so many results on record already; of several threads, one after another.
 * @param {Holdfast} hf @param {string} id
 * @param {{ recorded: number, count: number, threads: number }} options
 * @returns {Job}
 */
function steps(hf, id, { recorded, count, threads }) {
  /** @type {{ go: () => void, run: Promise<unknown> }[]} */
  const waiting = []
  const prepareOne = async (/** @type {number} */ number) => {
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
    waiting.push({ go, run: hf.thread(program, `${id} ${number}`).run({ input: null }) })
    await full
  }
  return {
    steps: count * threads,
    prepare: async () => {
      for (let number = 0; number < threads; number++) await prepareOne(number)
    },
    work: async () => {
      for (const { go, run } of waiting) {
        go()
        await run
      }
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
