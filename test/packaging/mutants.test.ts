import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MUTANTS } from '../../scripts/mutants/list.mjs'

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

describe('the mutants', () => {
  it('have names of their own', () => {
    const items = MUTANTS.map(({ item }) => item)
    expect(items).toEqual([...new Set(items)])
  })

  it.each(MUTANTS.map((mutant) => [mutant.item, mutant] as const))('%s fits the code', (_, { changes, test }) => {
    for (const { file, find } of changes) {
      expect(read(`build/${file}`).split(find), `${file}: ${find}`).toHaveLength(2)
    }
    expect(read(test)).toContain('it')
  })
})
