import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkLayers } from '../scripts/check-layers.mjs'

const checker = fileURLToPath(new URL('../scripts/check-layers.mjs', import.meta.url))
const manifest = JSON.stringify({
  name: 'holdfast',
  exports: {
    '.': { default: './dist/index.js' },
    './testing': { default: './dist/testing/index.js' },
    './langgraph': { default: './dist/adapters/langgraph/index.js' },
  },
  peerDependenciesMeta: {
    pg: { optional: true },
    ioredis: { optional: true },
    '@langchain/core': { optional: true },
    '@langchain/langgraph-checkpoint': { optional: true },
  },
})

describe('the layer check', () => {
  let root: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'holdfast-layers-'))
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  function write(files: Record<string, string>): void {
    for (const [path, text] of Object.entries({ 'package.json': manifest, ...files })) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), text)
    }
  }

  it('passes on this project', () => {
    const { status, output } = run()
    expect(output).toContain('imports point downward only')
    expect(status).toBe(0)
  })

  it('fails on a tree with a violation, naming the file, the import and the rule', () => {
    write({ 'src/core/ids.ts': `export {}\nimport { fold } from '../log/fold.js'\n`, 'src/log/fold.ts': '' })
    const { status, output } = run(root)
    expect(output).toContain(`src/core/ids.ts:2  imports '../log/fold.js'\n    core may import only: nothing of ours`)
    expect(status).toBe(1)
  })

  it.each<[string, Record<string, string>]>([
    ['a lower layer', { 'src/log/fold.ts': `import { encode } from '../codec/body.js'` }],
    ['the driver contract', { 'src/drivers/memory/driver.ts': `import type { Driver } from '../../log/contract.js'` }],
    ['what drivers share', { 'src/drivers/redis/driver.ts': `import { retry } from '../shared/retry.js'` }],
    ['a file of the same driver', { 'src/drivers/redis/driver.ts': `import { keys } from './keys.js'` }],
    ['a public entry point from the CLI', { 'src/cli/list.ts': `import { openHoldfast } from 'holdfast'` }],
    ['the public index from testing', { 'src/testing/suite.ts': `import { openHoldfast } from '../index.js'` }],
    ['an optional peer lazily', { 'src/drivers/postgres/pool.ts': `const pg = await import('pg')` }],
    ['types of an optional peer', { 'src/drivers/postgres/pool.ts': `import type { Pool } from 'pg'` }],
    ['a peer whose classes an adapter extends', { 'src/adapters/langgraph/a.ts': `import '@langchain/core/messages'` }],
    ['every driver from open.ts', { 'src/open.ts': `import './drivers/memory/driver.js'` }],
    ['process.env in the CLI', { 'src/cli/main.ts': `export const url = process.env['HOLDFAST_URL']` }],
  ])('allows %s', (_, files) => {
    write(files)
    expect(checkLayers(root)).toEqual({ files: 1, violations: [] })
  })

  it.each<[string, string, string, string]>([
    ['an upward import', 'src/core/ids.ts', `import { x } from '../log/fold.js'`, 'nothing of ours'],
    ['an upward type import', 'src/codec/body.ts', `import type { X } from '../log/fold.js'`, 'codec may import only'],
    ['an upward re-export', 'src/core/ids.ts', `export * from '../codec/body.js'`, 'nothing of ours'],
    ['an upward lazy import', 'src/log/fold.ts', `await import('../drivers/memory/driver.js')`, 'log may import only'],
    ['a driver using the codec', 'src/drivers/file/driver.ts', `import '../../codec/body.js'`, 'log/contract.ts'],
    ['a driver using the log', 'src/drivers/file/driver.ts', `import '../../log/fold.js'`, 'log/contract.ts'],
    ['one driver using another', 'src/drivers/file/a.ts', `import '../memory/driver.js'`, 'never import each other'],
    ['the CLI reaching inside', 'src/cli/list.ts', `import '../log/fold.js'`, 'cli may import only: public'],
    ['an inner file using the index', 'src/log/fold.ts', `import '../index.js'`, 'must not import the public index'],
    ['an unexported subpath', 'src/cli/list.ts', `import 'holdfast/log'`, 'cli may import only: public'],
    ['a test alias in src', 'src/log/fold.ts', `import '#src/codec/body.js'`, 'import by relative path'],
    ['a file outside src', 'src/log/fold.ts', `import '../../test/x.js'`, 'outside src/'],
    ['a folder without a layer', 'src/misc/a.ts', `export {}`, 'has no layer'],
    ['an optional peer at load', 'src/drivers/postgres/a.ts', `import { Pool } from 'pg'`, 'loaded lazily'],
    ['a peer with inline types', 'src/drivers/redis/a.ts', `import { type Redis } from 'ioredis'`, 'loaded lazily'],
    ["an adapter's peer elsewhere", 'src/store/a.ts', `import '@langchain/core/messages'`, 'loaded lazily'],
    ['another peer in an adapter', 'src/adapters/langgraph/a.ts', `import { Pool } from 'pg'`, 'loaded lazily'],
    ['the index loading an adapter', 'src/index.ts', `export * from './adapters/langgraph/index.js'`, 'only users'],
    ['the CLI loading an adapter', 'src/cli/a.ts', `import 'holdfast/langgraph'`, 'only users'],
    ['process.env', 'src/core/a.ts', `export const a = process.env['A']`, 'no process.env'],
    ['process.env in disguise', 'src/core/a.ts', `const { env } = globalThis.process`, 'no process.env'],
    ['node:process', 'src/core/a.ts', `import { env } from 'node:process'`, 'no node:process'],
  ])('refuses %s', (_, file, text, rule) => {
    write({ [file]: text })
    expect(checkLayers(root).violations).toEqual([
      { file: file.slice('src/'.length), line: 1, subject: expect.any(String), rule: expect.stringContaining(rule) },
    ])
  })

  it('fails on a tree without sources, so that a wrong folder never passes', () => {
    write({})
    expect(run(root)).toMatchObject({ status: 1 })
  })
})

function run(...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [checker, ...args], { encoding: 'utf8' })
  return { status, output: stdout + stderr }
}
