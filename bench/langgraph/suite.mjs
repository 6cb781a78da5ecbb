// @ts-check
import { LiveLists, Differ } from '#src/adapters/langgraph/saver/diff.js'
import { encode } from '#src/adapters/langgraph/values/encode.js'
import { MemorySaver } from '@langchain/langgraph-checkpoint'
import { alternate, median, quantile, timed } from '../statistics.mjs'
import { Conversation, makeMessages, STEPS_PER_TURN } from './conversation.mjs'
import { openOfficial, openOurs } from './savers.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */
/** @typedef {import('./savers.mjs').Subject} Subject */

/** Steps that are timed at a length. */
const WINDOW = 40
const LOADS = 9
/** Where official savers are sampled: each step writes the whole conversation, so its bytes grow in a straight line. */
const SAMPLES = [0.1, 0.3, 0.5, 0.7, 0.9]
const SAMPLE_STEPS = 8
const LENGTHS = [30, 200, 1000]
/** Up to here official savers write every step for real; beyond they are sampled. */
const WRITTEN_IN_FULL = 200

/** By how much fewer bytes, and faster, at a length: what issue and design ask for against SqliteSaver. @type {Record<number, { bytes?: number, save?: number, load?: number }>} */
const BUDGETS = { 30: {}, 200: { bytes: 50 }, 1000: { bytes: 300, save: 15, load: 5 } }

/**
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, progress, report }) {
  const lengths = quick ? LENGTHS.slice(0, 2) : LENGTHS
  const source = makeMessages(7, /** @type {number} */ (lengths.at(-1)) + 100)
  for (const line of await measureSerialization(source, lengths)) report(line)
  for (const backend of backends) {
    await backend.prepare?.()
    try {
      for (const turns of lengths) {
        const say = (/** @type {string} */ text) => progress(`${backend.name}, ${turns} turns: ${text}`)
        const { ours, theirs, flatness } = await measureAt(backend, source, turns, say)
        for (const line of compareAt(backend.name, turns, ours, theirs)) report(line)
        if (turns === lengths.at(-1)) report(flatness)
      }
    } finally {
      await backend.cleanup?.()
    }
  }
}

/** @typedef {{ bytes: number, save: number, load: number }} Measured */

/**
 * Both side by side, in turns, so that whatever else the machine does meets both.
 * @param {import('../backends.mjs').Backend} backend
 * @param {readonly any[]} source
 * @param {number} turns
 * @param {(text: string) => void} say
 * @returns {Promise<{ ours: Measured, theirs: Measured | undefined, flatness: Line }>}
 */
async function measureAt(backend, source, turns, say) {
  const steps = turns * STEPS_PER_TURN
  const ours = await openOurs(backend, `lg${turns}`)
  const theirs = await openOfficial(backend, `lg${turns}`)
  try {
    say('writing')
    const talk = new Conversation(ours, 'bench', source)
    await talk.steps(steps)
    const bytes = await ours.bytes()
    const flatness = await measureFlatness(backend.name, ours, talk, source, turns)
    const theirTalk = theirs && new Conversation(theirs, 'bench', source)
    const theirBytes = theirs && theirTalk && (await writeOfficial(theirs, theirTalk, source, steps))
    say('steps and loads')
    const saves = await alternate(
      WINDOW,
      () => talk.step(),
      () => theirTalk?.step(),
    )
    // The first is read while the code that reads is still being compiled.
    await alternate(
      1,
      () => load(ours),
      () => theirs && load(theirs),
    )
    const loads = await alternate(
      LOADS,
      () => load(ours),
      () => theirs && load(theirs),
    )
    /** @param {'ours' | 'floor'} who @param {number} stored @returns {Measured} */
    const sum = (who, stored) => ({ bytes: stored, save: quantile(saves[who], 0.5), load: median(loads[who]) })
    const measured = theirBytes === undefined ? undefined : sum('floor', theirBytes)
    return { ours: sum('ours', bytes), theirs: measured, flatness }
  } finally {
    await ours.close()
    await theirs?.close()
  }
}

