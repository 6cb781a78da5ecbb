import { Client } from '@langchain/langgraph-sdk'
import { agent, flow, tool } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { durableBackends } from '../support/backends.js'
import { until } from '../support/until.js'
import { pacedModel } from './paced-model.js'
import { desk, setUpServers, type TestServer, TOKENS } from './server-setup.js'

const backends = (await durableBackends()).filter(({ name }) => name === 'SQLite' || name === 'Postgres')
const { serve } = setUpServers()

function playSupport() {
  const { model, next } = pacedModel()
  const done: string[] = []
  const support = agent({
    name: 'support',
    version: '1.0.0',
    model,
    tools: {
      find: tool({
        description: 'd',
        inputSchema: z.object({ id: z.string() }),
        effect: 'read',
        execute: async ({ id }) => ({ found: id }),
      }),
      refund: tool({
        description: 'd',
        inputSchema: z.object({ id: z.string() }),
        effect: 'idempotent',
        needsApproval: true,
        execute: async ({ id }) => {
          done.push(id)
          return { refunded: id }
        },
      }),
    },
  })
  return { support, next, done }
}

/** The real client, unmodified. It tries nothing again, so that a refusal is seen at once. */
function sdk(server: TestServer, token: string = TOKENS.ada.token): Client {
  return new Client({ apiUrl: server.url, apiKey: token, callerOptions: { maxRetries: 0 } })
}

const human = (content: string, id?: string) => ({ messages: [{ type: 'human', content, ...(id ? { id } : {}) }] })

interface Values {
  readonly messages: readonly { readonly id: string; readonly type: string; readonly content: unknown }[]
  readonly __interrupt__?: readonly { readonly id: string; readonly value: unknown }[]
}

const said = (values: unknown) =>
  ((values as Partial<Values>).messages ?? []).map(({ type, content }) => `${type}: ${String(content)}`)

