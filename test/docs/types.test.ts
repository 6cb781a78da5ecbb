import { describe, expect, it } from 'vitest'
import { blocksOf, pages, readPage } from './blocks.js'
import { checkBlocks } from './check-blocks.js'

describe('the TypeScript blocks of the documentation', () => {
  const written = pages().filter((page) => !page.startsWith('docs/api/'))
  const blocks = written.flatMap((page) => blocksOf(page))

  it('are right for a strict compiler, except those that show a mistake', () => {
    const fences = written.flatMap((page) => [...readPage(page).matchAll(/^```ts$/gm)])
    expect(blocks.length).toBe(fences.length)
    const found = checkBlocks(blocks)
    expect(blocks.flatMap((block, i) => (block.wrong ? [] : found[i]))).toEqual([])
    for (const [i, { wrong, page, line }] of blocks.entries()) {
      if (wrong) expect(found[i], `${page}:${line} is marked wrong`).not.toEqual([])
    }
  })

  it('are seen with their marks, what is given to them, and their lines', () => {
    const text = [
      '<!-- prelude',
      'declare const hf: number',
      '-->',
      'Text',
      '<!-- runnable -->',
      '```ts',
      "import 'node:fs'",
      '```',
      '<!-- wrong -->',
      '<!-- given',
      'declare const n: string',
      '-->',
      '```ts',
      'const m: number = n',
      '```',
    ].join('\n')
    const [whole, part] = blocksOf('page.md', text)
    expect(whole).toMatchObject({ runnable: true, wrong: false, given: '', line: 7 })
    expect(part).toMatchObject({ runnable: false, wrong: true, line: 14 })
    expect(part?.given).toBe('declare const hf: number\n\n\ndeclare const n: string')
    if (part) expect(checkBlocks([part])[0]).toEqual([expect.stringMatching(/^page\.md:14 TS2322 /)])
  })
})
