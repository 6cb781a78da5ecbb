import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const page = read('docs/one-write.md')
const steps = [...page.matchAll(/^\| \d+ \| `([^`]+)` \| `([^`]+)` \|/gm)].map(([, file, symbol]) => ({
  file: file as string,
  symbol: symbol as string,
}))

/** Where a symbol is defined: a function, a method, a constant or a class. */
function defines(source: string, symbol: string): boolean {
  const name = symbol.replace(/[$#]/g, '\\$&')
  return new RegExp(`(^|\\s)(function |class |const |async |)${name}\\s*[(=<:]`, 'm').test(source)
}

describe('docs/one-write.md', () => {
  it('walks at least eight steps', () => {
    expect(steps.length).toBeGreaterThanOrEqual(8)
  })

  for (const { file, symbol } of steps) {
    it(`finds ${symbol} in ${file}`, () => {
      expect(defines(read(file), symbol)).toBe(true)
    })
  }

  it('finds every other symbol that the text names with its file', () => {
    const named = [...page.matchAll(/`([\w#]+)` in `(src\/[^`]+)`/g)]
    expect(named.length).toBeGreaterThan(0)
    for (const [, symbol, file] of named)
      expect(defines(read(file as string), symbol as string), `${symbol} in ${file}`).toBe(true)
  })

  it('needs no more than twelve files and 1,500 lines', () => {
    const files = [...new Set(steps.map(({ file }) => file))]
    expect(files.length).toBeLessThanOrEqual(12)
    const lines = files.reduce((sum, file) => sum + read(file).split('\n').length, 0)
    expect(lines).toBeLessThanOrEqual(1500)
  })

  it('fails when a symbol moves', () => {
    expect(defines(read('src/log/write/log-writer.ts'), '#notThere')).toBe(false)
    expect(defines('const other = planAppendix()', 'planAppend')).toBe(false)
  })
})
