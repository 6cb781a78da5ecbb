import { execFile } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)

function pages(): string[] {
  const listed = readdirSync(join(root, 'docs'), { recursive: true }) as string[]
  return [
    'README.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    ...listed.filter((name) => name.endsWith('.md')).map((name) => join('docs', name)),
  ]
}

describe('the documentation', () => {
  for (const page of pages()) {
    const text = readFileSync(join(root, page), 'utf8')

    it(`${page} links only to files that exist`, () => {
      for (const [, target] of text.matchAll(/\]\((?!https?:)([^)#]+)(#[^)]*)?\)/g)) {
        expect(existsSync(join(root, dirname(page), target as string)), `${page} -> ${target}`).toBe(true)
      }
    })

    for (const [i, [, code]] of [...text.matchAll(/<!-- runnable -->\s*```ts\n([\s\S]*?)```/g)].entries()) {
      it(`${page}: example ${i + 1} runs as printed, twice`, async () => {
        const folder = mkdtempSync(join(tmpdir(), 'holdfast-docs-'))
        try {
          mkdirSync(join(folder, 'node_modules'))
          symlinkSync(root, join(folder, 'node_modules/holdfast'))
          for (const used of ['zod', '@ai-sdk', '@langchain']) {
            symlinkSync(join(root, 'node_modules', used), join(folder, 'node_modules', used))
          }
          writeFileSync(join(folder, 'example.mjs'), code as string)
          const first = await run(process.execPath, ['example.mjs'], { cwd: folder })
          const second = await run(process.execPath, ['example.mjs'], { cwd: folder })
          expect(first.stdout).not.toBe('')
          expect(second.stdout.length).toBeGreaterThanOrEqual(first.stdout.length)
        } finally {
          rmSync(folder, { recursive: true, force: true })
        }
      })
    }
  }
})
