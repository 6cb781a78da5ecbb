import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { append, END, flow, graph, last, START } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { openRuntimeFixture, RUNTIME_FIXTURES, runtimeFixtures } from '../../support/runtime-fixture.js'

// The threads under test/fixtures/runtime-v1 were left behind by programs of version 1.0.0, at every stage where a thread
// can be found. They are resumed for ever and never rewritten: when a test here fails, the code is wrong, not the file.

const HOUR = 3_600_000
const ran: string[] = []

interface Changes {
  readonly version?: string
  readonly compatibleWith?: string | undefined
  readonly aliases?: Readonly<Record<string, string>>
  readonly innerAliases?: Readonly<Record<string, string>>
  readonly migrations?: object
  readonly innerMigrations?: object
  readonly stateVersion?: number
}

const renameText = {
  state: ({ text, ...rest }: Record<string, unknown>) => ({ ...rest, messages: text === undefined ? [] : [text] }),
  update: ({ text, ...rest }: Record<string, unknown>) => (text === undefined ? rest : { ...rest, messages: [text] }),
}

/** The graph two state versions later, with every node renamed. */
function newDesk(changes: Changes = {}) {
  const refine = graph({
    name: 'polish',
    version: '2.0.0',
    stateVersion: 2,
    migrations: (changes.innerMigrations ?? {
      2: ({ text, ...rest }: Record<string, unknown>) => ({ ...rest, body: { text } }),
    }) as never,
    aliases: changes.innerAliases ?? { improve: 'better', ask: 'confirm' },
    state: { body: last<{ text: string }>(), rounds: last<number>(undefined, { initial: 0 }) },
  })
    .node('better', ({ body, rounds }) => ({ body: { text: `${body?.text}!` }, rounds: rounds + 1 }))
    .node('confirm', async ({ body, rounds }, ctx) => {
      const said = await ctx.pause({ polish: body?.text })
      return { body: { text: `${body?.text} (${said}, ${rounds})` } }
    })
    .edge(START, 'better')
    .edge('better', 'confirm')
    .edge('confirm', END)
  return graph({
    name: 'desk',
    version: changes.version ?? '2.0.0',
    ...('compatibleWith' in changes ? {} : { compatibleWith: '>=1.0.0' }),
    stateVersion: changes.stateVersion ?? 3,
    migrations: (changes.migrations ?? {
      2: renameText,
      3: (state: object) => ({ ...state, upgraded: true }),
    }) as never,
    aliases: changes.aliases ?? {
      classify: 'label',
      draft: 'write',
      proof: 'proofread',
      review: 'check',
      polish: 'refine',
    },
    retry: { attempts: 1 },
    state: {
      stage: last<string>(),
      messages: append<string>(),
      notes: append<string>(),
      upgraded: last<boolean>(),
    },
  })
    .node('label', () => (ran.push('label'), { notes: ['labelled anew'] }))
    .node('write', async (_, ctx) => {
      ran.push('write')
      await ctx.step('look up', () => 'found')
      return { messages: 'a new draft' }
    })
    .node('proofread', ({ messages }) => (ran.push('proofread'), { messages: `${messages.at(-1)}, read` }))
    .node('check', async ({ stage }, ctx) => {
      ran.push('check')
      if (stage === 'sleeping') await ctx.sleep(HOUR)
      if (stage === 'paused') return { notes: [await ctx.pause<string>({ review: 'now' })] }
      return { notes: ['checked'] }
    })
    .node('refine', refine, {
      input: ({ messages }) => ({ body: { text: messages.at(-1) ?? '' } }),
      output: ({ body }) => ({ messages: body?.text ?? '' }),
    })
    .branch('check', ({ stage }) => (stage === 'nested' ? 'refine' : END), ['refine', END])
    .edge(START, 'label')
    .edge(START, 'write')
    .edge('write', 'proofread')
    .edge(['label', 'proofread'], 'check')
    .edge('refine', END)
}

