import { exec, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openHoldfast } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'
import { openShop } from '#src/demo/shop/shop.js'
import { collect, holdfastProcess as holdfast, main } from '../cli/command.js'
import { onTerminal } from '../cli/terminal.js'
import { durableBackends } from '../support/backends.js'
import { full } from '../support/scale.js'
import { until } from '../support/until.js'

// With this seed the first five customers have 15 or 16 things to say each.
const QUICK = ['--kill-every', '1s', '--lease', '1s', '--latency', '10ms', '--seed', '401']
// A day on a server takes half a minute, and the crash tests kill workers there: only in the full run.
const backends = (await durableBackends()).filter(({ name }) => name === 'SQLite' || (full && name !== 'file'))
const folders: string[] = []
const newFolder = () => {
  const path = mkdtempSync(join(tmpdir(), 'holdfast-demo-'))
  folders.push(path)
  return path
}
afterAll(() => {
  for (const path of folders) rmSync(path, { recursive: true, force: true })
})

describe.each(backends)('the demo on $name', ({ name, missing, fresh, cleanup }) => {
  afterAll(cleanup)

  it.skipIf(missing)('loses and doubles nothing while workers are killed, and says so in one line', async () => {
    const cwd = newFolder()
    const named = name === 'SQLite' ? undefined : await fresh()
    const store = named === undefined ? [] : ['--store', named]
    const { code, out, err } = await holdfast(['demo', '--sessions', '5', '--json', ...QUICK, ...store], { cwd })
    expect(err).toMatch(/talking/)
    const report = JSON.parse(out.trimEnd().split('\n').at(-1) ?? '')
    expect(report).toMatchObject({ sessions: 5, completed: 5, lost: 0, doubled: 0, problems: [] })
    expect(code).toBe(0)
    expect(report.kills).toBeGreaterThan(0)
    expect(report.turns).toBeGreaterThanOrEqual(5 * 15)
    expect(report.turns).toBeLessThanOrEqual(5 * 16)
    for (const field of ['tokensSpent', 'bytesPerTurn', 'seconds', 'modelCalls', 'chainsVerified']) {
      expect(report[field], field).toBeGreaterThan(0)
    }
    expect(report.tokensIfRestarted).toBeGreaterThanOrEqual(report.tokensSpent)
    for (const field of ['takeovers', 'takeoverMsP50', 'takeoverMsP99', 'saveMsP50', 'loadMsP99']) {
      expect(report, field).toHaveProperty(field)
    }

    // The store itself, and the shop's own database.
    await using hf = await openHoldfast(named ?? `sqlite:${cwd}/holdfast-demo/agents.db`)
    const password = named && new URL(named).password
    if (password) expect(report.store).not.toContain(password)
    const { threads } = await hf.tenant(report.tenant).threads()
    expect(threads.map(({ status }) => status)).toEqual(Array(5).fill('completed'))
    const shop = await openShop(join(cwd, 'holdfast-demo', 'shop.db'))
    expect([shop.countReturns(), shop.countDoubles()]).toEqual([report.effects, 0])
    expect(report.effects).toBe(10)
    shop.close()

    // What it names works as it is printed.
    expect(report.commands).toHaveLength(3)
    const tried: string[] = []
    for (const command of report.commands as string[]) tried.push((await promisify(exec)(command, { cwd })).stdout)
    expect(tried[0]).toMatch(/main {2}completed/)
    expect(tried[1]).toMatch(/what-if/)
    expect(tried[2]).toMatch(/takeovers:/)
  })
})

describe('the demo', () => {
  it('draws a screen on a terminal, gives the cursor back and prints a report', async () => {
    const cwd = newFolder()
    const { code, raw, text } = await onTerminal(['demo', '--sessions', '2', '--workers', '2', ...QUICK], { cwd })
    expect(code).toBe(0)
    expect(raw).toContain('\u001b[?25l')
    expect(raw.lastIndexOf('\u001b[?25h')).toBeGreaterThan(raw.lastIndexOf('\u001b[?25l'))
    expect(text).toMatch(/worker-1 .*pid \d+/)
    expect(text).toMatch(/conversations completed: +2 of 2\nlost: +0\nreturns doubled: +0\n/)
    expect(text).toMatch(/saving a checkpoint: +p50 up to/)
    expect(text).toContain('Try on what it left behind')
  })

  it.each(['SIGINT', 'SIGKILL'] as const)('leaves no process behind when it ends by %s', async (signal) => {
    const cwd = newFolder()
    const child = spawn(process.execPath, [main, 'demo', '--sessions', '20'], {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    child.stdout.on('data', (text: Buffer) => {
      said += text
    })
    const ended = collect(child)
    await until(() => /talking/.test(said))
    let children: readonly number[] = []
    // Three workers and the model. One that was just killed is replaced.
    await until(() => (children = childrenOf(child.pid ?? 0)).length >= 4)
    child.kill(signal)
    expect((await ended).code).toBe(signal === 'SIGINT' ? 130 : null)
    await until(() => children.every((pid) => !isAlive(pid)))
  })

  it.each([
    [['--sessions', '0'], 2, /--sessions is "0"/],
    [['--workers', 'many'], 2, /--workers is "many"/],
    [['--kill-every', 'soon'], 2, /--kill-every "soon" is not a duration/],
    [['--lease', '1ms'], 2, /--lease is below 100ms/],
    [['--seed', '-1'], 2, /--seed is "-1"/],
    [['--store', 'memory:'], 2, /several processes/],
    [['--store', 'nowhere:'], 2, /nowhere/],
    [['--folder', '.'], 4, /is not empty, and no demo made it/],
  ])('refuses %j', async (args, exitCode, message) => {
    const cwd = newFolder()
    writeFileSync(join(cwd, 'precious.txt'), 'mine')
    const { code, err } = await holdfast(['demo', ...args], { cwd })
    expect(err).toMatch(message)
    expect(code).toBe(exitCode)
  })
})

function childrenOf(pid: number): readonly number[] {
  const rows = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n')
  return rows
    .map((row) => row.trim().split(/\s+/).map(Number))
    .flatMap(([own, parent]) => (parent === pid ? [own ?? 0] : []))
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
