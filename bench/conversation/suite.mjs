// @ts-check
import { budgetOf } from '../budget.mjs'
import { startContender } from '../contender.mjs'
import { hasOfficial } from '../langgraph/savers.mjs'
import { median } from '../statistics.mjs'
import { makeTalk } from './talk.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */
/** @typedef {import('../contender.mjs').Contender} Contender */
/** @typedef {{ turns: number, ms: number, bytes: number }} Point */

const LONG = 1000
/** Lengths at which all are compared. */
const MARKS = [10, 25, 50, 100, 150, 200]
/** The turns before a mark whose median is its latency. */
const WINDOW = 10
/** Turns of another conversation that come first: whatever is compiled on first use is no part of the first turns. */
const WARMUP = 150

/**
 * One conversation of an agent, a run each turn, beside LangGraph's agent with its saver and with its DeltaChannel, each
 * in a process of its own: how long a turn takes and what is stored as the conversation grows.
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number, folder: string,
 *   progress: (text: string) => void, report: (line: Line) => void,
 *   plot?: (name: string, points: Record<string, readonly Point[]>) => void }} options
 */
export async function run({ backends, quick, progress, report, plot }) {
  const marks = quick ? MARKS.slice(0, 2) : MARKS
  // SQLite last: what it goes on with takes longest.
  for (const backend of ['postgres', 'sqlite'].flatMap((id) => backends.filter((one) => one.id === id))) {
    await backend.prepare?.()
    /** @type {Contender[]} */
    const contenders = []
    try {
      for (const who of ['holdfast', ...(hasOfficial(backend) ? ['saver', 'delta'] : [])]) {
        progress(`${backend.name}: warming up ${who}`)
        const contender = await startContender(who, CONTENDER, { who, address: backend.address, turns: LONG })
        contenders.push(contender)
        await contender.ask('warmUp', quick ? 15 : WARMUP)
      }
      const points = await converse(contenders, marks, (turn) => progress(`${backend.name}: turn ${turn}`))
      plot?.(`conversation@${backend.id}`, points)
      for (const line of compareAt(backend, points)) report(line)
      if (backend.id === 'sqlite' && !quick) await goOn(contenders, points, { progress, report })
    } finally {
      for (const { close } of contenders) await close()
      await backend.cleanup?.()
    }
  }
}

const CONTENDER = new URL('contender.mjs', import.meta.url).href

/**
 * All of them turn by turn, so that whatever else the machine does meets all.
 * @param {readonly Contender[]} contenders
 * @param {readonly number[]} marks
 * @param {(turn: number) => void} progress
 */
async function converse(contenders, marks, progress) {
  /** @type {Record<string, Point[]>} */
  const points = Object.fromEntries(contenders.map(({ name }) => [name, []]))
  /** @type {Record<string, number[]>} */
  const times = Object.fromEntries(contenders.map(({ name }) => [name, []]))
  for (let n = 0; n < /** @type {number} */ (marks.at(-1)); n++) {
    progress(n)
    for (const { name, ask } of contenders) times[name]?.push((await ask('turn', n)).ms)
    if (!marks.includes(n + 1)) continue
    for (const { name, ask } of contenders) {
      const ms = median((times[name] ?? []).slice(-WINDOW))
      points[name]?.push({ turns: n + 1, ms, bytes: (await ask('bytes')).value })
    }
  }
  return points
}

const PEERS = /** @type {const} */ ({ saver: 'LangGraph with its saver', delta: 'LangGraph with its DeltaChannel' })

