// @ts-check
// Small SVG charts without a dependency. Colors are classes, so that the same file is readable on light and on dark pages.

/** @typedef {'holdfast' | 'saver' | 'delta' | 'bare' | 'dbos'} Who */

const COLORS = /** @type {Record<Who, readonly [light: string, dark: string]>} */ ({
  holdfast: ['#1d4ed8', '#7aa2ff'],
  saver: ['#b45309', '#f5b657'],
  delta: ['#7e22ce', '#c79bff'],
  bare: ['#57606a', '#a8b1bb'],
  dbos: ['#047857', '#4fd1a5'],
})
const FONT = 'font-family="ui-sans-serif, system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"'

/** @param {number} width @param {number} height @param {string} title @param {readonly string[]} parts */
function page(width, height, title, parts) {
  const style = (/** @type {0 | 1} */ mode) =>
    Object.entries(COLORS)
      .map(([who, color]) => `.${who}{fill:${color[mode]};stroke:${color[mode]}}`)
      .join('')
  const frame = (/** @type {string} */ ink, /** @type {string} */ grid) => `.ink{fill:${ink}}.grid{stroke:${grid}}`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" ${FONT} font-size="12">`,
    `<title>${escape(title)}</title>`,
    `<style>${style(0)}${frame('#1f2328', '#d8dee4')}.line{fill:none;stroke-width:2}`,
    `@media (prefers-color-scheme:dark){${style(1)}${frame('#d0d7de', '#3d444d')}.line{fill:none}}</style>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n')
}

/** A peer that was not there leaves nothing to draw. @param {string} title */
function emptyPage(title) {
  return page(400, 40, title, [label(0, 16, title, 'font-size="14" font-weight="600"'), label(0, 34, 'Not measured.')])
}

/** @param {number} x @param {number} y @param {string} text @param {string} [more] */
function label(x, y, text, more = '') {
  return `<text class="ink" x="${trim(x)}" y="${trim(y)}"${more && ` ${more}`}>${escape(text)}</text>`
}

/** @param {readonly (readonly [who: Who, name: string])[]} names @param {number} x @param {number} y @param {number} width of each */
function legend(names, x, y, width) {
  return names.flatMap(([who, name], i) => [
    `<rect class="${who}" x="${x + i * width}" y="${y - 9}" width="10" height="10" rx="2"/>`,
    label(x + i * width + 15, y, name),
  ])
}

/** @typedef {{ title: string, series: readonly { who: Who, points: readonly (readonly [x: number, y: number])[] }[] }} Panel */

const PANEL = { width: 340, height: 190, left: 68, top: 66, gap: 20 }

/**
 * Curves side by side, with the same logarithmic scale.
 * @param {{ title: string, xName: string, show: (y: number) => string, names: readonly (readonly [Who, string])[], panels: readonly Panel[] }} chart
 */
export function drawCurves({ title, xName, show, names, panels }) {
  const all = panels.flatMap(({ series }) => series.flatMap(({ points }) => points))
  if (all.length === 0) return emptyPage(title)
  const [low, high] = [Math.min(...all.map(([, y]) => y)), Math.max(...all.map(([, y]) => y))]
  const [from, to] = [
    Math.floor(Math.log10(low)),
    Math.max(Math.floor(Math.log10(low)) + 1, Math.ceil(Math.log10(high))),
  ]
  const most = Math.max(...all.map(([x]) => x))
  const decades = Array.from({ length: to - from + 1 }, (_, i) => from + i)
  const parts = [label(0, 16, title, 'font-size="14" font-weight="600"'), ...legend(names, 0, 38, 165)]
  for (const [i, panel] of panels.entries()) {
    const x0 = PANEL.left + i * (PANEL.width + PANEL.gap)
    const width = PANEL.width - PANEL.left
    const x = (/** @type {number} */ value) => x0 + (value / most) * width
    const y = (/** @type {number} */ value) => PANEL.top + PANEL.height * (1 - (Math.log10(value) - from) / (to - from))
    parts.push(label(x0, PANEL.top - 6, panel.title, 'font-weight="600"'))
    for (const decade of decades) {
      const at = trim(y(10 ** decade))
      parts.push(`<line class="grid" x1="${x0}" x2="${trim(x0 + width)}" y1="${at}" y2="${at}"/>`)
      parts.push(label(x0 - 6, y(10 ** decade) + 4, show(10 ** decade), 'text-anchor="end"'))
    }
    for (const { who, points } of panel.series) {
      const path = points.map(([px, py]) => `${trim(x(px))},${trim(y(py))}`)
      parts.push(`<polyline class="${who} line" points="${path.join(' ')}"/>`)
      for (const at of path) {
        const [cx, cy] = at.split(',')
        parts.push(`<circle class="${who}" cx="${cx}" cy="${cy}" r="2.5"/>`)
      }
    }
    for (const tick of [0, most / 2, most]) {
      const anchor = tick === 0 ? 'start' : tick === most ? 'end' : 'middle'
      parts.push(
        label(
          x(tick),
          PANEL.top + PANEL.height + 16,
          tick === most ? `${most} ${xName}` : String(tick),
          `text-anchor="${anchor}"`,
        ),
      )
    }
  }
  // At least as wide as the legend.
  const width = Math.max(540, panels.length * (PANEL.width + PANEL.gap))
  return page(width, PANEL.top + PANEL.height + 26, title, parts)
}

/** @typedef {{ title: string, bars: readonly { who: Who, name: string, value: number }[] }} Group */

const BAR = { height: 16, gap: 4, left: 250, width: 380 }

/** Bars below one another, in groups, each group with the same scale. @param {{ title: string, unit: string, groups: readonly Group[] }} chart */
export function drawBars({ title, unit, groups }) {
  const most = Math.max(...groups.flatMap(({ bars }) => bars.map(({ value }) => value)))
  if (groups.length === 0) return emptyPage(title)
  const parts = [label(0, 16, title, 'font-size="14" font-weight="600"')]
  let y = 34
  for (const group of groups) {
    parts.push(label(0, y + 12, group.title, 'font-weight="600"'))
    y += 20
    for (const { who, name, value } of group.bars) {
      const width = Math.max(1, (value / most) * BAR.width)
      parts.push(label(BAR.left - 8, y + 12, name, 'text-anchor="end"'))
      parts.push(`<rect class="${who}" x="${BAR.left}" y="${y}" width="${trim(width)}" height="${BAR.height}" rx="2"/>`)
      parts.push(label(BAR.left + width + 6, y + 12, `${Math.round(value).toLocaleString('en-US')}${unit}`))
      y += BAR.height + BAR.gap
    }
    y += 10
  }
  return page(BAR.left + BAR.width + 80, y, title, parts)
}

/** @param {number} value */
function trim(value) {
  return String(Math.round(value * 10) / 10)
}

/** @param {string} text */
function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
