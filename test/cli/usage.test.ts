import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'
import { openHoldfast } from 'holdfast'
import { fileAnchors } from 'holdfast/log'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { holdfast, programs } from './command.js'
import { returns } from './programs.mjs'

describe('the command line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
  const store = `sqlite:${join(folder, 'a.db')}`
  const env = { HOLDFAST_STORE: store }

  beforeAll(async () => {
    const hf = await openHoldfast(store)
    const ids = [{ user: 'user-42', session: 'bf-847' }, 'orders', 'order-17']
    for (const id of ids) await (await hf.log(id)).update(() => [{ kind: 'input', index: { status: 'active' } }])
    await (await hf.log('orders')).tag('gold')
    await hf.close()
    writeFileSync(join(folder, 'text.db'), 'This is a letter, and no database. '.repeat(30))
    await (await openHoldfast(`sqlite:${join(folder, 'newer.db')}`)).close()
    const newer = (await loadSqlite())(join(folder, 'newer.db'))
    newer.exec("INSERT INTO schema_versions VALUES (1000, 'from the future', 1, 0)")
    newer.close()
    writeFileSync(join(folder, 'empty.mjs'), 'export const answer = 42')
    writeFileSync(join(folder, 'broken.mjs'), 'import "./nowhere.mjs"')
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it.each<[what: string, args: string[], code: number, says: string]>([
    ['no such command', ['thraeds'], 2, "Unknown command 'thraeds'.\n  Did you mean threads?"],
    ['no such command of a group', ['store', 'gett'], 2, "Unknown command 'gett'.\n  Did you mean get?"],
    ['a group without its command', ['store'], 2, 'Add one of list, get, put, delete, search.'],
    ['an unknown option', ['threads', '--colour'], 2, "Unknown option '--colour'"],
    ['an option that is called otherwise', ['threads', '--stauts', 'x'], 2, 'Did you mean --status?'],
    ['a missing argument', ['show'], 2, "Missing required argument 'thread'.\n  See `holdfast show --help`."],
    ['too many arguments', ['show', 'orders', 'order-17'], 2, 'Expected 1 argument but got 2.\n'],
    ['help for no command', ['help', 'forkk'], 2, "Unknown command 'forkk'; did you mean fork?"],
    ['a part of a thread', ['show', 'bf847'], 3, 'did you mean session=bf-847,user=user-42?'],
    ['a tag that nothing has', ['threads', '--tag', 'glod'], 2, 'No thread has the tag "glod"; did you mean gold?'],
    ['a folder that is no store', ['threads', '--store', `file:${folder}`], 3, 'There is no store at'],
    ['a store that is a folder', ['threads', '--store', `sqlite:${folder}`], 5, 'is a folder'],
    [
      'a store that is something else',
      ['threads', '--store', `sqlite:${folder}/text.db`],
      5,
      'is not a SQLite database',
    ],
    ['a store of a newer version', ['threads', '--store', `sqlite:${folder}/newer.db`], 5, 'newer'],
    ['a thread that is called otherwise', ['show', 'user-42/bf-847'], 3, 'did you mean session=bf-847,user=user-42?'],
    ['a thread that is like others', ['state', 'order'], 3, 'did you mean orders or order-17?'],
    ['a thread like nothing', ['history', 'zzz'], 3, 'No thread zzz.'],
    ['a branch that is not there', ['show', 'orders', '--branch', 'x'], 3, 'Its branches: main.'],
    ['a checkpoint that is not there', ['state', 'orders', '--at', '99'], 3, 'has no checkpoint "99"'],
    ['a tag named as objects have it', ['state', 'orders', '--at', 'constructor'], 3, 'checkpoint "constructor".'],
    ['a tag that is not there', ['fork', 'orders', '--at', 'dawn'], 3, 'has no checkpoint "dawn"'],
    ['an id of another past', ['state', 'orders', '--at', 'main~0~000000000000'], 3, 'does not belong to the history'],
    ['an id that no thread has', ['show', 'x'.repeat(600)], 2, '600 bytes'],
    ['a wrong duration', ['threads', '--older-than', 'soon'], 2, '--older-than "soon" is not a duration'],
    ['a wrong number', ['threads', '--limit', '-3'], 2, '--limit is "-3"'],
    ['metadata that is no pair', ['threads', '--metadata', 'region'], 2, 'is not a pair'],
    ['a policy that there is not', ['fork', 'orders', '--effects', 'maybe'], 2, 'Use ask, allow, deny.'],
    ['input that is no JSON', ['run', programs, '--program', 'returns', '--input', '{a}'], 2, '--input is not JSON'],
    ['an input file that is not there', ['run', programs, '--input', '@nowhere.json'], 3, 'nowhere.json'],
    ['a module that is not there', ['run', 'nowhere.mjs'], 3, 'There is no file nowhere.mjs'],
    ['a module without programs', ['run', join(folder, 'empty.mjs')], 2, 'It exports answer.'],
    ['a module that does not load', ['worker', join(folder, 'broken.mjs')], 1, 'nowhere.mjs'],
    ['several programs', ['run', programs, '--input', '{}'], 2, 'Choose one with --program'],
    ['a program that is not there', ['run', programs, '--program', 'x', '--input', '{}'], 3, 'It exports'],
    ['nothing to verify', ['verify'], 2, 'Name a thread, or pass --all.'],
    ['no question', ['approve', 'orders'], 3, 'has no open questions'],
    ['a question that is not there', ['answer', 'orders', 'p-1', '1'], 3, 'asks no question "p-1"'],
    ['a scope that is none', ['store', 'get', 'user-42', 'prefs', 'x'], 2, '"user-42" is not a scope'],
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

  it('leaves nothing behind where no store was', () => {
    expect(existsSync(join(folder, 'b.db'))).toBe(false)
    expect(existsSync(join(folder, 'holdfast.json'))).toBe(false)
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

  it('finds the store in the nearest config file, and tells the three places apart', async () => {
    const inner = join(folder, 'project', 'src')
    mkdirSync(inner, { recursive: true })
    writeFileSync(join(folder, 'project', 'package.json'), '{}')
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

  it('compares a store with anchors, and says what was put back', async () => {
    const [path, anchors] = [join(folder, 'anchored.db'), join(folder, 'anchors.jsonl')]
    const hf = await openHoldfast(`sqlite:${path}`, { anchors: fileAnchors(anchors) })
    for (const id of ['kept', 'back']) await hf.thread(returns, id).run({ input: { orderId: 'A', price: 500 } })
    await hf.close()
    const env = { HOLDFAST_STORE: `sqlite:${path}` }
    const verify = (...args: string[]) => holdfast(['verify', '--anchors', anchors, ...args], { env })
    expect(await verify()).toMatchObject({ code: 0, out: expect.stringMatching(/^ok \d+ anchors\nok 2 branches/) })
    const sqlite = (await loadSqlite())(path)
    sqlite.exec("DELETE FROM logs WHERE thread = 'back'")
    sqlite.close()
    expect(await verify()).toMatchObject({
      code: 6,
      out: expect.stringMatching(/^put back thread "back" .* it is gone\./),
    })
    expect(JSON.parse((await verify('--json')).out)).toMatchObject({ ok: false, damaged: [], anchors: { ok: false } })
    expect(await holdfast(['verify', '--anchors', 'none.jsonl'], { env })).toMatchObject({ code: 3 })
  })

  it('names damage, goes on with the rest, and ends with 6', async () => {
    const path = join(folder, 'damaged.db')
    const damaged = { env: { HOLDFAST_STORE: `sqlite:${path}` } }
    const hf = await openHoldfast(`sqlite:${path}`)
    await Promise.all(['good', 'bad'].map((id) => hf.thread(returns, id).run({ input: { orderId: 'A', price: 500 } })))
    await hf.close()
    const sqlite = (await loadSqlite())(path)
    sqlite.exec("UPDATE entries SET body = zeroblob(20) WHERE log = (SELECT id FROM logs WHERE thread = 'bad')")
    sqlite.close()
    const [shown, pauses, listed, verified] = [
      await holdfast(['show', 'bad'], damaged),
      await holdfast(['pauses', '--json'], damaged),
      await holdfast(['pauses'], damaged),
      await holdfast(['verify', '--all'], damaged),
    ]
    expect(shown).toMatchObject({ code: 6, out: '' })
    expect(JSON.parse(pauses.out)).toMatchObject({ pauses: [{ threadId: 'good' }], unreadable: [{ threadId: 'bad' }] })
    expect(listed).toMatchObject({ code: 0, err: expect.stringContaining('unreadable bad (main)') })
    expect(verified).toMatchObject({
      code: 6,
      out: expect.stringMatching(/^damaged bad \(main\)\n[^]*1 damaged of 2 branches/),
    })
  })

  it('prints whatever a program returned, bigints and dates included', async () => {
    const file = join(folder, 'big.mjs')
    writeFileSync(
      file,
      `import { flow } from ${JSON.stringify(import.meta.resolve('holdfast'))}
      export default flow({ name: 'big', version: '1.0.0' }, async () => ({ n: 2n ** 64n, at: new Date(0) }))`,
    )
    const ended = await holdfast(['run', file, '--thread', 'big', '--input', '{}'], { env })
    expect(ended.code, ended.err).toBe(0)
    expect(JSON.parse(ended.out)).toEqual({ n: '18446744073709551616', at: '1970-01-01T00:00:00.000Z' })
  })
})
