// @ts-check
/** @typedef {import('./statistics.mjs').Line} Line */

const HEAD = ['', 'ours', 'floor', 'ratio', 'min – max', 'budget', '']

/**
 * One table, grouped by backend.
 * @param {readonly Line[]} lines
 * @param {{ colour?: boolean }} [options]
 */
export function renderTable(lines, { colour = false } = {}) {
  const backends = [...new Set(lines.map(({ backend }) => backend))]
  const rows = lines.map((line) => ({ backend: line.backend, cells: cellsOf(line), over: line.over }))
  const widths = HEAD.map((title, column) =>
    Math.max(title.length, ...rows.map(({ cells }) => (cells[column] ?? '').length)),
  )
  /** @param {readonly string[]} cells */
  const layOut = (cells) =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[i] ?? 0))).join('   ')
  const text = [`  ${layOut(HEAD)}`.trimEnd()]
  for (const backend of backends) {
    text.push('', colour ? `\u001b[1m${backend}\u001b[0m` : backend)
    for (const { cells, over } of rows.filter((row) => row.backend === backend)) {
      const row = `  ${layOut(cells)}`.trimEnd()
      const mark = cells.at(-1) ?? ''
      text.push(colour && mark ? `${row.slice(0, -mark.length)}\u001b[${over ? 31 : 32}m${mark}\u001b[0m` : row)
    }
  }
  return text.join('\n')
}

/** @param {Line} line */
function cellsOf({ what, unit, ours, floor, ratio, low, high, budget, over }) {
  /** @param {number} value */
  const format = (value) => (ratio === undefined ? amount(value, unit) : `${shortNumber(value)}x`)
  const bound = budget && ('atMost' in budget ? `≤ ${format(budget.atMost)}` : `≥ ${format(budget.atLeast)}`)
  return [
    what,
    amount(ours, unit),
    floor === undefined ? '' : amount(floor, unit),
    ratio === undefined ? '' : format(ratio),
    low === undefined || high === undefined ? '' : `${format(low)} – ${format(high)}`,
    bound ?? '',
    over === undefined ? '' : over ? 'OVER' : 'ok',
  ]
}

/** @param {number} value @param {Line['unit']} unit */
function amount(value, unit) {
  if (unit === 'rate') return `${Math.round(value).toLocaleString('en-US')}/s`
  if (unit === 'bytes')
    return value < 1e6 ? `${Math.round(value).toLocaleString('en-US')} B` : `${shortNumber(value / 1e6)} MB`
  if (unit === 'count') return shortNumber(value)
  return Math.abs(value) < 1 ? `${shortNumber(value * 1000)} µs` : `${shortNumber(value)} ms`
}

/** @param {number} value */
function shortNumber(value) {
  const size = Math.abs(value)
  return size >= 100 ? Math.round(value).toLocaleString('en-US') : value.toFixed(size >= 10 ? 1 : 2)
}

/** One line on a terminal that says what is being measured; nothing elsewhere. */
export function makeProgress(stream = process.stderr) {
  /** @param {string} text */
  return (text) => {
    if (stream.isTTY) stream.write(`\r${text.slice(0, (stream.columns || 80) - 1)}\u001b[K`)
  }
}
