import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { checkFiles } from '../../scripts/pack/check-files.mjs'
import { expect, it } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

it('installs in an empty project, runs the first example of the README there, and loads no optional peer', () => {
  const script = fileURLToPath(new URL('../../scripts/check-pack.mjs', import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, '--quick', '--no-build'], {
    encoding: 'utf8',
  })
  expect(stdout + stderr).not.toContain('FAILED')
  expect(stdout).toMatch(/the first example of the README +ok: refunded 40/)
  expect(stdout).toMatch(/import 'holdfast' loads no peer, and no server +ok/)
  expect(stdout).toMatch(/import 'holdfast\/server' loads no peer +ok/)
  expect(status).toBe(0)
})

it('refuses a package that lacks its licence, or holds tests', () => {
  const files = ['README.md', 'test/core/ids.test.ts'].map((path) => ({ path }))
  expect(() => checkFiles(root, files)).toThrow(/LICENSE is missing[^]*test\/core\/ids\.test\.ts does not belong there/)
})