/** @param {import('../backends.mjs').Backend} backend @param {Record<string, readonly Point[]>} points @returns {Line[]} */
function compareAt(backend, points) {
  const ours = /** @type {Point} */ (points['holdfast']?.at(-1))
  return Object.entries(PEERS).flatMap(([name, peer]) => {
    const theirs = points[name]?.at(-1)
    if (theirs === undefined) return []
    const about = { backend: backend.name, unit: /** @type {const} */ ('time') }
    return [
      gain(
        { ...about, id: `turns.${name}@${backend.id}`, what: `turn ${ours.turns}, a run each, against ${peer}` },
        ours.ms,
        theirs.ms,
      ),
      gain(
        { ...about, what: `bytes at ${ours.turns} turns, against ${peer}`, unit: 'bytes' },
        ours.bytes,
        theirs.bytes,
      ),
    ]
  })
}

/**
 * On to a thousand turns, ours and that of the DeltaChannel. The saver writes the whole conversation with each step, so
 * its bytes are a n² + b n: a and b are those of its first turns.
 * @param {readonly Contender[]} contenders
 * @param {Record<string, readonly Point[]>} points
 * @param {{ progress: (text: string) => void, report: (line: Line) => void }} out
 */
async function goOn(contenders, points, { progress, report }) {
  const about = { backend: 'SQLite FULL', unit: /** @type {const} */ ('bytes') }
  /** @param {string} name */
  const bytesOf = async (name) => {
    const contender = contenders.find((one) => one.name === name)
    if (contender === undefined) return undefined
    for (let n = points[name]?.at(-1)?.turns ?? 0; n < LONG; n++) {
      if (n % 50 === 0) progress(`SQLite FULL: ${name}, turn ${n}`)
      await contender.ask('turn', n)
    }
    return /** @type {number} */ ((await contender.ask('bytes')).value)
  }
  const ours = (await bytesOf('holdfast')) ?? NaN
  const json = Buffer.byteLength(JSON.stringify(makeTalk(LONG).map(jsonOf)))
  const what = `an agent, ${LONG} runs, on the disk / JSON of the messages`
  report(over({ ...about, id: 'bytes.agent', what }, ours, json))
  /** @param {string} name @param {string} how @param {number | undefined} theirs */
  const against = (name, how, theirs) => {
    const text = `${LONG} turns on the disk, against LangGraph with ${how}`
    if (theirs !== undefined) report(gain({ ...about, id: `bytes.${name}`, what: text }, ours, theirs))
  }
  const [half, whole] = [100, 200].map((turns) => points['saver']?.find((point) => point.turns === turns)?.bytes)
  if (half !== undefined && whole !== undefined) {
    const a = (whole / 200 - half / 100) / 100
    const b = half / 100 - a * 100
    against('saver', 'its saver (extrapolated from 200)', a * LONG * LONG + b * LONG)
  }
  // The longest: before each turn it replays up to a thousand writes of the last ones.
  against('delta', 'its DeltaChannel', await bytesOf('delta'))
}

/** A turn as messages. @param {import('./talk.mjs').Said} said */
function jsonOf({ question, thought, orderId, found, answer }) {
  const call = { id: `call-${orderId}`, name: 'lookUp' }
  return [
    { role: 'user', content: question },
    { role: 'assistant', content: thought, toolCalls: [{ ...call, input: { orderId } }] },
    { role: 'tool', toolCallId: call.id, content: found },
    { role: 'assistant', content: answer },
  ]
}

/** By how much ours is less. @param {Pick<Line, 'id' | 'backend' | 'what' | 'unit'>} about @param {number} ours @param {number} floor @returns {Line} */
function gain(about, ours, floor) {
  return judged({ ...about, ours, floor, ratio: floor / ours })
}

/** How much more ours is. @param {Pick<Line, 'id' | 'backend' | 'what' | 'unit'>} about @param {number} ours @param {number} floor @returns {Line} */
function over(about, ours, floor) {
  return judged({ ...about, ours, floor, ratio: ours / floor })
}

/** @param {Line & { ratio: number }} line @returns {Line} */
function judged(line) {
  const { budget } = budgetOf(line.id ?? '')
  if (budget === undefined) return line
  return { ...line, budget, over: 'atMost' in budget ? line.ratio > budget.atMost : line.ratio < budget.atLeast }
}
