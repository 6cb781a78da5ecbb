import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  agent,
  append,
  flow,
  graph,
  type Holdfast,
  last,
  mcpTools,
  openHoldfast,
  redactCommon,
  reduced,
  START,
  tool,
} from 'holdfast'
import { HoldfastClient } from 'holdfast/client'
import { openDriver } from 'holdfast/driver'
import { HoldfastSaver, HoldfastStore } from 'holdfast/langgraph'
import { LogStore } from 'holdfast/log'
import { folder as filesOf, pipeline, splitText } from 'holdfast/pipeline'
import { createServer, listen } from 'holdfast/server'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'

// As JavaScript calls them: types would not let any of these pass.
// biome-ignore lint/suspicious/noExplicitAny: see above
type Loose = any

const model = {
  specificationVersion: 'v3',
  provider: 'x',
  modelId: 'x',
  supportedUrls: {},
  doGenerate: () => {},
  doStream: () => {},
}
const named = { name: 'a', version: '1.0.0' }
const schema = z.object({})

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-options-'))
})
afterAll(() => rm(folder, { recursive: true }))

const cases: [what: string, given: string, meant: string | undefined, call: (given: string) => unknown][] = [
  ['agent()', 'maxTurn', 'maxTurns', (name) => agent({ ...named, model, [name]: 3 } as Loose)],
  ['tool()', 'needApproval', 'needsApproval', (name) => tool({ inputSchema: schema, [name]: true } as Loose)],
  ['flow()', 'timeout', 'timeoutMs', (name) => flow({ ...named, [name]: 1 } as Loose, async () => 1)],
  ['graph()', 'maxStep', 'maxSteps', (name) => graph({ ...named, state: {}, [name]: 1 } as Loose)],
  [
    'node "only"',
    'efect',
    'effect',
    (name) =>
      graph({ ...named, state: { n: last<number>() } }).node('only', { run: () => ({}), [name]: 'once' } as Loose),
  ],
  ['pipeline()', 'batchSize', 'batch', (name) => pipeline({ ...named, source: [], stages: [], [name]: 1 } as Loose)],
  [
    'stage "embed"',
    'timeout',
    'timeoutMs',
    (name) => {
      const stages = [
        { name: 'split', split: () => [] },
        { name: 'embed', run: () => [], [name]: 1 },
      ]
      return pipeline({ ...named, source: [], stages } as Loose)
    },
  ],
  ['agent({ budget })', 'token', 'tokens', (name) => agent({ ...named, model, budget: { [name]: 3 } } as Loose)],
  [
    'agent({ settings })',
    'maxTokens',
    'maxOutputTokens',
    (name) => agent({ ...named, model, settings: { [name]: 3 } } as Loose),
  ],
  [
    'agent({ compaction })',
    'windows',
    'window',
    (name) => agent({ ...named, model, compaction: { [name]: 3 } } as Loose),
  ],
  ['agent({ retry })', 'attempt', 'attempts', (name) => agent({ ...named, model, retry: { [name]: 3 } } as Loose)],
  [
    'flow "f".retry',
    'maxAttempts',
    'attempts',
    (name) => flow({ ...named, name: 'f', retry: { [name]: 3 } } as Loose, async () => 1),
  ],
  ['last()', 'intial', 'initial', (name) => last(undefined, { [name]: 0 } as Loose)],
  ['append()', 'init', 'initial', (name) => append(undefined, { [name]: [] } as Loose)],
  ['redactCommon()', 'mail', 'mails', (name) => redactCommon({ [name]: true } as Loose)],
  ['splitText()', 'length', 'maxLength', (name) => splitText('', { [name]: 3 } as Loose)],
  ['folder()', 'included', 'include', (name) => filesOf('.', { [name]: 3 } as Loose)],
]