describe.each(backends)('the LangGraph SDK on $name', ({ missing, fresh, cleanup }) => {
  afterAll(cleanup)

  it.skipIf(missing)('finds assistants, makes threads, streams a run and reads its states', async () => {
    const { support, next } = playSupport()
    const server = await serve({ store: await fresh(), programs: [support, desk] })
    const client = sdk(server)
    const [first] = await client.assistants.search({ graphId: 'support' })
    expect(first).toMatchObject({ graph_id: 'support', name: 'support' })
    const { assistant_id: assistant } = first as { assistant_id: string }
    expect(await client.assistants.get(assistant)).toEqual(first)
    expect(await client.assistants.get('support')).toEqual(first)
    expect(await client.assistants.count()).toBe(2)
    expect((await client.assistants.getGraph(assistant)).nodes.map(({ id }) => id)).toContain('model')
    expect(await client.assistants.getSchemas(assistant)).toMatchObject({
      graph_id: 'support',
      input_schema: { type: 'object' },
    })
    expect(await client.assistants.getSubgraphs(assistant)).toEqual({})

    const { thread_id: id } = await client.threads.create({
      metadata: { user: 'u', deep: { a: [1] } },
      graphId: 'support',
    })
    expect(await client.threads.get(id)).toMatchObject({
      status: 'idle',
      values: null,
      metadata: { user: 'u', deep: { a: [1] } },
    })
    await expect(client.threads.create({ threadId: id })).rejects.toThrow(/409/)
    expect((await client.threads.create({ threadId: id, ifExists: 'do_nothing' })).thread_id).toBe(id)

    let run: { run_id: string; thread_id?: string } | undefined
    const stream = client.runs.stream(id, assistant, {
      input: human('Where is A?', 'h1'),
      streamMode: ['values', 'messages-tuple', 'updates'],
      onRunCreated: (made) => {
        run = made
      },
    })
    const events: { id?: string; event: string; data: unknown }[] = []
    const reading = (async () => {
      for await (const event of stream) events.push(event as never)
    })()
    ;(await next()).say('Let me ').say('look.').call('find', { id: 'A' }, 'call-1').end()
    ;(await next()).say('Here.').end()
    await reading
    expect(run).toMatchObject({ thread_id: id })
    expect(events[0]).toMatchObject({ event: 'metadata', data: { run_id: run?.run_id } })
    expect(events.at(-1)?.event).toBe('end')
    const values = events.filter(({ event }) => event === 'values').map(({ data }) => data)
    expect(said(values.at(-1))).toEqual(['human: Where is A?', 'ai: Let me look.', 'tool: {"found":"A"}', 'ai: Here.'])
    // Chunks carry the id that the message has in the values.
    const chunks = events
      .filter(({ event }) => event === 'messages')
      .map(({ data }) => (data as [{ id: string; content: string; type: string }])[0])
    const ids = (values.at(-1) as Values).messages.map((message) => message.id)
    expect(ids[0]).toBe('h1')
    for (const chunk of chunks) expect(ids).toContain(chunk.id)
    expect(chunks.filter(({ id: of }) => of === ids[3]).map(({ content }) => content)).toEqual(['Here.'])
    expect(
      events.filter(({ event }) => event === 'updates').map(({ data }) => Object.keys(data as object)[0]),
    ).toContain('model')

    const state = await client.threads.getState(id)
    expect(said(state.values)).toEqual(said(values.at(-1)))
    expect(state.next).toEqual([])
    const past = await client.threads.getHistory(id, { limit: 20 })
    expect(past[0]?.checkpoint).toEqual(state.checkpoint)
    const order = past.map(({ checkpoint }) => checkpoint.checkpoint_id as string)
    expect(order).toEqual([...order].sort().reverse())
    for (const [i, one] of past.entries()) {
      expect(one.parent_checkpoint?.checkpoint_id ?? null).toBe(past[i + 1]?.checkpoint.checkpoint_id ?? null)
    }
    expect(await client.threads.getState(id, past[1]?.checkpoint as never)).toMatchObject({
      checkpoint: past[1]?.checkpoint,
    })
    expect(await client.threads.getState(id, order[1] as string)).toMatchObject({ checkpoint: past[1]?.checkpoint })
    const older = await client.threads.getHistory(id, {
      limit: 20,
      before: { configurable: { checkpoint_id: order[0] } } as never,
    })
    expect(older.map(({ checkpoint }) => checkpoint.checkpoint_id)).toEqual(order.slice(1))

    expect(await client.runs.list(id)).toMatchObject([{ run_id: run?.run_id, status: 'success' }])
    expect(await client.runs.get(id, run?.run_id as string)).toMatchObject({ status: 'success', thread_id: id })
    expect(said(await client.runs.join(id, run?.run_id as string))).toEqual(said(state.values))

    expect(
      (await client.threads.search({ metadata: { graph_id: 'support' } })).map(({ thread_id }) => thread_id),
    ).toEqual([id])
    expect((await client.threads.search({ metadata: { assistant_id: assistant, user: 'u' } })).length).toBe(1)
    expect(await client.threads.search({ metadata: { user: 'other' } })).toEqual([])
    expect(await client.threads.count({ metadata: { user: 'u' } })).toBe(1)
    await client.threads.update(id, { metadata: { user: 'v' } })
    expect((await client.threads.get(id)).metadata).toMatchObject({ user: 'v', graph_id: 'support' })
    await client.threads.delete(id)
    await expect(client.threads.get(id)).rejects.toThrow(/404/)
  })

  it.skipIf(missing)('sees interrupts and resumes them by id, with decisions', async () => {
    const { support, next, done } = playSupport()
    const server = await serve({ store: await fresh(), programs: [support], eager: true })
    const client = sdk(server)
    const { thread_id: id } = await client.threads.create()
    const waiting = client.runs.wait(id, 'support', { input: human('Refund A, B and C') })
    ;(await next()).call('refund', { id: 'A' }).call('refund', { id: 'B' }).call('refund', { id: 'C' }).end()
    const values = (await waiting) as unknown as Values
    expect(values.__interrupt__).toHaveLength(3)
    expect(values.__interrupt__?.[0]).toMatchObject({
      value: { action_requests: [{ name: 'refund', args: { id: 'A' } }], review_configs: [{ action_name: 'refund' }] },
    })
    const thread = await client.threads.get(id)
    expect(thread.status).toBe('interrupted')
    const state = await client.threads.getState(id)
    expect(state.tasks.flatMap(({ interrupts }) => interrupts.map((one) => one.id))).toEqual(
      values.__interrupt__?.map((one) => one.id),
    )
    const decisions = [
      { type: 'approve' },
      { type: 'reject', message: 'no' },
      { type: 'edit', edited_action: { name: 'refund', args: { id: 'D' } } },
    ]
    await expect(client.runs.wait(id, 'support', { command: { resume: { decisions } } })).rejects.toThrow(/422/)
    const resume = Object.fromEntries(
      (values.__interrupt__ ?? []).map((one, i) => [one.id, { decisions: [decisions[i]] }]),
    )
    const resumed = client.runs.wait(id, 'support', { command: { resume } })
    ;(await next()).say('Done.').end()
    expect(said(await resumed).at(-1)).toBe('ai: Done.')
    expect([...done].sort()).toEqual(['A', 'D'])
    // Joined from its start, the run is told to its end and not only to where it rested.
    const run = (await client.runs.list(id))[0]?.run_id as string
    const told: unknown[] = []
    for await (const { event, data } of client.runs.joinStream(id, run, { lastEventId: '-1', streamMode: 'values' })) {
      if (event === 'values') told.push(data)
    }
    expect(said(told.at(-1)).at(-1)).toBe('ai: Done.')
    await expect(client.runs.wait(id, 'support', { command: { resume: true } })).rejects.toThrow(/422/)
  })
})

