// @ts-check
import { Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { budgetOf } from '../budget.mjs'
import { storedBytes } from '../log/session.mjs'
import { compare, state, timed } from '../statistics.mjs'
import { makeTurns } from '../turns.mjs'
import { makeConversation, makeFlow } from './programs.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

/**
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const turns = makeTurns(1, quick ? 50 : 200)
  for (const backend of backends) {
    await backend.prepare?.()
    const counted = await openCounted(backend.url('runtime'))
    const floor = await backend.openFloor()
    const about = (/** @type {string} */ text) => progress(`${backend.name}: ${text}`)
    try {
      about('appends per step')
      for (const line of await measureAppends(backend, counted, turns)) report(line)
      about('steps per second')
      for (const line of await measureSteps(backend, counted.hf, floor, turns, rounds)) report(line)
      about('resume')
      report(await measureResume(backend, counted.hf, turns, rounds))
    } finally {
      await counted.hf.close()
      await floor.close()
      await backend.cleanup?.()
    }
  }
}

const TRIPS = new Set(['append', 'tail', 'read', 'head'])

/** A store that counts what is sent to it. @param {string} url */
async function openCounted(url) {
  const driver = await openDriver(url)
  const counts = { appends: 0, trips: 0 }
  const counting = new Proxy(driver, {
    get(target, name) {
      const value = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (/** @type {unknown[]} */ ...args) => {
        if (name === 'append') counts.appends += /** @type {unknown[]} */ (args[0]).length
        if (TRIPS.has(String(name))) counts.trips++
        return value.apply(target, args)
      }
    },
  })
  return { hf: new Holdfast(new LogStore(counting)), counts }
}

/**
 * What a step costs at the store.
 * @param {import('../backends.mjs').Backend} backend
 * @param {Awaited<ReturnType<typeof openCounted>>} store
 * @param {readonly import('../turns.mjs').Turn[]} turns
 */
async function measureAppends(backend, { hf, counts }, turns) {
  // The first use of a tenant looks once whether it has keys.
  await hf.thread(makeConversation(turns.slice(0, 1)), 'warming up').run({ input: {} })
  /** @type {Line[]} */
  const lines = []
  for (const [id, what, effect] of /** @type {const} */ ([
    ['step', 'sequential step', 'read'],
    ['once', 'step with a once effect', 'once'],
  ])) {
    /** What a run of so many steps sends. @param {number} steps */
    const sent = async (steps) => {
      const before = { ...counts }
      const { status } = await hf
        .thread(makeConversation(turns.slice(0, steps), { effect }), `appends ${what} ${steps}`)
        .run({ input: {} })
      if (status !== 'completed') throw new Error(`Our graph ended as ${status}.`)
      return { appends: counts.appends - before.appends, trips: counts.trips - before.trips }
    }
    // What belongs to the run itself, such as its claim and opening the log, is in both.
    const [short, long] = [await sent(1), await sent(turns.length)]
    const appends = (long.appends - short.appends) / (turns.length - 1)
    const trips = (long.trips - short.trips) / (turns.length - 1)
    for (const [part, name, found] of /** @type {const} */ ([
      ['appends', 'appends', appends],
      ['trips', 'round trips', trips],
    ])) {
      const key = `${id}.${part}@${backend.id}`
      const about = { id: key, backend: backend.name, what: `${what}, ${name}`, ...budgetOf(key) }
      lines.push(state({ ...about, unit: 'count' }, [found]))
    }
  }
  return lines
}

/**
 * A sequential program against the floor writing the same bytes one after another.
 * @param {import('../backends.mjs').Backend} backend
 * @param {Holdfast} hf
 * @param {import('../backends.mjs').Floor} floor
 * @param {readonly import('../turns.mjs').Turn[]} turns
 * @param {number} rounds
 */
async function measureSteps(backend, hf, floor, turns, rounds) {
  const bytes = await storedBytes(turns)
  /** @type {Record<string, { ours: number, floor: number }[]>} */
  const found = { graph: [], flow: [] }
  const programs = { graph: makeConversation(turns), flow: makeFlow(turns) }
  for (let round = 0; round <= rounds; round++) {
    for (const kind of /** @type {const} */ (['graph', 'flow'])) {
      const thread = hf.thread(/** @type {any} */ (programs[kind]), `steps ${kind} ${round}`)
      const ours = await timed(() => thread.run({ input: {} }))
      const base = await timed(async () => {
        for (const one of bytes) await floor.write(one)
      })
      if (round > 0) found[kind]?.push({ ours: (turns.length / ours) * 1000, floor: (turns.length / base) * 1000 })
    }
  }
  return Object.entries(found).map(([kind, times]) =>
    compare(
      { id: `${kind}@${backend.id}`, backend: backend.name, what: `${kind}, steps per second`, unit: 'rate' },
      times,
    ),
  )
}

/**
 * How long after `run()` on an interrupted thread its next step starts, beyond reading the thread.
 * @param {import('../backends.mjs').Backend} backend
 * @param {Holdfast} hf
 * @param {readonly import('../turns.mjs').Turn[]} turns
 * @param {number} rounds
 */
async function measureResume(backend, hf, turns, rounds) {
  const overheads = []
  for (let round = 0; round < Math.max(5, rounds); round++) {
    const stop = new AbortController()
    const half = Math.floor(turns.length / 2)
    const interrupted = makeConversation(turns, { onStep: (turn) => turn === half && stop.abort() })
    const id = `resume ${round}`
    await hf
      .thread(interrupted, id)
      .run({ input: {}, signal: stop.signal })
      .catch(() => {})
    const load = await timed(() => hf.log(id))
    const again = new AbortController()
    let startedAt = 0
    const resumed = makeConversation(turns, {
      onStep: () => {
        startedAt ||= performance.now()
        again.abort()
      },
    })
    const began = performance.now()
    await hf
      .thread(resumed, id)
      .run({ signal: again.signal })
      .catch(() => {})
    overheads.push(Math.max(0, startedAt - began - load))
  }
  const id = `resume@${backend.id}`
  return state({ id, backend: backend.name, what: 'resume beyond load', unit: 'time', ...budgetOf(id) }, overheads)
}