const newOrder = (version = '1.4.0', step = 'stock') =>
  flow({ name: 'order', version, retry: { attempts: 1 } }, async (ctx, { stage }: { stage: string }) => {
    const price = await ctx.step('price', { input: stage }, () => (ran.push('price'), 1))
    const [stock] = await Promise.all([
      ctx.step(step, () => (ran.push('stock'), 'gone')),
      ctx.step('reserve', () => ran.push('reserve')),
    ])
    if (stage === 'sleeping') await ctx.sleep(HOUR)
    const said = stage === 'paused' ? await ctx.pause<string>({ pay: price }) : 'not asked'
    if (stage === 'failed') await ctx.step('charge', () => ran.push('charge'))
    return { price, stock, said }
  })

/** Opens the thread of a fixture; answers its questions and lets its sleep pass where `go` is called. */
async function find(name: string) {
  ran.splice(0)
  const { hf, clock } = await openRuntimeFixture(name)
  const id = name.slice(name.indexOf('-') + 1)
  const size = async () => (await (await hf.log(id)).history({ limit: 1000 })).length
  return { hf, clock, id, size, before: await size() }
}

it('the threads are as they were left', () => {
  const sums = runtimeFixtures()
    .sort()
    .map(
      (name) =>
        `${createHash('sha256')
          .update(readFileSync(new URL(name, RUNTIME_FIXTURES)))
          .digest('hex')}  ${name}\n`,
    )
  expect(sums.join('')).toBe(readFileSync(new URL('SHA256SUMS', RUNTIME_FIXTURES), 'utf8'))
  expect(sums).toHaveLength(12)
})

describe('a graph of two state versions later, with all its nodes renamed', () => {
  it('reads a run that was completed, and takes the next input in the new form', async () => {
    const { hf, id } = await find('desk-completed')
    const thread = hf.thread(newDesk(), id)
    // Shown as the program knows it; nothing is written for that.
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { messages: ['a draft, proofread'] } })
    expect(await thread.run({ input: { messages: 'next' } })).toMatchObject({
      status: 'completed',
      state: {
        messages: ['a draft, proofread', 'next', 'a new draft', 'a new draft, read'],
        notes: ['classified', 'reviewed', 'labelled anew', 'checked'],
        upgraded: true,
      },
    })
  })

  it('tries the step again at which a run had failed', async () => {
    const { hf, id } = await find('desk-failed')
    expect(await hf.thread(newDesk(), id).run()).toMatchObject({
      status: 'completed',
      state: { messages: ['a draft, proofread'], notes: ['classified', 'checked'] },
    })
    expect(ran).toEqual(['check'])
  })

  it('keeps the result of a step whose sibling was under way, led to the new version', async () => {
    const { hf, id } = await find('desk-mid-run')
    expect(await hf.thread(newDesk(), id).run()).toMatchObject({
      status: 'completed',
      state: { messages: ['a new draft', 'a new draft, read'], notes: ['classified', 'checked'] },
    })
    expect(ran).toEqual(['write', 'proofread', 'check'])
  })

  it('completes a join that one of its sources had reached under its old name', async () => {
    const { hf, id } = await find('desk-mid-join')
    expect(await hf.thread(newDesk(), id).run()).toMatchObject({
      status: 'completed',
      state: { messages: ['a draft', 'a draft, read'], notes: ['classified', 'checked'] },
    })
    expect(ran).toEqual(['proofread', 'check'])
  })

  it('finds the question that was asked, by a process without the program, and its answer', async () => {
    const { hf, id } = await find('desk-paused')
    const { pauses } = await hf.pauses()
    expect(pauses).toMatchObject([{ thread: id, question: { review: 'now' }, kind: 'question' }])
    const thread = hf.thread(newDesk(), id)
    expect(await thread.run()).toMatchObject({ status: 'paused', pauses: [{ id: pauses[0].id }] })
    await hf.inspect(id).answer(pauses[0].id, 'well done')
    expect(await thread.run()).toMatchObject({ status: 'completed', state: { notes: ['classified', 'well done'] } })
  })

  it('goes on inside of a subgraph, whose state has versions of its own', async () => {
    const { hf, id } = await find('desk-nested')
    const [{ id: pause, question }] = await hf.inspect(id).pauses()
    expect(question).toEqual({ polish: 'a draft, proofread!' })
    await hf.inspect(id).answer(pause, 'nice')
    const thread = hf.thread(newDesk(), id)
    expect(await thread.run()).toMatchObject({
      status: 'completed',
      state: { messages: ['a draft, proofread', 'a draft, proofread! (nice, 1)'] },
    })
  })

  it('wakes a sleeper at its time', async () => {
    const { hf, clock, id } = await find('desk-sleeping')
    const program = newDesk()
    const worker = hf.worker({ programs: [program], handleSignals: false })
    await clock.advance(HOUR / 2)
    expect(ran).toEqual([])
    await clock.advance(HOUR / 2)
    expect(await hf.thread(program, id).waitFor()).toMatchObject({ status: 'completed', state: { upgraded: true } })
    await worker.stop()
  })

  it('is one with the bulk migration: a dry run writes nothing, the real one all of it, and a second one nothing', async () => {
    for (const name of runtimeFixtures().map((file) => file.slice(0, -5))) {
      if (!name.startsWith('desk-')) continue
      const { hf, id, size, before } = await find(name)
      const program = newDesk()
      const expected = { thread: id, branch: 'main', from: 1, to: 3 }
      const dry = await hf.migrate(program, { dryRun: true })
      expect(dry).toMatchObject({ checked: 1, migrated: [expected], failed: [] })
      expect(dry.migrated[0].subgraphs).toEqual(
        name === 'desk-nested' ? [{ path: expect.stringContaining('polish'), from: 1, to: 2 }] : [],
      )
      expect(await size()).toBe(before)
      expect(await hf.migrate(program)).toEqual(dry)
      expect(await hf.migrate(program)).toMatchObject({ checked: 1, migrated: [], failed: [] })
      const { stateVersion } = await hf
        .inspect(id)
        .look((await hf.inspect(id).history())[0].id)
        .facts()
      expect(stateVersion).toBe(3)
      for (const { id: pause } of await hf.inspect(id).pauses()) await hf.inspect(id).answer(pause, 'fine')
      if (name !== 'desk-sleeping') expect(await hf.thread(program, id).run()).toMatchObject({ status: 'completed' })
      // The program that is older than its state says so, and writes nothing.
      const after = await size()
      const old = graph({ name: 'desk', version: '1.0.0', state: { text: last<string>() } })
        .node('n', () => {})
        .edge(START, 'n')
        .edge('n', END)
      expect(await hf.thread(old, id).run()).toMatchObject({
        status: 'incompatible',
        canResume: false,
        reason: expect.stringContaining('version 3'),
      })
      expect(await size()).toBe(after)
    }
  })
})

