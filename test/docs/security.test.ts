import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

it('names for every attack of the threat model tests that exist', () => {
  const rows = readFileSync(join(root, 'docs', 'security.md'), 'utf8')
    .split('\n## Attacks\n')[1]
    ?.split('\n## ')[0]
    ?.split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| attack'))
  expect(rows?.length).toBeGreaterThan(25)
  for (const row of rows ?? []) {
    const tests = [...row.matchAll(/`(test\/[\w/.-]+)`/g)].map(([, path]) => path as string)
    expect(tests, row).not.toEqual([])
    expect(
      tests.filter((path) => !existsSync(join(root, path))),
      row,
    ).toEqual([])
  }
})