/** A long conversation and a short one in turns, before anybody else's garbage is about. @param {string} backend @param {Subject} subject @param {Conversation} long @param {readonly any[]} source @param {number} turns @returns {Promise<Line>} */
async function measureFlatness(backend, subject, long, source, turns) {
  const short = new Conversation(subject, 'short', source)
  const [shortest = 30] = LENGTHS
  await short.steps(shortest * STEPS_PER_TURN)
  const times = await alternate(
    WINDOW,
    () => long.step(),
    () => short.step(),
  )
  const [ours, floor] = [quantile(times.ours, 0.5), quantile(times.floor, 0.5)]
  const what = `a step at ${turns} turns, against ${shortest}`
  const ratio = ours / floor
  const line = { backend, what, unit: /** @type {const} */ ('time'), ours, floor, ratio }
  // Memory waits for nothing, so that copying a list of four thousand references shows.
  return backend === 'memory' ? line : { ...line, budget: { atMost: 1.2 }, over: ratio > 1.2 }
}

/** The bytes of a conversation, written or sampled; it stands at its end afterwards. @param {Subject} subject @param {Conversation} talk @param {readonly any[]} source @param {number} steps */
async function writeOfficial(subject, talk, source, steps) {
  if (steps <= WRITTEN_IN_FULL * STEPS_PER_TURN) {
    await talk.steps(steps)
    return subject.bytes()
  }
  const bytes = (await sampleBytes(subject, source, steps)) * steps
  await talk.begin(steps)
  return bytes
}

/** Reads the newest checkpoint with a saver that has read nothing yet. @param {Subject} subject */
function load({ cold }) {
  return cold().getTuple({ configurable: { thread_id: 'bench', checkpoint_ns: '' } })
}

/** What a step writes on average, from steps spread over the conversation. @param {Subject} subject @param {readonly any[]} source @param {number} steps */
async function sampleBytes(subject, source, steps) {
  /** @type {number[]} */
  const sizes = []
  for (const share of SAMPLES) {
    const talk = new Conversation(subject, `sample-${share}`, source)
    await talk.begin(Math.round(share * steps))
    const before = await subject.bytes()
    await talk.steps(SAMPLE_STEPS)
    sizes.push(((await subject.bytes()) - before) / SAMPLE_STEPS)
  }
  return sizes.reduce((sum, size) => sum + size, 0) / sizes.length
}

/** @param {string} backend @param {number} turns @param {Measured} ours @param {Measured | undefined} theirs @returns {Line[]} */
function compareAt(backend, turns, ours, theirs) {
  const budgets = backend.startsWith('SQLite') ? (BUDGETS[turns] ?? {}) : {}
  const sampled = turns > WRITTEN_IN_FULL && theirs ? ' (theirs sampled)' : ''
  return [
    gain(
      { backend, what: `stored bytes at ${turns} turns${sampled}`, unit: 'bytes' },
      ours.bytes,
      theirs?.bytes,
      budgets.bytes,
    ),
    gain({ backend, what: `a step at ${turns} turns, p50`, unit: 'time' }, ours.save, theirs?.save, budgets.save),
    gain({ backend, what: `load newest at ${turns} turns`, unit: 'time' }, ours.load, theirs?.load, budgets.load),
  ]
}

/** By how much ours is less. @param {Pick<Line, 'backend' | 'what' | 'unit'>} about @param {number} ours @param {number | undefined} floor @param {number | undefined} atLeast @returns {Line} */
function gain(about, ours, floor, atLeast) {
  if (floor === undefined) return { ...about, ours }
  const ratio = floor / ours
  return {
    ...about,
    ours,
    floor,
    ratio,
    ...(atLeast === undefined ? {} : { budget: { atLeast }, over: ratio < atLeast }),
  }
}

/**
 * What comparing and encoding alone cost when one message was added, and what LangGraph's serializer takes for the same
 * checkpoint.
 * @param {readonly any[]} source
 * @param {readonly number[]} lengths
 */
async function measureSerialization(source, lengths) {
  const { serde } = new MemorySaver()
  /** @type {Line[]} */
  const lines = []
  for (const turns of lengths) {
    const messages = source.slice(0, turns * STEPS_PER_TURN)
    const node = messages.map((message) => encode(message, []))
    const live = new LiveLists()
    live.learn(node, messages)
    const differ = new Differ(live, { compare: 'recent' })
    const next = [...messages, source[messages.length]]
    /** @type {{ ours: number[], floor: number[] }} */
    const times = { ours: [], floor: [] }
    for (let i = 0; i < 40; i++) {
      times.ours.push(await timed(() => differ.diff(['channels', 'messages'], node, next)))
      times.floor.push(await timed(() => serde.dumpsTyped({ channel_values: { messages: next } })))
    }
    const about = { backend: 'serialization alone', what: `at ${turns} turns`, unit: /** @type {const} */ ('time') }
    lines.push(gain(about, median(times.ours), median(times.floor), undefined))
  }
  return lines
}
