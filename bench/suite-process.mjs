// @ts-check
// One suite in a process of its own: nothing that another one left in memory is part of what is measured, and one that hangs
// can be ended. What it finds is told line by line.
import { makeBackends } from './backends.mjs'
import { budgetedBackends, SUITES } from './suites.mjs'

/**
 * @typedef {object} Order
 * @property {string} suite
 * @property {string[]} backends
 * @property {string} folder
 * @property {Record<string, string>} servers their addresses, by variable
 * @property {string[]} given variables that were set before we started any server
 * @property {boolean} quick
 * @property {boolean} budgeted only what the budget names
 * @property {number} rounds
 */
/**
 * @typedef {{ progress: string } | { line: import('./statistics.mjs').Line } | { plot: string, points: any }
 *   | { missing: string } | { failed: string } | { done: true }} News
 */

const order = /** @type {Order} */ (JSON.parse(process.argv[2] ?? '{}'))
process.on('disconnect', () => process.exit(1))
const tell = (/** @type {News} */ news) => void process.send?.(news)

try {
  const where = { folder: order.folder, env: order.servers, given: order.given }
  const kinds = /** @type {import('./backends.mjs').Kind[]} */ (order.backends)
  const all = kinds.flatMap((kind) => makeBackends(kind, where))
  const backends = order.budgeted ? budgetedBackends(order.suite, all) : all
  const { run } = await /** @type {NonNullable<typeof SUITES[string]>} */ (SUITES[order.suite])()
  await run({
    backends,
    quick: order.quick,
    rounds: order.rounds,
    folder: order.folder,
    progress: (progress) => tell({ progress }),
    report: (line) => tell({ line }),
    plot: (plot, points) => tell({ plot, points }),
  })
  tell({ done: true })
} catch (error) {
  const isMissing = error instanceof Error && /** @type {any} */ (error).code === 'ERR_MODULE_NOT_FOUND'
  tell(isMissing ? { missing: error.message } : { failed: String(error instanceof Error ? error.stack : error) })
}
// The parent has read everything when it lets go.