/** What an open store has: each is called with one name too many. */
const calls: [owner: string, given: string, meant: string, call: (hf: Holdfast, options: Loose) => unknown][] = [
  ['hf.thread()', 'branche', 'branch', (hf, options) => hf.thread(program, 't', options)],
  ['hf.inspect()', 'branche', 'branch', (hf, options) => hf.inspect('t', options)],
  ['hf.log()', 'brnch', 'branch', (hf, options) => hf.log('t', options)],
  ['hf.fork()', 'form', 'from', (hf, options) => hf.fork('t', { at: 0, branch: 'b', ...options })],
  ['hf.threads()', 'state', 'status', (hf, options) => hf.threads(options)],
  ['hf.pauses()', 'part', 'parts', (hf, options) => hf.pauses(options)],
  ['hf.answer()', 'buy', 'by', (hf, options) => hf.answer([], options)],
  ['hf.enqueue()', 'onEnqueue', 'onEnqueued', (hf, options) => hf.enqueue([], options)],
  ['the query of hf.resume()', 'tag', 'tags', (hf, options) => hf.resume(program, options)],
  ['hf.resume()', 'concurency', 'concurrency', (hf, options) => hf.resume(program, {}, options)],
  ['hf.migrate()', 'dryrun', 'dryRun', (hf, options) => hf.migrate(program, options)],
  ['hf.verify()', 'repaire', 'repair', (hf, options) => hf.verify('t', options)],
  ['hf.prune()', 'evenTaged', 'evenTagged', (hf, options) => hf.prune('t', 1, options)],
  ['hf.erase()', 'tombston', 'tombstone', (hf, options) => hf.erase('t', options)],
  ['hf.eraseTenant()', 'reasons', 'reason', (hf, options) => hf.eraseTenant(options)],
  ['hf.scrub()', 'grace', 'graceMs', (hf, options) => hf.scrub(options)],
  ['hf.sweep()', 'dryrun', 'dryRun', (hf, options) => hf.sweep(options)],
  ['hf.export()', 'redacted', 'redact', (hf, options) => hf.export('t', options)],
  ['hf.import()', 'threads', 'thread', (hf, options) => hf.import('', options)],
  ['hf.collectBlobs()', 'grace', 'graceMs', (hf, options) => hf.collectBlobs(options)],
  ['hf.queueAge()', 'program', 'programs', (hf, options) => hf.queueAge(options)],
  ['hf.schedules.list()', 'limits', 'limit', (hf, options) => hf.schedules.list(options)],
  ['thread.answer()', 'buy', 'by', (hf, options) => hf.inspect('t').answer('p', 1, options)],
  ['thread.defer()', 'untill', 'until', (hf, options) => hf.inspect('t').defer('p', options)],
  ['thread.signal()', 'keys', 'key', (hf, options) => hf.inspect('t').signal('s', 1, options)],
  ['thread.cancel()', 'reasons', 'reason', (hf, options) => hf.inspect('t').cancel(options)],
  ['thread.waitFor()', 'timeout', 'timeoutMs', (hf, options) => hf.inspect('t').waitFor(options)],
  ['thread.tag()', 'att', 'at', (hf, options) => hf.inspect('t').tag('s', options)],
  ['thread.history()', 'event', 'events', (hf, options) => hf.inspect('t').history(options)],
  ['thread.answers()', 'limits', 'limit', (hf, options) => hf.inspect('t').answers(options)],
  ['thread.events()', 'afterr', 'after', (hf, options) => hf.inspect('t').events(options).next()],
  ['fork()', 'effect', 'effects', (hf, options) => hf.thread(program, 't').at('main~0~000000000000').fork(options)],
  ['run()', 'effect', 'effects', (hf, options) => hf.thread(program, 't').at('main~0~000000000000').run(options)],
  [
    'hf.schedules.set()',
    'timezone',
    'timeZone',
    (hf, options) => hf.schedules.set('s', program, { everyMs: 60_000, ...options }),
  ],
  ['a collection', 'ttl', 'ttlMs', (hf, options) => items(hf, options)],
  ['the option embed', 'dim', 'dims', (hf, options) => items(hf, { embed: { dims: 2, embed: () => [], ...options } })],
  ['put()', 'ttl', 'ttlMs', (hf, options) => items(hf).put('k', 1, options)],
  ['delete()', 'expected', 'expect', (hf, options) => items(hf).delete('k', options)],
  ['a write of a batch', 'expected', 'expect', (hf, options) => items(hf).batch([{ put: 'k', value: 1, ...options }])],
  ['list()', 'prefixes', 'prefix', (hf, options) => items(hf).list(options)],
  ['search()', 'filters', 'filter', (hf, options) => items(hf).search(options)],
  ['createServer()', 'token', 'tokens', (hf, options) => createServer(hf, { programs: [], ...options })],
  ['createServer({ chat })', 'programs', 'program', (hf, chat) => createServer(hf, { programs: [], chat })],
  ['listen()', 'hostname', 'host', (_, options) => listen({} as Loose, options)],
  ['HoldfastSaver', 'onforks', 'onFork', (hf, options) => new HoldfastSaver(hf, options)],
  ['HoldfastStore', 'filterField', 'filterFields', (hf, options) => new HoldfastStore(hf, options)],
  ['mcpTools()', 'trustHint', 'trustHints', (_, options) => mcpTools({} as Loose, options)],
  ['openDriver()', 'key', 'keys', (_, options) => openDriver('memory:', options)],
  ['LogStore', 'key', 'keys', async (_, options) => new LogStore(await openDriver('memory:'), options)],
  ['openHoldfast({ sqlite })', 'sync', 'synchronous', (_, sqlite) => openHoldfast('memory:', { sqlite })],
  ['openHoldfast({ postgres })', 'poolsize', 'poolSize', (_, postgres) => openHoldfast('memory:', { postgres })],
  ['openHoldfast({ redis })', 'prefixes', 'prefix', (_, redis) => openHoldfast('memory:', { redis })],
  ['openHoldfast({ telemetry })', 'flushMs', 'flushEveryMs', (_, telemetry) => openHoldfast('memory:', { telemetry })],
]

