import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { makeApiReference, readApiPage } from '../../scripts/docs/api-reference.mjs'
import { root } from './blocks.js'

describe('docs/api', () => {
  const { pages, undocumented, misplaced } = makeApiReference(root)

  it('has a comment for every public name, and a page', () => {
    expect(undocumented).toEqual([])
    expect(misplaced).toEqual([])
  })

  it('has exactly the pages that are made from the types', () => {
    expect(readdirSync(join(root, 'docs', 'api')).sort()).toEqual([...pages.keys()].sort())
  })

  for (const [file, text] of pages) {
    it(`${file} is what the types say today; otherwise run: npm run docs:api`, () => {
      expect(readApiPage(root, file) === text).toBe(true)
    })
  }

  it('names no place of the machine that made it', () => {
    for (const text of pages.values()) expect(text).not.toContain(root.replace(/\/$/, ''))
  })
})
