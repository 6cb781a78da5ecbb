import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openHoldfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../support/until.js'
import { collect, type Ended, holdfastProcess, main, programs, untilReady, userEnv } from './command.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

describe('the command as a process', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-process-'))
  const store = `sqlite:${join(folder, 'a.db')}`
  const env = { HOLDFAST_STORE: store }

  beforeAll(async () => {
    await using hf = await openHoldfast(`${store}?synchronous=normal`)
    const ids = Array.from({ length: 2000 }, (_, i) => `session-${i}`)
    const add = async (id: string) =>
      (await hf.log(id)).update(() => [
        { kind: 'input', index: { status: 'active', metadata: { note: 'x'.repeat(200) } } },
      ])
    await Promise.all(ids.map(add))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('ends with the exit code of the command, all of its output written', async () => {
    const all = await holdfastProcess(['threads', '--all', '--json'], { env })
    expect(all.code).toBe(0)
    expect(JSON.parse(all.out).threads).toHaveLength(2000)
    const none = await holdfastProcess(['show', 'zzz'], { env })
    expect(none).toMatchObject({ code: 3, out: '', err: expect.stringContaining('No thread zzz') })
  })

  it('ends quietly when its reader has seen enough', async () => {
    const child = spawn(process.execPath, [main, 'threads', '--all'], { env: { ...userEnv(), ...env } })
    const ended = collect(child)
    child.stdout.once('data', () => child.stdout.destroy())
    expect(await ended).toMatchObject({ code: 0, err: '' })
  })

  it('stops a worker at SIGTERM, and lets go of its threads', async () => {
    const worker = spawn(process.execPath, [main, 'worker', programs, '--json'], { env: { ...userEnv(), ...env } })
    const ended = collect(worker)
    worker.stdout.once('data', () => worker.kill('SIGTERM'))
    const { code, out } = await ended
    expect(code).toBe(0)
    expect(JSON.parse(out.split('\n')[0] as string)).toEqual({ type: 'ready', pid: worker.pid })
  })

  it('answers an orchestrator about a worker, which drains at SIGTERM', async () => {
    const args = ['worker', programs, '--json', '--health', '127.0.0.1:0']
    const worker = spawn(process.execPath, [main, ...args], { env: { ...userEnv(), ...env } })
    const ended = collect(worker)
    const { healthPort } = await untilReady<{ healthPort: number }>(worker)
    const ask = () => fetch(`http://127.0.0.1:${healthPort}/ready`)
    // On a machine that is very busy the store may take longer to answer than a probe waits.
    await until(async () => (await ask()).status === 200)
    expect(await (await ask()).json()).toMatchObject({ places: 10, state: 'running' })
    const again = await holdfastProcess(['worker', programs, '--health', `127.0.0.1:${healthPort}`], { env })
    expect(again).toMatchObject({ code: 5, err: expect.stringContaining('Pass another --health.') })
    const wrong = await holdfastProcess(['worker', programs, '--health', 'eighty'], { env })
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('--health "eighty" is not an address.') })
    worker.kill('SIGTERM')
    expect(await ended).toMatchObject({ code: 0 })
    expect(await ask().catch(() => 'gone')).toBe('gone')
  })

  it('helps without loading the library, prompts or tables', async () => {
    const log = join(folder, 'imports.txt')
    const hooks = `import { appendFileSync } from 'node:fs'
      export const load = (url, context, next) => (appendFileSync(${JSON.stringify(log)}, url + '\\n'), next(url, context))`
    const register = `import { register } from 'node:module'; register('data:text/javascript,${encodeURIComponent(hooks).replaceAll("'", '%27')}')`
    const imports = ['--import', `data:text/javascript,${encodeURIComponent(register)}`]
    const help = await collect(spawn(process.execPath, [...imports, main, '--help']))
    expect(help).toMatchObject({ code: 0, out: expect.stringContaining('Exit codes: 0 ok') })
    const loaded = readFileSync(log, 'utf8').trim().split('\n')
    const ours = loaded.filter((url) => url.includes('/dist/')).map((url) => url.replace(/.*\/dist\//, ''))
    expect(ours).toContain('cli/main.js')
    expect(ours.filter((file) => !file.startsWith('cli/'))).toEqual(['core/bundle.js'])
    const packages = loaded.flatMap((url) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? [])
    expect([...new Set(packages)]).toEqual(['commander'])
  })

  it('loads TypeScript by the tsx of the project, and says what to do where nothing can', async () => {
    const project = join(folder, 'typed')
    mkdirSync(join(project, 'node_modules'), { recursive: true })
    symlinkSync(root, join(project, 'node_modules', 'holdfast'), 'dir')
    writeFileSync(join(project, 'name.ts'), `export const name: string = 'typed'`)
    writeFileSync(
      join(project, 'program.ts'),
      `import { flow } from 'holdfast'
      import { name } from './name.js'
      export const typed = flow({ name, version: '1.0.0' }, async (_: unknown, input: number) => input + 1)`,
    )
    const without = await holdfastProcess(['run', 'program.ts', '--input', '1'], { env, cwd: project })
    if (!('typescript' in process.features)) {
      expect(without).toMatchObject({ code: 2, err: expect.stringContaining('npm install --save-dev tsx') })
    } else expect(without.code).toBe(1)
    symlinkSync(join(root, 'node_modules', 'tsx'), join(project, 'node_modules', 'tsx'), 'dir')
    const typed = await holdfastProcess(['run', 'program.ts', '--input', '1'], { env, cwd: project })
    expect(typed, typed.err).toMatchObject({ code: 0, out: '2\n' })
  })

  it('makes a project that starts, asks, goes on, checks its types, and whose test kills and resumes', async () => {
    const project = join(folder, 'my-agent')
    // The packages that npm would install, from here: scripts/check-pack.mjs installs them.
    const modules = join(project, 'node_modules')
    for (const name of ['@ai-sdk/openai-compatible', 'zod', 'tsx', 'typescript', '@types/node']) {
      mkdirSync(join(modules, name, '..'), { recursive: true })
      symlinkSync(join(root, 'node_modules', name), join(modules, name), 'dir')
    }
    symlinkSync(root, join(modules, 'holdfast'), 'dir')
    const made = await holdfastProcess(['init', project, '--json'])
    expect(made.code, made.err).toBe(0)
    expect(JSON.parse(made.out)).toMatchObject({ installed: true, files: expect.arrayContaining(['src/agent.ts']) })
    const again = await holdfastProcess(['init', project])
    expect(again).toMatchObject({ code: 4, err: expect.stringContaining('Nothing was written.') })

    const { scripts } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'))
    const path = `${join(root, 'node_modules', '.bin')}:${process.env['PATH']}`
    const script = (name: string, more = ''): Promise<Ended> =>
      collect(spawn(`${scripts[name]} ${more}`, { cwd: project, env: { ...userEnv(), PATH: path }, shell: true }))
    const [checked, tested] = [script('types'), script('test')]
    expect((await script('start')).out).toContain('It waits for a person: {"tool":"openReturn"')
    expect(await holdfastProcess(['approve', 'demo-1', '--yes'], { cwd: project })).toMatchObject({ code: 0 })
    expect(await script('start')).toMatchObject({ code: 0, out: 'Done: your return label is RET-ORD-2-1.\n' })
    expect(await script('start', '"Where is ORD-1?"')).toMatchObject({
      out: 'Order ORD-1, socks, was delivered on Monday.\n',
    })
    expect(await checked).toMatchObject({ code: 0, out: '' })
    expect(await tested).toMatchObject({ code: 0, out: expect.stringContaining('nothing is done twice') })
  })
})