describe('a graph that does not fit is told so, and nothing is written', () => {
  const incompatible = (reason: string, remedy: string) => ({
    status: 'incompatible',
    canResume: false,
    reason: expect.stringContaining(reason),
    remedy: expect.stringContaining(remedy),
  })

  it.each([
    ['desk-failed', { compatibleWith: undefined }, 'started by desk 1.0.0', 'declare compatibleWith'],
    ['desk-failed', { migrations: { 2: renameText } }, 'no migration leads from 2 to 3', 'Add migrations: { 3:'],
    ['desk-failed', { migrations: { 2: renameText, 3: () => null } }, 'did not return an object', 'whole state'],
    ['desk-failed', { migrations: { 2: renameText, 3: fail } }, 'version 3 failed: not this one', 'Fix the migration'],
    ['desk-failed', { aliases: {} }, 'waits at node "review"', 'aliases: { "review"'],
    [
      'desk-mid-run',
      { migrations: { 2: renameText.state, 3: (s: object) => s }, aliases: ALL(['classify']) },
      'waits at node "classify"',
      'aliases',
    ],
    ['desk-nested', { innerAliases: { improve: 'better' } }, 'waits at node "ask", which polish', 'aliases: { "ask"'],
    ['desk-nested', { innerMigrations: {} }, 'no migration leads from 1 to 2', 'Add migrations'],
  ])('%s with %j', async (name, changes: Changes, reason, remedy) => {
    const { hf, id, size, before } = await find(name)
    for (const { id: pause } of await hf.inspect(id).pauses()) await hf.inspect(id).answer(pause, 'fine')
    const size0 = name === 'desk-nested' ? before + 1 : before
    const thread = hf.thread(newDesk(changes), id)
    expect(await thread.run()).toMatchObject(incompatible(reason, remedy))
    expect(await size()).toBe(size0)
    expect(ran).toEqual([])
    // The way out works: nothing of the refusal stays behind.
    expect(await hf.thread(newDesk(), id).run()).toMatchObject({ status: 'completed' })
  })

  it('says which recorded change the new version does not know', async () => {
    const { hf, id, size } = await find('desk-mid-run')
    // A thread whose recorded sibling changed a key that is gone: made by the fixture's notes.
    const program = graph({
      name: 'desk',
      version: '1.1.0',
      stateVersion: 2,
      migrations: { 2: (state) => Object.fromEntries(Object.entries(state).filter(([key]) => key !== 'notes')) },
      state: { stage: last<string>(), text: last<string>() },
    })
      .node('classify', () => {})
      .node('draft', () => {})
      .node('proof', () => {})
      .node('review', () => {})
      .edge(START, 'classify')
      .edge(START, 'draft')
      .edge('draft', 'proof')
      .edge(['classify', 'proof'], 'review')
      .edge('review', END)
    const before = await size()
    expect(await hf.thread(program, id).run()).toMatchObject(incompatible('a change of "notes"', 'update: (update)'))
    expect(await size()).toBe(before)
  })

  it('is not tried again and again by a worker', async () => {
    const { hf, clock, size } = await find('desk-mid-run')
    const events: string[] = []
    const worker = hf.worker({
      programs: [newDesk({ migrations: {} })],
      handleSignals: false,
      pollMs: 100,
      onEvent: (event) => events.push(event.type),
    })
    const before = await size()
    await clock.advance(5000)
    await worker.stop()
    expect(events).toEqual(['taken', 'ended'])
    expect(await size()).toBe(before)
  })
})