describe('the LangGraph SDK', () => {
  it('goes on at the head, forks at an older checkpoint, and sees all branches', async () => {
    const { support, next } = playSupport()
    const server = await serve({ programs: [support] })
    const client = sdk(server)
    const { thread_id: id } = await client.threads.create()
    const run = async (reply: string, payload: object) => {
      const waiting = client.runs.wait(id, 'support', payload as never)
      ;(await next()).say(reply).end()
      return said(await waiting)
    }
    await run('one', { input: human('first') })
    const head = (await client.threads.getState(id)).checkpoint
    expect(await run('two', { input: human('second'), checkpoint: head })).toEqual([
      'human: first',
      'ai: one',
      'human: second',
      'ai: two',
    ])
    expect((await server.client().threads({ thread: id })).threads).toHaveLength(1)

    // Another question in place of the second, as useStream edits a message.
    const states = await client.threads.getHistory(id, { limit: 50 })
    const seen = states.findLast(({ values }) => said(values).includes('human: second'))
    expect(await run('three', { input: human('other'), checkpoint: seen?.parent_checkpoint })).toEqual([
      'human: first',
      'ai: one',
      'human: other',
      'ai: three',
    ])
    // Another answer to the first one.
    const answered = states.findLast(({ values }) => said(values).includes('ai: one'))
    expect(await run('uno', { input: null, checkpoint: answered?.parent_checkpoint })).toEqual([
      'human: first',
      'ai: uno',
    ])
    // Another beginning.
    const begun = states.findLast(({ values }) => said(values).includes('human: first'))
    expect(await run('neu', { input: human('anew'), checkpoint: begun?.parent_checkpoint })).toEqual([
      'human: anew',
      'ai: neu',
    ])
    const all = await client.threads.getHistory(id, { limit: 100 })
    const lasts = new Set(all.map(({ values }) => said(values).at(-1)))
    for (const reply of ['ai: two', 'ai: three', 'ai: uno', 'ai: neu']) expect(lasts).toContain(reply)
    const known = new Set(all.map(({ checkpoint }) => checkpoint.checkpoint_id))
    for (const { parent_checkpoint: parent } of all) if (parent) expect(known).toContain(parent.checkpoint_id)
    const roots = all.filter(({ parent_checkpoint: parent }) => parent === null)
    expect(roots.length).toBeGreaterThan(0)

    const updated = await client.threads.updateState(id, { values: human('by hand', 'x') as never })
    expect(updated).toMatchObject({ checkpoint: { thread_id: id } })
    expect(said((await client.threads.getState(id)).values).at(-1)).toBe('human: by hand')
    const copy = (await client.threads.copy(id)) as unknown as { thread_id: string }
    expect(copy.thread_id).not.toBe(id)
    expect((await client.threads.getState(copy.thread_id)).values).toEqual((await client.threads.getState(id)).values)
    expect(await client.threads.getHistory(copy.thread_id, { limit: 100 })).toHaveLength(all.length + 1)
    await client.threads.patchState(id, { note: 'n' })
    expect((await client.threads.get(id)).metadata).toMatchObject({ note: 'n' })
  })

  it('follows the strategy asked for when a thread is busy', async () => {
    const { support, next } = playSupport()
    const server = await serve({ programs: [support] })
    const client = sdk(server)
    const start = async (id: string) => {
      const run = await client.runs.create(id, 'support', { input: human('slow') })
      return { run, call: await next() }
    }
    const a = (await client.threads.create()).thread_id
    const one = await start(a)
    expect((await client.threads.get(a)).status).toBe('busy')
    await expect(client.runs.wait(a, 'support', { input: human('x'), multitaskStrategy: 'reject' })).rejects.toThrow(
      /422/,
    )
    const queued = await client.runs.create(a, 'support', { input: human('later'), multitaskStrategy: 'enqueue' })
    expect(await client.runs.get(a, queued.run_id)).toMatchObject({ status: 'pending' })
    one.call.say('slow done').end()
    ;(await next()).say('later done').end()
    expect(said(await client.runs.join(a, queued.run_id))).toEqual([
      'human: slow',
      'ai: slow done',
      'human: later',
      'ai: later done',
    ])

    const b = (await client.threads.create()).thread_id
    const two = await start(b)
    const interrupting = client.runs.wait(b, 'support', { input: human('now'), multitaskStrategy: 'interrupt' })
    ;(await next()).say('now done').end()
    expect(said(await interrupting).at(-1)).toBe('ai: now done')
    expect(await client.runs.get(b, two.run.run_id)).toMatchObject({ status: 'interrupted' })

    const c = (await client.threads.create()).thread_id
    await start(c)
    const rolling = client.runs.wait(c, 'support', { input: human('instead'), multitaskStrategy: 'rollback' })
    ;(await next()).say('instead done').end()
    expect(said(await rolling)).toEqual(['human: instead', 'ai: instead done'])
  })

  it('cancels, joins a stream from its start, and cancels when its client leaves if asked to', async () => {
    const { support, next } = playSupport()
    const server = await serve({ programs: [support] })
    const client = sdk(server)
    const { thread_id: id } = await client.threads.create()
    const run = await client.runs.create(id, 'support', { input: human('Hi') })
    const call = await next()
    call.say('Hello ')
    const joined: string[] = []
    const joining = (async () => {
      for await (const { event, data } of client.runs.joinStream(id, run.run_id, {
        lastEventId: '-1',
        streamMode: ['messages-tuple', 'values'],
      })) {
        if (event === 'messages') joined.push((data as unknown as [{ content: string }])[0].content)
        if (event === 'messages' && joined.length === 1) call.say('there.').end()
      }
    })()
    await joining
    expect(joined).toEqual(['Hello ', 'there.'])

    const slow = await client.runs.create(id, 'support', { input: human('Slow') })
    await next()
    await client.runs.cancel(id, slow.run_id, true)
    expect(await client.runs.get(id, slow.run_id)).toMatchObject({ status: 'interrupted' })
    expect((await client.threads.get(id)).status).toBe('idle')
    // Asked once more to end what is over, it ends nothing else.
    const other = await client.runs.create(id, 'support', { input: human('Other') })
    const otherCall = await next()
    await client.runs.cancel(id, slow.run_id, true)
    const behind = await client.runs.create(id, 'support', { input: human('Behind') })
    await expect(client.runs.cancel(id, behind.run_id)).rejects.toThrow(/409/)
    otherCall.say('done').end()
    expect(said(await client.runs.join(id, other.run_id)).at(-1)).toBe('ai: done')
    ;(await next()).say('done too').end()
    expect(said(await client.runs.join(id, behind.run_id)).at(-1)).toBe('ai: done too')

    const several = await client.runs.createBatch([{ assistantId: 'support', input: human('a') }] as never)
    expect(several).toMatchObject([{ status: expect.stringMatching(/pending|running/) }])
    await next()
    const [{ thread_id: own, run_id: first }] = several as unknown as [{ thread_id: string; run_id: string }]
    await client.runs.cancelMany({ threadId: own, runIds: [first] })
    await until(async () => (await client.runs.get(own, first)).status === 'interrupted')

    const leave = new AbortController()
    const left = client.runs.stream(id, 'support', {
      input: human('Bye'),
      onDisconnect: 'cancel',
      signal: leave.signal,
    })
    const reading = (async () => {
      for await (const _ of left);
    })().catch(() => {})
    await next()
    leave.abort()
    await reading
    await until(async () => (await client.threads.get(id)).status === 'idle')
  })

  it('runs without a thread, creates one if asked, and runs programs that are no agents', async () => {
    const { support, next } = playSupport()
    const server = await serve({ programs: [support, desk] })
    const client = sdk(server)
    const waiting = client.runs.wait(null, 'support', { input: human('Hi') })
    ;(await next()).say('Hello').end()
    expect(said(await waiting)).toEqual(['human: Hi', 'ai: Hello'])
    const events: string[] = []
    for await (const { event } of client.runs.stream(null, 'desk', {
      input: { tell: 2 },
      streamMode: ['custom', 'values'],
    }))
      events.push(event)
    expect(events).toEqual(['metadata', 'custom', 'custom', 'values', 'end'])
    await until(async () => (await client.threads.search()).length === 0)
    await expect(client.runs.wait('new', 'desk', { input: {} })).rejects.toThrow(/404/)
    expect(await client.runs.wait('new', 'desk', { input: { order: 'Z' }, ifNotExists: 'create' })).toEqual({
      order: { id: 'Z' },
    })
    await expect(client.runs.wait('new', 'desk', { input: { fail: true } })).rejects.toThrow(/secret detail/)
    expect((await client.threads.get('new')).status).toBe('error')
  })

  it('hears all of a run that it resumed, however quick that is', async () => {
    const asks = flow({ name: 'asks', version: '1.0.0' }, async (ctx) => {
      const answer = await ctx.pause({ ask: 'Really?' })
      await ctx.step('tell', async (step) => step.emit({ answer }))
      await ctx.step('once', { retry: { attempts: 1 } }, async () => {
        if (!isMended) throw new Error('broken')
      })
      await ctx.step('tell again', async (step) => step.emit('mended'))
      return { answer }
    })
    let isMended = false
    const server = await serve({ programs: [asks], eager: true })
    const client = sdk(server)
    const { thread_id: id } = await client.threads.create()
    await client.runs.wait(id, 'asks', { input: {} })
    const stream = async (payload: object) => {
      const heard: unknown[] = []
      const options = { ...payload, streamMode: ['custom', 'values'] as ('custom' | 'values')[] }
      for await (const { event, data } of client.runs.stream(id, 'asks', options)) heard.push([event, data])
      return heard.slice(1)
    }
    expect(await stream({ command: { resume: 'yes' } })).toMatchObject([
      ['custom', { answer: 'yes' }],
      ['values', {}],
      ['error', { message: expect.stringContaining('broken') as string }],
      ['end', null],
    ])
    isMended = true
    expect(await stream({ input: null })).toEqual([
      ['custom', 'mended'],
      ['values', { answer: 'yes' }],
      ['end', null],
    ])
    expect(await stream({ input: null })).toEqual([
      ['values', { answer: 'yes' }],
      ['end', null],
    ])
  })

  it('keeps items in the store, of its own tenant', async () => {
    const { support } = playSupport()
    const server = await serve({ programs: [support] })
    const { store } = sdk(server)
    await store.putItem(['users', 'u'], 'likes', { color: 'red', n: 1 })
    await store.putItem(['users', 'v'], 'likes', { color: 'blue', n: 2 }, { ttl: 60 })
    expect(await store.getItem(['users', 'u'], 'likes')).toMatchObject({
      namespace: ['users', 'u'],
      key: 'likes',
      value: { color: 'red', n: 1 },
      createdAt: expect.any(String) as string,
    })
    expect(await store.getItem(['users', 'u'], 'nothing')).toBeNull()
    const found = await store.searchItems(['users'], { filter: { color: 'blue' } })
    expect(found.items.map(({ value }) => value)).toEqual([{ color: 'blue', n: 2 }])
    expect(await store.listNamespaces({ prefix: ['users'] })).toMatchObject({
      namespaces: [
        ['users', 'u'],
        ['users', 'v'],
      ],
    })
    expect((await store.listNamespaces({ maxDepth: 1 })).namespaces).toEqual([['users']])
    const eve = sdk(server, TOKENS.other.token)
    expect((await eve.store.searchItems([])).items).toEqual([])
    const reader = sdk(server, TOKENS.reader.token)
    expect((await reader.store.searchItems(['users'])).items).toHaveLength(2)
    await expect(reader.store.deleteItem(['users', 'u'], 'likes')).rejects.toThrow(/403/)
    await expect(store.putItem(['langgraph'], 'x', {})).rejects.toThrow(/422/)
    await store.deleteItem(['users', 'u'], 'likes')
    expect(await store.getItem(['users', 'u'], 'likes')).toBeNull()
  })

  it('is told what is not offered, and sees only its own tenant', async () => {
    const { support } = playSupport()
    const server = await serve({ programs: [support] })
    const client = sdk(server)
    const { thread_id: id } = await client.threads.create()
    const missing: (() => Promise<unknown>)[] = [
      () => client.threads.prune([id]),
      () => client.assistants.create({ graphId: 'support' }),
      () => client.assistants.delete('support'),
      () => client.crons.search(),
      () => client.runs.wait(id, 'support', { input: human('x'), interruptBefore: ['model'] }),
      () => client.runs.wait(id, 'support', { command: { goto: 'model' } }),
      async () => {
        for await (const _ of client.runs.stream(id, 'support', { input: human('x'), streamMode: 'debug' }));
      },
    ]
    for (const call of missing) await expect(call()).rejects.toThrow(/501/)
    const eve = sdk(server, TOKENS.other.token)
    await expect(eve.threads.get(id)).rejects.toThrow(/404/)
    await expect(eve.threads.getState(id)).rejects.toThrow(/404/)
    expect(await eve.threads.search()).toEqual([])
    await expect(sdk(server, 'wrong-token-000000').threads.search()).rejects.toThrow(/401/)
    await expect(sdk(server, TOKENS.reader.token).runs.wait(id, 'support', { input: human('x') })).rejects.toThrow(
      /403/,
    )
    expect(await (await server.fetch('/ok', { token: null })).json()).toEqual({ ok: true })
    expect(await (await server.fetch('/info', { token: null })).json()).toMatchObject({ flags: { assistants: true } })
  })
})
