import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHoldfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { backendsBehindDoors } from '../support/backends.js'
import { type CommandOptions, holdfast, parsed, programs } from './command.js'

const backends = await backendsBehindDoors()
const customer = 'user=user-42,session=bf-847'
// What is shown of it: the parts in the order of their names.
const shown = 'session=bf-847,user=user-42'

// One story per backend: each command meets what the ones before it left behind.
describe.each(backends)('the command line on $name', ({ missing, fresh, cleanup }) => {
  let store: string
  const run = (args: readonly string[], options?: CommandOptions) => holdfast(['--store', store, ...args], options)
  const json = async (...args: string[]) => parsed(await run([...args, '--json']))

  beforeAll(async () => {
    if (!missing) store = await fresh()
  })
  afterAll(cleanup)

  it.skipIf(missing)('runs programs, and its exit code says how they ended', async () => {
    const done = await run(['run', programs, '--program', 'counter', '--thread', 'c-1', '--input', '{}', '--events'])
    expect(done).toMatchObject({ code: 0, out: expect.stringContaining('"count": 10') })
    expect(done.err).toMatch(/step {4}0:one completed/)
    const paused = await run(
      ['run', programs, '--program', 'returns', '--thread', customer, '--input', '-', '--json'],
      { input: '{"orderId":"B","price":500}' },
    )
    expect(paused.code).toBe(7)
    expect(parsed(paused)).toMatchObject({
      id: shown,
      thread: { user: 'user-42', session: 'bf-847' },
      status: 'paused',
      pauses: [{ kind: 'question', question: { order: { id: 'B', price: 500 } } }],
    })
    const failed = await run(['run', programs, '--program', 'returns', '--thread', 'f-1', '--input', '{"fail":true}'])
    expect(failed).toMatchObject({ code: 1, err: expect.stringContaining('the shop is closed') })
    const lines = await run(['run', programs, '--program', 'returns', '--text', 'x', '--events', '--json'])
    const events = lines.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events.find(({ type }) => type === 'run')).toMatchObject({ type: 'run', status: 'started' })
    expect(events.at(-1)).toMatchObject({ type: 'outcome', status: 'completed', id: expect.stringMatching(/^run-/) })
  })

  it.skipIf(missing)('leaves input for many threads, and names the lines that it could not leave', async () => {
    const apart = ['--tenant', 'enqueued']
    const enqueue = ['enqueue', programs, '--program', 'counter', '--lines']
    const lines = [
      '{"thread":"l-1","input":{},"key":"a"}',
      '',
      'no json',
      '{"thread":"l-2","input":{},"runAt":"2099-01-01"}',
    ]
    const more = ['{"input":{}}', '{"thread":"","input":{}}', '{"thread":"l-3","input":{},"run_at":1}']
    const input = [...lines, ...more].join('\n')
    const left = await run([...apart, ...enqueue, '-', '--json'], { input })
    expect(left.code).toBe(1)
    expect(parsed(left)).toMatchObject({
      queued: 2,
      known: 0,
      failed: [
        { line: 3, error: expect.stringContaining('not JSON') },
        { line: 5, error: expect.stringContaining('"thread" is missing') },
        { line: 6, code: 'invalid-id' },
        { line: 7, error: expect.stringContaining('"run_at" is not a known field') },
      ],
    })
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-lines-'))
    const file = join(folder, 'lines.jsonl')
    writeFileSync(
      file,
      Array.from({ length: 2500 }, (_, i) => JSON.stringify({ thread: `m-${i}`, input: {} })).join('\n'),
    )
    const many = await run([...apart, ...enqueue, file], { columns: 80 })
    expect(many).toMatchObject({ code: 0, out: '2500 queued, 0 failed\n', err: expect.stringContaining('leaving █') })
    rmSync(folder, { recursive: true })
    const { threads } = await json(...apart, 'threads', '--thread', 'l-2')
    expect(threads[0].wakeAt).toBe('2099-01-01T00:00:00.000Z')
  })

  it.skipIf(missing)('runs with the policies that are asked for, and refuses others', async () => {
    const apart = ['--tenant', 'policies']
    const start = (...more: string[]) => run([...apart, 'run', programs, '--program', 'counter', '--json', ...more])
    const entries = async (thread: string) => (await json(...apart, 'threads', '--thread', thread)).threads[0]?.entries
    expect(parsed(await start('--thread', 'every', '--input', '{}'))).toMatchObject({ status: 'completed' })
    await start('--thread', 'seldom', '--input', '{}', '--frequency', 'boundary')
    await start('--thread', 'tens', '--input', '{}', '--frequency', '10')
    await start('--thread', 'never', '--input', '{}', '--frequency', 'none')
    expect(await entries('seldom')).toBeLessThan(await entries('every'))
    expect(await entries('tens')).toBeLessThan(await entries('every'))
    expect(await entries('never')).toBeUndefined()
    const gone = parsed(await start('--thread', 'gone', '--input', '{}', '--expect', 'existing'))
    expect(gone).toMatchObject({ status: 'completed', restarted: true })
    const kept = parsed(await start('--thread', 'every', '--input', '{}', '--on-corrupt', 'lastGood'))
    expect(kept).toMatchObject({ status: 'completed', restarted: false })
    for (const [option, value, meant] of [
      ['--frequency', 'sted', 'did you mean step?'],
      ['--expect', 'existin', 'did you mean existing?'],
      ['--on-corrupt', 'lastgood', 'did you mean lastGood?'],
    ] as const) {
      const refused = await run(['run', programs, '--program', 'counter', option, value])
      expect(refused).toMatchObject({ code: 2, err: expect.stringContaining(`${option} is "${value}"; ${meant}`) })
    }
  })

  it.skipIf(missing)('lists threads by status, program, age and label', async () => {
    const [plain, completed, waiting, old] = await Promise.all([
      run(['threads']),
      json('threads', '--status', 'completed', '--program', 'counter'),
      json('threads', '--status', 'waiting_human,failed', '--metadata', 'holdfast.program=returns'),
      json('threads', '--older-than', '1h'),
    ])
    const [head, ...rows] = plain.out
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t'))
    expect(head).toEqual(['thread', 'branch', 'status', 'entries', 'updated', 'program', 'tags', 'error'])
    expect(rows.find((row) => row[0] === 'f-1')?.at(-1)).toContain('the shop is closed')
    expect(rows.map((row) => row[0])).toContain(shown)
    expect(plain.out).not.toContain('\u001b')
    expect(completed.threads).toMatchObject([{ id: 'c-1', branch: 'main', status: 'completed' }])
    expect(waiting.threads.map((one: { id: string }) => one.id).sort()).toEqual(['f-1', shown])
    expect(old.threads).toEqual([])
    expect((await json('threads', '--part', 'user=user-42')).threads).toMatchObject([{ id: shown }])
    expect((await json('threads', '--part', 'user=nobody')).threads).toEqual([])
    const wrong = await run(['threads', '--part', 'user'])
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('--part is "user"') })
  })

  it.skipIf(missing)('shows a thread, its state and what changed', async () => {
    const [show, data, state, first, diff, events] = await Promise.all([
      run(['show', customer]),
      json('show', 'c-1'),
      run(['state', 'c-1']),
      json('state', 'c-1', '--at', 'first'),
      run(['diff', 'c-1']),
      run(['tail', 'c-1', '--json', '--lines', '2']),
    ])
    expect(show.out).toMatch(/status: +waiting_human/)
    expect(show.out).toContain('question p-')
    expect(data).toMatchObject({ id: 'c-1', program: 'counter', state: { count: 10 }, run: { status: 'completed' } })
    expect(JSON.parse(state.out)).toEqual({ count: 10, seen: ['one', 'two'] })
    expect(first.checkpoint).toMatch(/^main~0~/)
    expect(diff.out).toBe('~ $.count: 1 -> 10\n+ $.seen[1]: two\n')
    const types = events.out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).type)
    expect(types).toEqual(['run', 'step', 'state', 'checkpoint', 'step', 'run', 'state', 'checkpoint'])
  })

  it.skipIf(missing)('forks, resumes the fork, and draws it', async () => {
    const fork = await run(['fork', 'c-1', '--at', '~1', '--name', 'what-if', '--set', 'count=5'])
    expect(fork).toMatchObject({ code: 0, out: 'what-if\n' })
    expect(await json('resume', programs, 'c-1', '--branch', 'what-if')).toMatchObject({ output: { count: 50 } })
    const [drawn, tree, diff, again] = await Promise.all([
      run(['history', 'c-1']),
      json('history', 'c-1', '--all', '--limit', '1'),
      json('diff', 'c-1', 'main', 'what-if'),
      run(['fork', 'c-1', '--name', 'what-if']),
    ])
    expect(drawn.out).toMatch(/main~2~\w+ .*  node two\n/)
    const shape = drawn.out.split('\n').map((line) => line.replace(/(\w+~\d+)~.*/, '$1').replace(/ +/g, ' '))
    expect(shape).toEqual([
      'main completed 3 entries',
      '├─ 2 step main~2',
      '├─ 1 step main~1',
      '│ └─ what-if completed 3 entries (from main 1)',
      '│ ├─ 2 step what-if~2',
      '│ └─ 0 fork what-if~0',
      '└─ 0 input main~0',
      '',
    ])
    expect(tree.branches).toMatchObject([
      {
        name: 'main',
        more: true,
        checkpoints: [{ seq: 2 }],
        forks: [{ name: 'what-if', from: { branch: 'main', seq: 1 } }],
      },
    ])
    expect(diff.differences).toMatchObject([{ path: '$.count', before: 10, after: 50 }])
    expect(again).toMatchObject({ code: 4, err: expect.stringContaining('exists already') })
    // What a run on a fork suggests reaches that fork.
    await run(['fork', customer, '--name', 'aside'])
    const paused = await run(['resume', programs, customer, '--branch', 'aside'])
    const [, ...suggested] = /Answer with: (.*)/.exec(paused.err)?.[1]?.split(' ') ?? []
    // A password is left to be filled in.
    const url = store.startsWith('sqlite:') ? store : '<url>'
    expect(suggested).toEqual(['answer', shown, '--branch', 'aside', '--store', url])
    expect(await run([...suggested.slice(0, 4), 'true', '--yes'])).toMatchObject({ code: 0 })
    expect(await json('resume', programs, customer, '--branch', 'aside')).toMatchObject({ status: 'completed' })
  })

  it.skipIf(missing)('tags checkpoints, and finds them by their tags', async () => {
    expect(await json('tag', 'c-1', 'gold', '--at', '1')).toMatchObject({ tag: 'gold' })
    const [state, tagged] = await Promise.all([json('state', 'c-1', '--at', 'gold'), json('threads', '--tag', 'gold')])
    expect(state.state).toMatchObject({ count: 1 })
    expect(tagged.threads).toMatchObject([{ id: 'c-1', tags: ['gold'] }])
    expect(await run(['untag', 'c-1', 'gold'])).toMatchObject({ code: 0, out: 'removed gold\n' })
    expect(await run(['untag', 'c-1', 'gold'])).toMatchObject({ code: 3, err: expect.stringContaining('no tags') })
  })

  it.skipIf(missing)('lists questions, and takes answers, approvals and rejections', async () => {
    const [pause] = (await json('pauses')).pauses
    expect(pause).toMatchObject({ threadId: shown, kind: 'question' })
    expect((await run(['pauses', customer])).out).toContain(`${shown}\tmain\t${pause.id}\tquestion`)
    expect(await run(['approve', customer, pause.id, '--by', 'ada'])).toMatchObject({
      code: 0,
      out: `approved ${pause.id}\n`,
    })
    const late = await run(['answer', customer, pause.id, '{"approved":false}', '--json'])
    expect(late.code).toBe(4)
    expect(JSON.parse(late.err).error).toMatchObject({ code: 'pause-closed', data: { by: 'ada' } })
    expect(await json('resume', programs, customer)).toMatchObject({ status: 'completed', output: { opened: 'RET-B' } })

    await run(['run', programs, '--program', 'returns', '--thread', 'r-1', '--input', '{"orderId":"C","price":900}'])
    const rejected = await json('reject', 'r-1', '--reason', 'too dear')
    expect(rejected.answer).toEqual({ approved: false, reason: 'too dear' })
    const resumed = await run(['resume', programs, '--all', '--program', 'returns', '--status', 'active', '--json'])
    expect(parsed(resumed).resumed).toEqual([{ thread: 'r-1', branch: 'main', status: 'completed' }])
    expect((await json('show', 'r-1')).run.output).toEqual({ rejected: 'too dear' })
  })

  it.skipIf(missing)('takes up with a worker what was signalled, until it is stopped', async () => {
    const waits = await run(['run', programs, '--program', 'returns', '--thread', 'w-1', '--input', '{"wait":true}'])
    expect(waits).toMatchObject({ code: 7, out: expect.stringContaining('signal "parcel"') })
    expect(await run(['signal', 'w-1', 'parcel', '{"kg":3}'])).toMatchObject({ code: 0, out: 'sent parcel\n' })
    const stop = new AbortController()
    const { code, out } = await run(['worker', programs, '--poll', '50ms', '--json'], {
      signal: stop.signal,
      onOutput: (printed) => {
        // On one line: another thread may end while this one has only been taken.
        if (printed.split('\n').some((line) => line.includes('"ended"') && line.includes('w-1'))) stop.abort()
      },
    })
    expect(code).toBe(0)
    expect(JSON.parse(out.split('\n')[0] as string)).toMatchObject({ type: 'ready' })
    expect((await json('show', 'w-1')).run.output).toEqual({ got: { kg: 3 } })
  })

  it.skipIf(missing)('cancels, replays and migrates', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'))
    const [next, turned] = [join(folder, 'next.mjs'), join(folder, 'turned.mjs')]
    const writeNext = (path: string, version: string) =>
      writeFileSync(
        path,
        `import { append, END, graph, last, START } from ${JSON.stringify(import.meta.resolve('holdfast'))}
      export default graph({ name: 'counter', version: '1.1.0', ${version}
        state: { count: last(undefined, { initial: 0 }), seen: append() } })
        .node('one', () => ({})).node('two', () => ({})).edge(START, 'two').edge('two', 'one').edge('one', END)`,
      )
    writeNext(next, 'stateVersion: 2, migrations: { 2: (state) => ({ ...state, count: state.count + 1000 }) },')
    writeNext(turned, '')
    const [cancelled, nothing, same, differs, dry] = await Promise.all([
      json('cancel', 'f-1', '--reason', 'enough', '--by', 'ada'),
      run(['cancel', 'c-1']),
      run(['replay', programs, 'c-1']),
      run(['replay', turned, 'c-1', '--json']),
      json('migrate', next, '--dry-run'),
    ])
    expect(cancelled).toEqual({ thread: 'f-1', branch: 'main', cancelled: true, status: 'failed' })
    expect(nothing).toMatchObject({ code: 0, out: 'nothing to cancel: completed\n' })
    expect(same).toMatchObject({ code: 0, out: 'identical: 2 recorded steps replayed\n' })
    expect(differs.code).toBe(1)
    expect(parsed(differs)).toMatchObject({ status: 'differs', difference: { what: 'route' } })
    expect(dry).toMatchObject({
      dryRun: true,
      checked: 2,
      migrated: [
        { from: 1, to: 2 },
        { from: 1, to: 2 },
      ],
    })
    const migrated = await run(['migrate', next])
    expect(migrated).toMatchObject({ code: 0, out: expect.stringContaining('2 checked, 2 migrated, 0 failed') })
    expect((await json('state', 'c-1')).state.count).toBe(1010)
    rmSync(next)
  })

  it.skipIf(missing)('keeps the memory that threads share', async () => {
    const put = ['store', 'put', 'user=user-42', 'prefs', 'theme', '{"dark":true}']
    expect(await run(put)).toMatchObject({ code: 0, out: expect.stringMatching(/^theme version /) })
    const [list, items, found, none, get, again] = await Promise.all([
      run(['store', 'list']),
      run(['store', 'list', 'user=user-42', 'prefs']),
      json('store', 'search', 'user=user-42', 'prefs', '--filter', '{"dark":true}'),
      json('store', 'search', 'user=user-42', 'prefs', '--filter', '{"dark":false}'),
      run(['store', 'get', 'user=user-42', 'prefs', 'theme']),
      run([...put, '--expect', 'none']),
    ])
    expect(list.out).toContain('user=user-42\tprefs\n')
    expect(items.out).toContain('theme\t{"dark":true}\t')
    expect(found.items).toMatchObject([{ key: 'theme' }])
    expect(none.items).toEqual([])
    expect(JSON.parse(get.out)).toEqual({ dark: true })
    expect(again.code).toBe(4)
    expect(await json('store', 'delete', 'user=user-42', 'prefs', 'theme')).toEqual({ key: 'theme', deleted: true })
    expect((await run(['store', 'get', 'user=user-42', 'prefs', 'theme'])).code).toBe(3)
  })

  it.skipIf(missing)('keeps tenants apart', async () => {
    const [other, id] = [['--tenant', 'other'], 'plain=id']
    await run([...other, 'run', programs, '--program', 'counter', '--thread', `\\${id}`, '--input', '{}'])
    const [mine, theirs, parts, plain] = await Promise.all([
      json('threads', '--all'),
      json('threads', ...other),
      run([...other, 'show', id]),
      run([...other, 'show', `\\${id}`]),
    ])
    expect(mine.threads.map((one: { id: string }) => one.id)).not.toContain(`\\${id}`)
    expect(theirs.threads).toMatchObject([{ id: `\\${id}`, thread: id }])
    expect(parts).toMatchObject({ code: 3, err: expect.stringContaining(`did you mean \\${id}?`) })
    expect(plain.code).toBe(0)
  })

  it.skipIf(missing)('verifies, and repairs an index row', async () => {
    const ok = await json('verify', '--all')
    expect(ok).toMatchObject({ ok: true, damaged: [] })
    const hf = await openHoldfast(store)
    const { key, fold } = await hf.log('bad')
    await (await hf.log('bad')).update(() => [{ kind: 'input' }])
    await hf.close()
    expect(fold.seq).toBe(-1)
    const driver = await openDriver(store)
    const head = await driver.head(key)
    if (head === undefined) throw new Error('The thread is not there.')
    await driver.reindex(key, head, { ...head.index, status: 'made up' })
    await driver.close()
    const found = await run(['verify', 'bad', '--json'])
    expect(found.code).toBe(6)
    expect(parsed(found).damaged).toMatchObject([{ thread: 'bad', problems: [expect.stringContaining('index')] }])
    expect(await run(['verify', 'bad', '--repair'])).toMatchObject({
      code: 0,
      out: expect.stringContaining('repaired'),
    })
    expect((await run(['verify', 'bad'])).out).toBe('ok 1 branch, 1 entries\n')
  })

  it.skipIf(missing)('counts, warns of instability, and adds up what processes report', async () => {
    const hf = await openHoldfast(store, { telemetry: false })
    for (let i = 0; i < 6; i++) await (await hf.log('shaky')).claim({ owner: `w-${i}`, ms: 60_000, force: true })
    const metrics = {
      process: 'a:1',
      startedAt: 0,
      at: 1,
      counters: { conflicts: 2 },
      histograms: { save: { bounds: [1, 5], counts: [98, 1, 1], sum: 120 } },
    }
    const items = hf.store.scope({ holdfast: 'metrics' }).collection<unknown>('processes')
    await Promise.all([items.put('a', metrics), items.put('b', { ...metrics, process: 'b:1' }), items.put('c', 'junk')])
    await hf.close()
    const [stats, plain] = await Promise.all([json('stats', '--sample', '1'), run(['stats'])])
    expect(stats).toMatchObject({
      claimed: 1,
      sample: { threads: 1, resumes: { takeovers: 5 }, runs: { started: 0 } },
      processes: { counters: { conflicts: 4 }, histograms: { save: { count: 200, p50: 1, p99: 5 } } },
      warnings: [expect.stringContaining('5 takeovers')],
    })
    // These two, and the commands before that ran programs.
    expect(stats.processes.processes).toBeGreaterThan(2)
    expect(stats.processes.counters['holdfast.runs.started']).toBeGreaterThan(0)
    expect(stats.statuses.completed).toBeGreaterThan(3)
    expect(plain.out).toMatch(/checkpoint size: +p50 \d+/)
    expect(plain.out).toMatch(/resumes: +\d+ attempts, \d+ succeeded/)
  })

  it.skipIf(missing)('examines the store', async () => {
    const [report, plain] = await Promise.all([json('doctor'), run(['doctor', '--read-only'])])
    expect(report.ok).toBe(true)
    expect(report.checks.map((check: { name: string }) => check.name)).toEqual([
      'versions',
      'store',
      'schema',
      'settings',
      'durability',
      'clock',
      'writing',
      'retention',
      'workers',
    ])
    expect(report.durability.powerLoss).toBe('yes')
    expect(plain).toMatchObject({ code: 0, out: expect.stringMatching(/^ok +durability +\w/m) })
    expect(plain.out).not.toContain('writing')
  })
})
