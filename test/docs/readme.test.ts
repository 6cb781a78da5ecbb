import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { redisUrl } from '../support/servers.js'
import { type Block, blocksOf, pages, root } from './blocks.js'

const run = promisify(execFile)

/** A project of a user who installed holdfast and what its guides mention. */
function makeProject(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-docs-'))
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/holdfast'))
  for (const used of ['@langchain', 'zod', '@ai-sdk']) {
    symlinkSync(join(root, 'node_modules', used), join(folder, 'node_modules', used))
  }
  return folder
}

/** The code that Node runs: that of the README as it is printed, of other pages without its types. */
function plain({ page, code }: Block): string {
  if (page === 'README.md') return code
  return ts.transpileModule(code, { compilerOptions: { target: ts.ScriptTarget.ES2023, module: ts.ModuleKind.ESNext } })
    .outputText
}

describe('the runnable blocks of the documentation', async () => {
  for (const page of pages()) {
    for (const [i, block] of blocksOf(page).entries()) {
      if (!block.runnable) continue
      // What is left behind by the first run must not be in the way of the second.
      const rounds = /'(sqlite|file):/.test(block.code) ? 2 : 1
      const needsRedis = block.code.includes('process.env.REDIS_URL')
      const redis = needsRedis ? await redisUrl() : undefined
      it.skipIf(needsRedis && redis === undefined).concurrent(
        `${page}: block ${i + 1} (line ${block.line}) runs${rounds === 2 ? ', twice' : ''}`,
        async () => {
          const folder = makeProject()
          try {
            writeFileSync(join(folder, 'example.mjs'), plain(block))
            const env = { ...process.env, ...(redis === undefined ? {} : { REDIS_URL: redis }) }
            for (let round = 0; round < rounds; round++) {
              const { stdout } = await run(process.execPath, ['example.mjs'], { cwd: folder, env })
              expect(stdout).not.toBe('')
            }
          } finally {
            rmSync(folder, { recursive: true, force: true })
          }
        },
        120_000,
      )
    }
  }

  it('are in the README, and there the first one needs nothing but holdfast', () => {
    const [first] = blocksOf('README.md')
    expect(first?.runnable).toBe(true)
    expect([...(first?.code ?? '').matchAll(/from '([^']+)'/g)].map(([, name]) => name)).toEqual(['holdfast'])
  })
})