describe('a flow of a later version', () => {
  it.each([
    ['order-completed', { price: 40, stock: 'in stock', said: 'not asked' }, []],
    ['order-failed', { price: 40, stock: 'in stock', said: 'not asked' }, ['charge']],
    ['order-mid-run', { price: 40, stock: 'in stock', said: 'not asked' }, ['reserve']],
    ['order-paused', { price: 40, stock: 'in stock', said: 'fine' }, []],
    ['order-sleeping', { price: 40, stock: 'in stock', said: 'not asked' }, []],
  ])('ends what %s began, and runs only what is not recorded', async (name, output, steps) => {
    const { hf, clock, id } = await find(name)
    for (const { id: pause } of await hf.inspect(id).pauses()) await hf.inspect(id).answer(pause, 'fine')
    await clock.advance(HOUR)
    expect(await hf.thread(newOrder(), id).run()).toMatchObject({ status: 'completed', output })
    expect(ran).toEqual(steps)
    // The same input again, by its key, is answered by the record.
    expect(await hf.thread(newOrder(), id).run({ input: { stage: id }, key: 'the-input' })).toMatchObject({ output })
    expect(ran).toEqual(steps)
  })

  it('of another major is told so, and nothing is written', async () => {
    const { hf, id, size, before } = await find('order-mid-run')
    expect(await hf.thread(newOrder('2.0.0'), id).run()).toMatchObject({ status: 'incompatible', canResume: false })
    expect(await size()).toBe(before)
  })

  it('that no longer takes a recorded step ends as nondeterministic, not as a silent repeat', async () => {
    const { hf, id } = await find('order-mid-run')
    expect(await hf.thread(newOrder('1.4.0', 'shelf'), id).run()).toMatchObject({
      status: 'incompatible',
      reason: expect.stringContaining('"stock" is recorded'),
    })
  })
})

function fail(): never {
  throw new Error('not this one')
}

function ALL(without: readonly string[]): Record<string, string> {
  const all = { classify: 'label', draft: 'write', proof: 'proofread', review: 'check', polish: 'refine' }
  return Object.fromEntries(Object.entries(all).filter(([old]) => !without.includes(old)))
}
