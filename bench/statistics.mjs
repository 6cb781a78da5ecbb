// @ts-check

/**
 * One measured line. `budget` bounds the ratio, or `ours` where there is no floor to compare with.
 * @typedef {object} Line
 * @property {string} [id] by which bench/budget.mjs and the figures find it
 * @property {string} backend
 * @property {string} what
 * @property {'time' | 'rate' | 'bytes' | 'count'} unit time in milliseconds
 * @property {number} ours
 * @property {number} [floor]
 * @property {number} [ratio] median over the rounds
 * @property {number} [low] smallest ratio of a round
 * @property {number} [high]
 * @property {{ atMost: number } | { atLeast: number }} [budget]
 * @property {boolean} [over]
 */

/** @param {readonly number[]} values @param {number} share 0 to 1 */
export function quantile(values, share) {
  if (values.length === 0) throw new Error('Nothing was measured.')
  const sorted = [...values].sort((a, b) => a - b)
  return /** @type {number} */ (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))])
}

/** Between the two in the middle when there are two: with few rounds the upper one alone would be the worst of them. @param {readonly number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const upper = quantile(sorted, 0.5)
  return sorted.length % 2 === 1 ? upper : (upper + /** @type {number} */ (sorted[sorted.length / 2 - 1])) / 2
}

/**
 * Compares round by round and reports the median: a round that met another program's work counts once, and shows in
 * the spread.
 * @param {Pick<Line, 'id' | 'backend' | 'what' | 'unit' | 'budget'>} about
 * @param {readonly { ours: number, floor: number }[]} rounds
 * @returns {Line}
 */
export function compare(about, rounds) {
  const ratios = rounds.map(({ ours, floor }) => ours / floor)
  const ratio = median(ratios)
  return {
    ...about,
    ours: median(rounds.map(({ ours }) => ours)),
    floor: median(rounds.map(({ floor }) => floor)),
    ratio,
    low: Math.min(...ratios),
    high: Math.max(...ratios),
    ...(about.budget ? { over: isOver(ratio, about.budget) } : {}),
  }
}

/**
 * A number that stands for itself; a floor is shown beside it and not divided by.
 * @param {Pick<Line, 'id' | 'backend' | 'what' | 'unit' | 'budget' | 'floor'>} about
 * @param {readonly number[]} rounds
 * @returns {Line}
 */
export function state(about, rounds) {
  const ours = median(rounds)
  const spread = rounds.length > 1 ? { low: Math.min(...rounds), high: Math.max(...rounds) } : {}
  return { ...about, ours, ...spread, ...(about.budget ? { over: isOver(ours, about.budget) } : {}) }
}

/** @param {number} value @param {NonNullable<Line['budget']>} budget */
function isOver(value, budget) {
  return 'atMost' in budget ? value > budget.atMost : value < budget.atLeast
}

/**
 * Milliseconds that a piece of work takes.
 * @param {() => unknown} work
 */
export async function timed(work) {
  const began = performance.now()
  const result = work()
  // Not awaited when it is done already: a turn of the microtask queue is no part of a synchronous floor.
  if (result instanceof Promise) await result
  return performance.now() - began
}

/**
 * Times two pieces of work in turns, each going first as often as the other, so that whatever else the machine does
 * meets both.
 * @param {number} count
 * @param {(i: number) => unknown} ours
 * @param {(i: number) => unknown} floor
 */
export async function alternate(count, ours, floor) {
  /** @type {{ ours: number[], floor: number[] }} */
  const times = { ours: [], floor: [] }
  for (let i = 0; i < count; i++) {
    if (i % 2 === 0) times.ours.push(await timed(() => ours(i)))
    times.floor.push(await timed(() => floor(i)))
    if (i % 2 === 1) times.ours.push(await timed(() => ours(i)))
  }
  return times
}