const program = flow(named, async () => 1)

function items(hf: Holdfast, options: Loose = {}) {
  return hf.store.scope({ user: 'u' }).collection<number>('c', options)
}

describe('a misspelt option', () => {
  it.each(cases)('of %s is refused, with the one that was meant', (owner, given, meant, call) => {
    expect(() => call(given)).toThrow(
      expect.objectContaining({
        code: 'invalid-option',
        message: expect.stringContaining(`"${given}" is not recognized by ${owner}`),
        remedy: expect.stringContaining(`Did you mean ${meant}?`),
      }),
    )
  })

  it('of openHoldfast is refused before anything is opened: a misspelt key would store in the clear', async () => {
    const url = `sqlite:${join(folder, 'never.db')}`
    await expect(openHoldfast(url, { key: 'x'.repeat(32) } as Loose)).rejects.toMatchObject({
      code: 'invalid-option',
      remedy: expect.stringContaining('Did you mean keys?'),
    })
    expect(await readdir(folder)).toEqual([])
  })

  it('of a run, a step or a worker is refused, and nothing is written', async () => {
    const hf = await openHoldfast('memory:')
    const program = flow(named, (ctx) => ctx.step('pay', { efect: 'once' } as Loose, () => 1))
    const thread = hf.thread(program, 't')
    await expect(thread.run({ input: 1, freq: 'none' } as Loose)).rejects.toMatchObject({
      code: 'invalid-option',
      remedy: expect.stringContaining('Did you mean frequency?'),
    })
    expect((await hf.log('t')).exists).toBe(false)
    await expect(thread.run({ input: 1 })).resolves.toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('"efect" is not recognized by ctx.step') },
    })
    expect(() => hf.worker({ programs: [program], concurency: 3 } as Loose)).toThrow(/"concurency" is not recognized/)
    await hf.close()
  })

  it.each(calls)('of %s is refused on an open store, and nothing is written', async (owner, given, meant, call) => {
    await using hf = await openHoldfast('memory:')
    await expect(Promise.resolve().then(() => call(hf, { [given]: 'x' }))).rejects.toMatchObject({
      code: 'invalid-option',
      message: expect.stringContaining(`"${given}" is not recognized by ${owner}`),
      remedy: expect.stringContaining(`Did you mean ${meant}?`),
    })
    expect((await hf.threads()).threads).toEqual([])
  })

  it('of what has a message of its own is refused with the one that was meant, too', async () => {
    const open = (options: Loose) => openHoldfast('memory:', options)
    await expect(open({ retention: { ttl: 1 } })).rejects.toThrow(
      /retention\.ttl is not a retention rule. Did you mean ttlMs\?/,
    )
    await expect(open({ limits: { maxByte: 1 } })).rejects.toThrow(/Did you mean maxBytes\?/)
    await expect(open({ keys: { master: {} } })).rejects.toThrow(/keys\.master is unknown. Did you mean masters\?/)
    await expect(openHoldfast('postgres://h/d', { cache: { url: 'redis://h', ttl: 1 } } as Loose)).rejects.toThrow(
      /Did you mean ttlMs\?/,
    )
    expect(() => new HoldfastClient({ baseURL: 'http://127.0.0.1:1' } as Loose)).toThrow(
      'The option "baseURL" is not recognized by HoldfastClient. Did you mean baseUrl? Use one of: baseUrl, token, fetch, headers.',
    )
  })

  it('of a token is refused: with `role` instead of `roles`, it could do everything', async () => {
    await using hf = await openHoldfast('memory:')
    const tokens = [{ token: 'x'.repeat(20), role: ['read'] }] as Loose
    expect(() => createServer(hf, { programs: [], tokens })).toThrow(
      '"role" is not recognized by tokens[0]. Did you mean roles?',
    )
  })

  it('that is like none says which there are', () => {
    expect(() => flow({ ...named, xyz: 1 } as Loose, async () => 1)).toThrow(
      expect.objectContaining({
        remedy:
          'Use one of: compatibleWith, context, input, name, output, retention, retry, timeoutMs, transientContext, version.',
      }),
    )
    expect(() => graph({ ...named, state: {}, [START]: 1 } as Loose)).toThrow(/is not recognized by graph/)
  })
})

