import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { pages, root } from './blocks.js'

it('the README starts with the two commands that try everything', () => {
  const [, block = ''] = /```sh\n([^]*?)```/.exec(readFileSync(join(root, 'README.md'), 'utf8')) ?? []
  expect(block.split('\n').map((line) => line.replace(/ +#.*/, ''))).toEqual([
    'npm ci && npm run demo',
    'npm ci && npm test',
    '',
  ])
})

/** Generated, and what says how each promise was tested. */
const EVIDENCE = /^docs\/(api\/|guarantees\.md)/

// Whoever reads them in node_modules has no scripts to run.
it('the guides name no script that only the repository has', () => {
  const cited = pages()
    .filter((page) => page.startsWith('docs/') && !EVIDENCE.test(page))
    .flatMap((page) => {
      const found = readFileSync(join(root, page), 'utf8').match(/npm run [\w:]+|node scripts\/\S+/g) ?? []
      return found.map((script) => `${page}: ${script}`)
    })
  expect(cited).toEqual([])
})
