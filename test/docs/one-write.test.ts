import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

/** What a newcomer reads to follow one write: whole files, from `thread.run()` to the driver. */
const MOST_FILES = 12
const MOST_LINES = 1500

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const page = read('docs/one-write.md')
const named = (pattern: RegExp) =>
  [...page.matchAll(pattern)].map(([, file, symbol]) => ({ file: file as string, symbol: symbol as string }))
/** The way of a step, and what is admitted before it. */
const steps = named(/^\| \d+ \| `([^`]+)` \| `([^`]+)` \|/gm)
const before = named(/^\| `(src\/[^`]+)` \| `([^`]+)` \|/gm)

/** Where a symbol is defined: a function, a method, a constant or a class. */
function defines(source: string, symbol: string): boolean {
  const name = symbol.replace(/[$#]/g, '\\$&')
  return new RegExp(`(^|\\s)((function |const |async |)${name}\\s*[(=<:]|class ${name}\\b)`, 'm').test(source)
}

describe('docs/one-write.md', () => {
  it('walks at least eight steps', () => {
    expect(steps.length).toBeGreaterThanOrEqual(8)
  })

  it('begins at thread.run() and ends in a driver', () => {
    expect(steps[0]?.file).toBe('src/runtime/thread.ts')
    expect(steps.at(-1)?.file).toMatch(/^src\/drivers\//)
    expect(before.length).toBeGreaterThan(4)
  })

  for (const { file, symbol } of [...steps, ...before]) {
    it(`finds ${symbol} in ${file}`, () => {
      expect(defines(read(file), symbol)).toBe(true)
    })
  }

  it('finds every other symbol that the text names with its file', () => {
    const others = [...page.matchAll(/`([\w#]+)` in `(src\/[^`]+)`/g)]
    expect(others.length).toBeGreaterThan(0)
    for (const [, symbol, file] of others)
      expect(defines(read(file as string), symbol as string), `${symbol} in ${file}`).toBe(true)
  })

  it(`passes no more than ${MOST_FILES} files up to the driver, which are read in ${MOST_LINES.toLocaleString('en-US')} lines`, () => {
    const files = [...new Set(steps.map(({ file }) => file))].filter((file) => !file.startsWith('src/drivers/'))
    expect(files.length).toBeLessThanOrEqual(MOST_FILES)
    const lines = files.reduce((sum, file) => sum + read(file).split('\n').length - 1, 0)
    expect(lines).toBeGreaterThan(files.length * 10)
    expect(lines).toBeLessThanOrEqual(MOST_LINES)
  })

  it('fails when a symbol moves', () => {
    expect(defines(read('src/log/write/log-writer.ts'), '#notThere')).toBe(false)
    expect(defines('const other = planAppendix()', 'planAppend')).toBe(false)
  })
})
