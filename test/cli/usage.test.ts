import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { openHoldfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { collect, holdfast, main, programs } from './command.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

describe('the command line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  const store = `sqlite:${join(folder, 'a.db')}`
  const env = { HOLDFAST_STORE: store }

  beforeAll(async () => {
    const hf = await openHoldfast(store)
    const ids = [{ user: 'user-42', session: 'bf-847' }, 'orders', 'order-17']
    for (const id of ids) await (await hf.log(id)).update(() => [{ kind: 'input', index: { status: 'active' } }])
    await hf.close()
    writeFileSync(join(folder, 'empty.mjs'), 'export const answer = 42')
    writeFileSync(join(folder, 'broken.mjs'), 'import "./nowhere.mjs"')
    writeFileSync(join(folder, 'typed.ts'), 'export const a: number = 1')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each<[what: string, args: string[], code: number, says: string]>([
    ['no such command', ['thraeds'], 2, "unknown command 'thraeds'"],
    ['an unknown option', ['threads', '--colour'], 2, "unknown option '--colour'"],
    ['a missing argument', ['show'], 2, "missing required argument 'thread'"],
    ['a thread that is called otherwise', ['show', 'user-42/bf-847'], 3, 'did you mean session=bf-847,user=user-42?'],
    ['a thread that is like others', ['state', 'order'], 3, 'did you mean order-17 or orders?'],
    ['a thread like nothing', ['history', 'zzz'], 3, 'No thread zzz.'],
    ['a branch that is not there', ['show', 'orders', '--branch', 'x'], 3, 'Its branches: main.'],
    ['a checkpoint that is not there', ['state', 'orders', '--at', '99'], 3, 'has no checkpoint "99"'],
    ['a tag that is not there', ['fork', 'orders', '--at', 'gold'], 3, 'has no checkpoint "gold"'],
    ['an id of another past', ['state', 'orders', '--at', 'main~0~000000000000'], 3, 'is not of this past'],
    ['an id that no thread has', ['show', 'x'.repeat(600)], 2, '600 bytes'],
    ['a wrong duration', ['threads', '--older-than', 'soon'], 2, '--older-than "soon" is no duration'],
    ['a wrong number', ['threads', '--limit', '-3'], 2, '--limit is "-3"'],
    ['metadata that is no pair', ['threads', '--metadata', 'region'], 2, 'is no pair'],
    ['a policy that there is not', ['fork', 'orders', '--effects', 'maybe'], 2, 'Use ask, allow, deny.'],
    ['input that is no JSON', ['run', programs, '--program', 'returns', '--input', '{a}'], 2, '--input is no JSON'],
    ['an input file that is not there', ['run', programs, '--input', '@nowhere.json'], 3, 'nowhere.json'],
    ['a module that is not there', ['run', 'nowhere.mjs'], 3, 'There is no file nowhere.mjs'],
    ['a module without programs', ['run', join(folder, 'empty.mjs')], 2, 'It exports answer.'],
    ['a module that does not load', ['worker', join(folder, 'broken.mjs')], 1, 'nowhere.mjs'],
    ['several programs', ['run', programs, '--input', '{}'], 2, 'Choose one with --program'],
    ['a program that is not there', ['run', programs, '--program', 'x', '--input', '{}'], 3, 'It exports'],
    ['nothing to verify', ['verify'], 2, 'Name a thread, or pass --all.'],
    ['no question', ['approve', 'orders'], 3, 'has no open questions'],
    ['a question that is not there', ['answer', 'orders', 'p-1', '1'], 3, 'asks no question "p-1"'],
    ['a scope that is none', ['store', 'get', 'user-42', 'prefs', 'x'], 2, '"user-42" is no scope'],
    ['a filter that is none', ['store', 'search', 'a=b', 'c', '--filter', '{"x":{"near":1}}'], 2, 'near'],
    ['a store of no kind', ['threads', '--store', 'mongo://x'], 2, 'has no scheme that Holdfast knows'],
    ['a store that is not there', ['threads', '--store', `sqlite:${folder}/b.db`], 3, 'There is no store at'],
    ['a config that is not there', ['threads', '--config', 'x.json'], 3, 'There is no config file'],
    ['a server that does not answer', ['threads', '--store', 'postgres://u:secret@127.0.0.1:1/x'], 5, '127.0.0.1:1'],
  ])('says what is wrong: %s', async (_, args, code, says) => {
    const ended = await holdfast(args, { env })
    expect(ended).toMatchObject({ code, out: '', err: expect.stringContaining(says) })
    expect(ended.err).not.toMatch(/\n {4}at |secret/)
  })

  it('leaves nothing behind of a store that was not there', () => {
    expect(existsSync(join(folder, 'b.db'))).toBe(false)
  })

  it('prints errors as JSON, and stacks only when asked', async () => {
    const [plain, debug, usage] = await Promise.all([
      holdfast(['show', 'zzz', '--json'], { env }),
      holdfast(['show', 'zzz', '--json', '--debug'], { env }),
      holdfast(['show', '--json'], { env }),
    ])
    expect(JSON.parse(plain.err).error).toEqual({
      code: 'not-found',
      message: 'No thread zzz.',
      remedy: expect.stringContaining('holdfast threads'),
      data: { thread: 'zzz', similar: [] },
    })
    expect(JSON.parse(debug.err).error.stack).toContain('find-thread.js')
    expect(JSON.parse(usage.err).error.code).toBe('usage')
  })

  it('helps without loading the library', async () => {
    const log = join(folder, 'imports.txt')
    const hooks = `import { appendFileSync } from 'node:fs'
      export const load = (url, context, next) => (appendFileSync(${JSON.stringify(log)}, url + '\\n'), next(url, context))`
    const register = `import { register } from 'node:module'; register('data:text/javascript,${encodeURIComponent(hooks).replaceAll("'", '%27')}')`
    const imports = ['--import', `data:text/javascript,${encodeURIComponent(register)}`]
    const help = await collect(spawn(process.execPath, [...imports, main, '--help']))
    expect(help).toMatchObject({ code: 0, out: expect.stringContaining('Exit codes: 0 ok') })
    const loaded = readFileSync(log, 'utf8')
    expect(loaded).toContain('/dist/cli/main.js')
    expect(loaded).not.toContain('/dist/index.js')
    expect(loaded).not.toMatch(/cli-table3|clack/)
  })

  it('prints a table in colour on a terminal, without where NO_COLOR is set', async () => {
    const [colour, none] = await Promise.all([
      holdfast(['threads'], { env: { ...env, HOLDFAST_FORCE_TTY: '1' } }),
      holdfast(['threads'], { env: { ...env, HOLDFAST_FORCE_TTY: '1', NO_COLOR: '1' } }),
    ])
    expect(colour.out).toContain('\u001b[36m')
    expect(none.out).toMatch(/^THREAD +BRANCH +STATUS/)
    expect(none.out).toMatch(/^orders +main +active +1 +\d+(ms|s|m) ago/m)
  })

  it('ends quietly when its reader closes the pipe', async () => {
    const child = spawn(process.execPath, [main, 'threads', '--json'], { env: { ...process.env, ...env } })
    child.stdout.destroy()
    expect(await collect(child)).toMatchObject({ code: 0, err: '' })
  })

  it('finds the store in the nearest config file, and tells the three places apart', async () => {
    const inner = join(folder, 'project', 'src')
    mkdirSync(inner, { recursive: true })
    writeFileSync(join(folder, 'project', 'holdfast.config.json'), JSON.stringify({ store: 'sqlite:../a.db' }))
    writeFileSync(join(inner, 'other.mjs'), `export default { store: ${JSON.stringify(store)}, tenant: 'nobody' }`)
    const [near, given, tenant, bad] = await Promise.all([
      holdfast(['threads', '--json'], { cwd: inner }),
      holdfast(['threads', '--json'], { cwd: inner, env: { HOLDFAST_STORE: 'file:nowhere' } }),
      holdfast(['threads', '--json', '--config', 'other.mjs'], { cwd: inner }),
      holdfast(['threads'], { cwd: tmpdir() }),
    ])
    expect(JSON.parse(near.out).threads).toHaveLength(3)
    expect(given).toMatchObject({ code: 3, err: expect.stringContaining('from HOLDFAST_STORE') })
    expect(JSON.parse(tenant.out).threads).toHaveLength(0)
    expect(bad).toMatchObject({ code: 2, err: expect.stringContaining('No store is named') })
  })

  it('loads TypeScript where it can, and says what to do where it can not', async () => {
    const typed = await holdfast(['run', join(folder, 'typed.ts')], { env })
    const can = Boolean((process.features as { typescript?: unknown }).typescript)
    expect(typed).toMatchObject({
      code: 2,
      err: expect.stringContaining(can ? 'It exports a.' : 'npm install --save-dev tsx'),
    })
  })

  it('makes a project that works, and whose test kills and resumes', async () => {
    const project = join(folder, 'my-agent')
    mkdirSync(join(project, 'node_modules'), { recursive: true })
    symlinkSync(root, join(project, 'node_modules', 'holdfast'), 'dir')
    const made = await holdfast(['init', project, '--json'])
    expect(made.code).toBe(0)
    expect(JSON.parse(made.out)).toMatchObject({ installed: true, files: expect.arrayContaining(['support.mjs']) })
    const again = await holdfast(['init', project])
    expect(again).toMatchObject({ code: 4, err: expect.stringContaining('already has') })

    const node = (...args: string[]) => collect(spawn(process.execPath, args, { cwd: project, env: cleanEnv() }))
    expect((await node('start.mjs')).out).toContain('It waits for a person')
    expect(await holdfast(['approve', 'demo-1'], { cwd: project })).toMatchObject({ code: 0 })
    expect((await node('start.mjs')).out).toBe('Done: RET-ORD-2\n')
    const tested = await node('--test', 'test/')
    expect(tested).toMatchObject({ code: 0, out: expect.stringContaining('nothing is done twice') })
  })
})

// node:test refuses to run inside of another run of it.
function cleanEnv(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  return env
}
