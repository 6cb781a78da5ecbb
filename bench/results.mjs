// @ts-check
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { judge, round } from './budget.mjs'

/** @typedef {import('./statistics.mjs').Line} Line */
/** @typedef {{ turns: number, ms: number, bytes: number }} Point */

/**
 * @typedef {object} Measured
 * @property {Record<string, Line[]>} figures by suite
 * @property {Record<string, Record<string, readonly Point[]>>} plots
 * @property {Record<string, number>} seconds what each suite took
 */

/** @typedef {{ node: string, cpus: number, platform: string, servers: string[] }} Machine */
/** @typedef {Measured & { machine: Machine, rounds: number, load: number, budget: import('./budget.mjs').Verdict[] }} Results */
/** What `npm run torture -- --sessions … --save` left. @typedef {Record<string, { sessions: number, kills: number, effects: number, faults: number }>} Torture */

const resultsFile = fileURLToPath(new URL('results.json', import.meta.url))
const tortureFile = fileURLToPath(new URL('torture.json', import.meta.url))

/** @returns {Results} */
export function readResults() {
  return JSON.parse(readFileSync(resultsFile, 'utf8'))
}

/** Every line, also those of measurements that take too long for a benchmark. @param {Measured['figures']} figures @returns {Line[]} */
export function linesOf(figures) {
  return Object.values(figures).flat()
}

/**
 * Writes what was measured over what is there: suites that were not measured now keep their figures, unless another
 * machine measured those.
 * @param {Omit<Results, 'budget'>} measured
 */
export function saveResults({ figures, plots, seconds, ...facts }) {
  const before = existsSync(resultsFile) ? readResults() : undefined
  const isSame = before?.machine.node === facts.machine.node && before?.machine.cpus === facts.machine.cpus
  const kept = isSame ? before : { figures: {}, plots: {}, seconds: {} }
  const rounded = Object.fromEntries(Object.entries(figures).map(([name, lines]) => [name, lines.map(roundLine)]))
  const all = { ...kept.figures, ...rounded, ...tortureFigures() }
  /** @type {Results} */
  const results = {
    ...facts,
    seconds: { ...kept.seconds, ...seconds },
    budget: judge(linesOf(all)),
    plots: { ...kept.plots, ...roundPlots(plots) },
    figures: all,
  }
  writeFileSync(resultsFile, `${JSON.stringify(results, null, 2)}\n`)
  const met = results.budget.filter(({ pass }) => pass).length
  return { met, missed: results.budget.length - met }
}

/** @returns {Measured['figures']} */
function tortureFigures() {
  if (!existsSync(tortureFile)) return {}
  const torture = Object.entries(/** @type {Torture} */ (JSON.parse(readFileSync(tortureFile, 'utf8'))))
  const about = { backend: 'torture', unit: /** @type {const} */ ('count') }
  const sum = (/** @type {(one: Torture[string]) => number} */ of) => torture.reduce((all, [, one]) => all + of(one), 0)
  return {
    torture: [
      {
        ...about,
        id: 'torture.sessions',
        what: `sessions on the backend with the fewest of ${torture.map(([name]) => name).join(', ')}`,
        ours: Math.min(...torture.map(([, { sessions }]) => sessions)),
      },
      {
        ...about,
        id: 'torture.faults',
        what: 'acknowledgements lost or effects repeated',
        ours: sum((one) => one.faults),
      },
      { ...about, id: 'torture.kills', what: 'processes killed', ours: sum((one) => one.kills) },
      { ...about, id: 'torture.effects', what: 'effects', ours: sum((one) => one.effects) },
    ],
  }
}

/** @param {Line} line @returns {Line} */
function roundLine(line) {
  return /** @type {Line} */ (
    Object.fromEntries(
      Object.entries(line).map(([name, value]) => [name, typeof value === 'number' ? round(value) : value]),
    )
  )
}

/** @param {Measured['plots']} plots @returns {Measured['plots']} */
function roundPlots(plots) {
  const one = (/** @type {Point} */ { turns, ms, bytes }) => ({ turns, ms: round(ms), bytes: Math.round(bytes) })
  return Object.fromEntries(
    Object.entries(plots).map(([name, series]) => [
      name,
      Object.fromEntries(Object.entries(series).map(([who, points]) => [who, points.map(one)])),
    ]),
  )
}