describe('an initial value in place of the schema', () => {
  it('is told where it belongs', () => {
    expect(() => last({ initial: 0 } as Loose)).toThrow(
      'The first argument of last() is its schema, and { initial } was given in its place. Pass { initial } as the second argument: last(undefined, { initial }).',
    )
    expect(() => reduced({ initial: 0 } as Loose, ((old: number) => old) as Loose)).toThrow(
      'Pass { initial } as the third argument: reduced(undefined, reducer, { initial }).',
    )
  })
})

describe('what is not a program', () => {
  it('is refused where it is given, and said to be what it is', async () => {
    await using hf = await openHoldfast('memory:')
    const remedy = 'Pass what agent(), graph() or flow() returned.'
    const refused = (field: string, given: string) => ({
      code: 'invalid-option',
      message: `The option ${field} must be a program, not ${given}. ${remedy}`,
    })
    const calls: [field: string, given: string, call: () => unknown][] = [
      ['program', 'undefined', () => hf.thread(undefined as Loose, 't')],
      ['program', '"t"', () => hf.thread('t' as Loose, program as Loose)],
      ['program', 'a function', () => hf.resume((() => 1) as Loose)],
      ['program', 'an object', () => hf.migrate({} as Loose)],
      ['programs[0]', 'undefined', () => hf.worker({ programs: [undefined] } as Loose)],
      ['programs[1]', 'null', () => hf.dispatch({ programs: [program, null], hand: async () => {} } as Loose)],
      ['program', 'null', () => hf.schedules.set('s', null as Loose, { everyMs: 60_000 })],
      ['items[0].program', 'undefined', () => hf.enqueue([{ thread: 't', input: 1 }] as Loose)],
    ]
    for (const [field, given, call] of calls)
      await expect(Promise.resolve().then(call), field).rejects.toMatchObject(refused(field, given))
  })
})

describe('a duration that is not a number', () => {
  it('is refused by the name it was given under, before a worker starts that could never claim anything', async () => {
    await using hf = await openHoldfast('memory:')
    const worker = (options: object) => () => hf.worker({ programs: [program], ...options } as Loose)
    expect(worker({ leaseMs: '10s' })).toThrow('leaseMs must be a whole number from 1 to 86400000, not "10s".')
    expect(worker({ graceMs: -1 })).toThrow('graceMs must be a whole number from 1 to 2147483647, not -1.')
    expect(worker({ concurrency: 0 })).toThrow('concurrency must be a whole number from 1 to 10000, not 0.')
    await expect(hf.thread(program, 't').run({ input: 1, leaseMs: '10s' } as Loose)).rejects.toThrow(/leaseMs must be/)
    expect((await hf.threads()).threads).toEqual([])
  })
})

describe('a choice that is misspelt', () => {
  it('is answered with what was given and what may have been meant', async () => {
    await using hf = await openHoldfast('memory:')
    const thread = hf.thread(
      flow({ name: 'f', version: '1.0.0' }, async () => 1),
      'a',
    )
    const run = (options: object) => thread.run({ input: null, ...options } as never)
    await expect(run({ busy: 'que' })).rejects.toMatchObject({
      message: expect.stringContaining(`The option busy must be 'reject', 'queue' or 'interrupt', not "que".`),
      remedy: `Did you mean 'queue'?`,
    })
    await expect(run({ frequency: 7 })).rejects.toThrow(
      `The option frequency must be 'step', 'boundary', 'none' or { every: n }, not 7.`,
    )
  })
})
