// @ts-check
import { openStore } from '../backends.mjs'
import { measureCrowd } from './crowd.mjs'
import { fillThreads, measureLongSave } from './flatness.mjs'
import { measureLoad, measureResume } from './load.mjs'
import { measureSave } from './save.mjs'
import { warmUp } from './session.mjs'
import { measureDisk, measureSize } from './size.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

/**
 * How much is measured. A save is one turn.
 * @typedef {object} Scale
 * @property {number} rounds
 * @property {number} saves per round
 * @property {number} longThreads threads of 1000 turns
 * @property {number} window saves per thread and round around turn 30 and turn 1000
 * @property {number} sessions in the crowd
 * @property {number} sessionTurns
 * @property {number} crowdRounds
 * @property {number} floorMs how long the floor of the crowd runs, before and after each round
 * @property {number} loads per round
 */

/**
 * What an open backend is measured with.
 * @typedef {object} Bench
 * @property {import('../backends.mjs').Backend} backend
 * @property {import('holdfast').Holdfast} hf
 * @property {import('../backends.mjs').Floor} floor
 * @property {Scale} scale
 * @property {(text: string) => void} progress
 */

/** @param {{ quick: boolean, rounds: number }} options @returns {Scale} */
function scaleOf({ quick, rounds }) {
  const usual = { rounds, saves: 200, longThreads: 8, window: 20, sessions: 847, sessionTurns: 20 }
  if (!quick) return { ...usual, crowdRounds: Math.min(rounds, 3), floorMs: 1000, loads: 11 }
  const less = { saves: 100, longThreads: 2, sessions: 200 }
  return { ...usual, ...less, crowdRounds: 1, floorMs: 300, loads: 5 }
}

/**
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const scale = scaleOf({ quick, rounds })
  progress('stored bytes')
  for (const line of await measureSize()) report(line)
  progress('warming up')
  if (!quick) await warmUp()
  for (const backend of backends) {
    await backend.prepare?.()
    for (const line of await measureDisk(backend)) report(line)
    const { hf } = await openStore(backend.url('main'))
    const floor = await backend.openFloor()
    /** @type {Bench} */
    const bench = { backend, hf, floor, scale, progress: (text) => progress(`${backend.name}: ${text}`) }
    try {
      for (const line of await measureSave(bench)) report(line)
      const long = await fillThreads(bench)
      report(long.delay)
      report(long.longest)
      for (const line of await measureLongSave(bench, long.threads)) report(line)
      for (const line of await measureCrowd(bench)) report(line)
      for (const line of await measureLoad(bench, long.threads)) report(line)
      for (const line of await measureResume(bench, long.threads)) report(line)
    } finally {
      await hf.close()
      await floor.close()
      await backend.cleanup?.()
    }
  }
}
