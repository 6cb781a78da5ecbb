/** Between two columns. */
const GAP = 2
/** A column is not made narrower than this, or than its name. */
const LEAST = 8
// Characters that take two columns of a terminal: East Asian ones and emoji.
const WIDE =
  /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]|[\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/gu

/** How many columns of a terminal a text takes, about. */
function displayWidth(text: string): number {
  return [...text.replace(/\p{Mn}/gu, '')].length + (text.match(WIDE)?.length ?? 0)
}

/** Lines that are no wider than this, so that a terminal breaks none of them. */
export function breakLines(text: string, most: number): string[] {
  return text.split('\n').flatMap((line) => {
    const broken: string[] = []
    let part = ''
    let width = 0
    for (const char of line.replaceAll('\t', '  ')) {
      const own = displayWidth(char)
      if (width + own > most) {
        broken.push(part)
        part = ''
        width = 0
      }
      part += char
      width += own
    }
    return [...broken, part]
  })
}

/**
 * How wide each column is so that the rows fit a terminal: as wide as its widest cell. If that is too much, columns
 * that can be spared are dropped first, in their order, then the widest shrink, the most important last: an id that was
 * cut can't be copied. Columns that are empty, or dropped, have no width.
 */
export function fitColumns(
  names: readonly string[],
  rows: readonly (readonly string[])[],
  most: number,
  { spare = [], whole = [] }: { readonly spare?: readonly string[]; readonly whole?: readonly string[] } = {},
): number[] {
  const widths = names.map((name, i) => {
    // By a loop: there may be more rows than a call takes arguments.
    const widest = rows.reduce((most, row) => Math.max(most, displayWidth(row[i] ?? '')), 0)
    return widest === 0 ? 0 : Math.max(displayWidth(name), widest)
  })
  const least = names.map((name) => Math.max(LEAST, displayWidth(name)))
  const total = () => widths.reduce((sum, width) => sum + (width === 0 ? 0 : width + GAP), -GAP)
  for (const name of spare) if (total() > most) widths[names.indexOf(name)] = 0
  const widestOf = (may: (i: number) => boolean) =>
    widths.reduce((found, width, i) => {
      if (width <= (least[i] as number) || !may(i)) return found
      return found === -1 || width > (widths[found] as number) ? i : found
    }, -1)
  while (total() > most) {
    let widest = widestOf((i) => !whole.includes(names[i] as string))
    if (widest === -1) widest = widestOf(() => true)
    if (widest === -1) break
    widths[widest] = (widths[widest] as number) - 1
  }
  return widths
}
