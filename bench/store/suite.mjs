// @ts-check
import { openStore } from '../backends.mjs'
import { measureItems } from './items.mjs'
import { measureSearch } from './search.mjs'

/** @typedef {import('../statistics.mjs').Line} Line */

/**
 * How much is measured.
 * @typedef {object} Scale
 * @property {number} rounds
 * @property {number} items puts and gets per round
 * @property {number} scopes of 100 items each, all of one tenant
 * @property {number} searches per kind and round
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
  if (!quick) return { rounds, items: 300, scopes: 1000, searches: 50 }
  return { rounds: Math.min(rounds, 2), items: 100, scopes: 50, searches: 20 }
}

/**
 * @param {{ backends: readonly import('../backends.mjs').Backend[], quick: boolean, rounds: number,
 *   progress: (text: string) => void, report: (line: Line) => void }} options
 */
export async function run({ backends, quick, rounds, progress, report }) {
  const scale = scaleOf({ quick, rounds })
  for (const backend of backends) {
    await backend.prepare?.()
    const { hf } = await openStore(backend.url('store'))
    const floor = await backend.openFloor()
    /** @type {Bench} */
    const bench = { backend, hf, floor, scale, progress: (text) => progress(`${backend.name}: ${text}`) }
    try {
      for (const line of await measureItems(bench)) report(line)
      for (const line of await measureSearch(bench)) report(line)
    } finally {
      await hf.close()
      await floor.close()
      await backend.cleanup?.()
    }
  }
}
