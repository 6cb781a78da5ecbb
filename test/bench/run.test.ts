import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { root } from '../docs/blocks.js'

const bench = (...args: string[]) =>
  promisify(execFile)(process.execPath, [join(root, 'bench/run.mjs'), '--no-build', ...args])

it('measures a suite in short and says what it found', async () => {
  const { stdout } = await bench('--quick', '--rounds', '1', '--only', 'cpu', '--backend', 'memory', '--json')
  const { suites } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
  expect(suites.cpu.map(({ id }: { id: string }) => id)).toEqual([
    'cpu.update',
    'cpu.flow50',
    'cpu.flow4000',
    'cpu.agent',
    'cpu.run',
  ])
  for (const { ours } of suites.cpu) expect(ours).toBeGreaterThan(0)
})

it('refuses what it does not know, and to save half of a measurement', async () => {
  await expect(bench('--only', 'nothing')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('nothing'),
  })
  await expect(bench('--save', '--quick')).rejects.toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--quick'),
  })
})
