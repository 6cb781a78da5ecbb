import { Client } from '@langchain/langgraph-sdk'
import { flow, type Holdfast, openHoldfast } from 'holdfast'
import { hostGraph } from 'holdfast/langgraph'
import { afterAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { until } from '../support/until.js'
import * as graphs from './graphs/orders.mjs'
import { setUpServers, type TestServer, TOKENS } from './server-setup.js'

const backends = (await durableBackends()).filter(({ name }) => name === 'SQLite' || name === 'Postgres')
const { serve } = setUpServers()

function sdk(server: TestServer, token: string = TOKENS.ada.token): Client {
  return new Client({ apiUrl: server.url, apiKey: token, callerOptions: { maxRetries: 0 } })
}

/** A server of the graphs, with the real client. */
async function serveGraphs(store = 'memory:') {
  const make = (hf: Holdfast) => [
    hostGraph(hf, graphs.orders, { name: 'orders' }),
    hostGraph(hf, graphs.survey, { name: 'survey' }),
    hostGraph(hf, graphs.memory(), { name: 'memory' }),
  ]
  const server = await serve({ store, make })
  return { server, client: sdk(server) }
}

interface Asked {
  readonly __interrupt__: readonly { readonly id: string; readonly value: unknown }[]
}
const asked = (values: unknown) => (values as Asked).__interrupt__
const logOf = (values: unknown) => (values as { log: string[] }).log

async function heard(stream: AsyncIterable<{ event: string; data: unknown }>) {
  const events: [string, unknown][] = []
  for await (const { event, data } of stream) events.push([event, data])
  return events
}

describe.each(backends)('a graph of LangGraph on $name', ({ missing, fresh, cleanup }) => {
  afterAll(cleanup)

  it.skipIf(missing)('runs, asks from a subgraph, is answered, and has its own states and history', async () => {
    const { server, client } = await serveGraphs(await fresh())
    const [assistant] = await client.assistants.search({ graphId: 'orders' })
    const id = assistant?.assistant_id as string
    const { thread_id: thread } = await client.threads.create({ graphId: 'orders' })
    expect(await client.threads.getState(thread)).toMatchObject({ values: {}, next: [], tasks: [] })
    const first = await heard(
      client.runs.stream(thread, id, {
        input: { log: ['in'], messages: [{ type: 'human', content: 'Hi', id: 'm-hi' }] },
        streamMode: ['values', 'updates', 'messages-tuple', 'custom'],
        metadata: { purpose: 'test' },
      }) as never,
    )
    expect(first[0]).toMatchObject(['metadata', { run_id: expect.any(String) as string }])
    const updates = first.filter(([event]) => event === 'updates').map(([, data]) => Object.keys(data as object)[0])
    expect(updates).toEqual(['find', 'wait', '__interrupt__'])
    expect(first.filter(([event]) => event === 'messages')).toMatchObject([
      ['messages', [{ type: 'ai', id: 'm-found', content: 'Found it.' }, { langgraph_node: 'find' }]],
    ])
    const [, paused] = first.findLast(([event]) => event === 'values') ?? []
    expect(logOf(paused)).toEqual(['in', 'found', 'waited'])
    expect(asked(paused)).toMatchObject([{ value: { ask: 'How much?' } }])
    expect((paused as { messages: object[] }).messages).toMatchObject([
      { type: 'human', id: 'm-hi', content: 'Hi' },
      { type: 'ai', id: 'm-found', content: 'Found it.' },
    ])
    expect(await client.threads.get(thread)).toMatchObject({
      status: 'interrupted',
      metadata: { graph_id: 'orders', purpose: 'test' },
    })
    const state = await client.threads.getState(thread)
    expect(state.next).toEqual(['approve'])
    expect(state.tasks.flatMap(({ interrupts }) => interrupts)).toEqual(asked(paused))
    // The same question is open for everybody else who answers questions.
    const [pause] = (await server.client().pauses()).pauses
    expect(pause?.question).toMatchObject({ node: 'approve', value: { ask: 'How much?' } })

    const second = await client.runs.wait(thread, id, { command: { resume: 0 } })
    expect(asked(second)).toMatchObject([{ id: asked(paused)[0]?.id, value: { ask: 'Really?', amount: 0 } }])
    const third = await heard(
      client.runs.stream(thread, id, {
        command: { resume: { [asked(second)[0]?.id as string]: 'yes' } },
        streamMode: ['custom', 'values'],
        streamSubgraphs: true,
      }) as never,
    )
    expect(logOf(third.findLast(([event]) => event === 'values')?.[1])).toEqual([
      'in',
      'found',
      'waited',
      '0 yes',
      'done',
    ])
    expect(third.at(-1)).toEqual(['end', null])
    expect((await client.threads.get(thread)).status).toBe('idle')
    expect(await client.runs.list(thread)).toMatchObject([{ status: 'success' }])

    const past = await client.threads.getHistory(thread, { limit: 20 })
    expect(past.map(({ next }) => next[0] ?? null)).toEqual([null, 'done', 'approve', 'wait', 'find', '__start__'])
    const ids = past.map(({ checkpoint }) => checkpoint.checkpoint_id as string)
    expect([...ids].sort().reverse()).toEqual(ids)
    for (const [i, { parent_checkpoint: parent }] of past.entries()) {
      expect(parent?.checkpoint_id ?? null).toBe(ids[i + 1] ?? null)
    }
    expect(await client.threads.getState(thread, ids[2] as string)).toMatchObject({ next: ['approve'] })
    expect((await client.threads.getHistory(thread, { limit: 2, before: past[1] as never })).length).toBe(2)
    const copy = (await client.threads.copy(thread)) as unknown as { thread_id: string }
    expect(logOf((await client.threads.getState(copy.thread_id)).values)).toContain('done')
    await client.threads.delete(thread)
    await expect(client.threads.getState(thread)).rejects.toThrow(/404/)
    expect(logOf((await client.threads.getState(copy.thread_id)).values)).toContain('done')
  })
})

describe('a graph of LangGraph', () => {
  it('asks several questions at once, and goes on when all are answered, in whichever way', async () => {
    const { server, client } = await serveGraphs()
    const { thread_id: thread } = await client.threads.create()
    const paused = await client.runs.wait(thread, 'survey', { input: { names: ['a', 'b', 'c'] } })
    const open = asked(paused)
    expect(open.map(({ value }) => (value as { name: string }).name)).toEqual(['a', 'b', 'c'])
    await expect(client.runs.wait(thread, 'survey', { command: { resume: 'all' } })).rejects.toThrow(/422/)
    const [first, second, third] = open as unknown as [{ id: string }, { id: string }, { id: string }]
    const partly = await client.runs.wait(thread, 'survey', { command: { resume: { [first.id]: 1, [third.id]: 3 } } })
    expect(asked(partly)).toEqual([second])
    const { tasks } = await client.threads.getState(thread)
    expect(tasks.flatMap(({ interrupts }) => interrupts)).toEqual([second])
    const inside = (await client.threads.getState(thread, undefined, { subgraphs: true })).tasks
    const next = inside.map(({ state }) => (state as { next?: readonly string[] } | null)?.next?.[0])
    expect(next).toEqual(['question', 'question', 'question'])
    // The last one through the list of questions, as any other program's.
    const [pause] = (await server.client().pauses()).pauses
    await server
      .client()
      .thread(thread)
      .answer(pause?.id as string, 2)
    const run = (await client.runs.list(thread))[0]?.run_id as string
    expect(await client.runs.join(thread, run)).toMatchObject({ answers: ['a: 1', 'b: 2', 'c: 3', '3 answers'] })
    await expect(client.runs.wait(thread, 'survey', { command: { resume: 1 } })).rejects.toThrow(/422/)
  })

  it('stops at breakpoints, goes where it is told to, and is changed as if by a node', async () => {
    const { client } = await serveGraphs()
    const { thread_id: thread } = await client.threads.create()
    const stopped = await client.runs.wait(thread, 'orders', { input: { log: ['in'] }, interruptBefore: ['wait'] })
    expect(logOf(stopped)).toEqual(['in', 'found'])
    expect(await client.threads.get(thread)).toMatchObject({ status: 'interrupted' })
    expect((await client.threads.getState(thread)).next).toEqual(['wait'])
    const after = await client.runs.wait(thread, 'orders', { input: null, interruptAfter: ['wait'] })
    expect(logOf(after)).toEqual(['in', 'found', 'waited'])
    const updated = await client.threads.updateState(thread, { values: { log: ['by hand'] }, asNode: 'approve' })
    expect(updated).toMatchObject({ configurable: { thread_id: thread } })
    expect((await client.threads.getState(thread)).next).toEqual(['done'])
    expect(logOf(await client.runs.wait(thread, 'orders', { input: null }))).toEqual([
      'in',
      'found',
      'waited',
      'by hand',
      'done',
    ])
    const command = { goto: 'done', update: { log: ['again'] } }
    expect(logOf(await client.runs.wait(thread, 'orders', { command })).slice(-2)).toEqual(['again', 'done'])

    // From an older state: another past, and the newest is what the thread is now.
    const past = await client.threads.getHistory(thread, { limit: 50 })
    const old = past.find(({ next }) => next[0] === 'wait')
    const forked = await client.runs.wait(thread, 'orders', {
      input: null,
      checkpoint: old?.checkpoint as never,
      interruptBefore: ['approve'],
    })
    expect(logOf(forked)).toEqual(['in', 'found', 'waited'])
    const all = await client.threads.getHistory(thread, { limit: 50 })
    expect(all.length).toBeGreaterThan(past.length)
    const known = new Set(all.map(({ checkpoint }) => checkpoint.checkpoint_id))
    for (const { parent_checkpoint: parent } of all) if (parent) expect(known).toContain(parent.checkpoint_id)
    // The newest state sent along means to go on.
    const head = (await client.threads.getState(thread)).checkpoint
    const went = await client.runs.wait(thread, 'orders', { input: { log: ['skip'] }, checkpoint: head as never })
    expect(logOf(went)).toEqual(['in', 'found', 'waited', 'skip', 'found', 'waited', 'done'])
  })

  it('takes the place of a run that asks, follows a strategy, and is rolled back', async () => {
    const { client } = await serveGraphs()
    const { thread_id: thread } = await client.threads.create()
    await client.runs.wait(thread, 'orders', { input: { log: ['one'] } })
    const instead = await client.runs.wait(thread, 'orders', { input: { log: ['skip'] } })
    expect(logOf(instead)).toEqual(['one', 'found', 'waited', 'skip', 'found', 'waited', 'done'])
    const gate = '/nonexistent/gate'
    const slow = await client.runs.create(thread, 'orders', { input: { gate, log: ['slow'] } })
    const wait = (options: object) =>
      client.runs.wait(thread, 'orders', { input: { gate: '', log: ['next'] }, ...options } as never)
    await expect(wait({ multitaskStrategy: 'reject' })).rejects.toThrow(/422/)
    await expect(client.threads.updateState(thread, { values: { log: ['x'] } })).rejects.toThrow(/409/)
    expect(logOf(await wait({ multitaskStrategy: 'rollback' }))).toEqual([
      ...logOf(instead),
      'next',
      'found',
      'waited',
      'done',
    ])
    expect(await client.runs.get(thread, slow.run_id)).toMatchObject({ status: 'interrupted' })

    const fresh = (await client.threads.create()).thread_id
    await client.runs.create(fresh, 'orders', { input: { gate, log: ['slow'] } })
    await until(async () => (await client.threads.getState(fresh)).next[0] === 'wait')
    const rolled = client.runs.wait(fresh, 'orders', { input: { log: ['skip'] }, multitaskStrategy: 'rollback' })
    expect(logOf(await rolled)).toEqual(['skip', 'found', 'waited', 'done'])

    const third = (await client.threads.create()).thread_id
    await client.runs.create(third, 'orders', { input: { gate, log: ['slow'] } })
    await until(async () => (await client.threads.getState(third)).next[0] === 'wait')
    const interrupting = client.runs.wait(third, 'orders', {
      input: { gate: '', log: ['skip'] },
      multitaskStrategy: 'interrupt',
    })
    expect(logOf(await interrupting)).toEqual(['slow', 'found', 'skip', 'found', 'waited', 'done'])
  })

  it('has a memory that threads of one tenant share, and fails as what it throws', async () => {
    const { server, client } = await serveGraphs()
    const eve = sdk(server, TOKENS.other.token)
    const run = async (who: Client, fact: string, config = {}) =>
      who.runs.wait(null, 'memory', { input: { fact }, config } as never)
    expect(await run(client, 'a')).toMatchObject({ known: [], user: TOKENS.ada.subject })
    expect(
      await run(client, 'b', { configurable: { langgraph_auth_user_id: 'somebody', thread_id: 'x' } }),
    ).toMatchObject({
      known: ['a'],
      user: TOKENS.ada.subject,
    })
    expect((await client.store.searchItems(['facts'])).items.map(({ key }) => key).sort()).toEqual(['a', 'b'])
    expect(await run(eve, 'c')).toMatchObject({ known: [], user: TOKENS.other.subject })
    await expect(run(client, 'fail')).rejects.toThrow(/no such fact/)
    const { thread_id: thread } = await client.threads.create()
    await expect(client.runs.wait(thread, 'memory', { input: { fact: 'fail' } })).rejects.toThrow(/no such fact/)
    expect((await client.threads.get(thread)).status).toBe('error')
    expect(await client.runs.wait(thread, 'memory', { input: { fact: 'd' } })).toMatchObject({ known: ['a', 'b'] })
    await expect(eve.threads.getState(thread)).rejects.toThrow(/404/)
  })

  it('runs on its own thread, whatever a config says, and leaves nothing when it is erased', async () => {
    const { server, client } = await serveGraphs()
    const { thread_id: victim } = await client.threads.create()
    const { thread_id: thread } = await client.threads.create()
    await client.runs.wait(victim, 'orders', { input: { log: ['skip'] } })
    const before = await client.threads.getState(victim)
    const configurable = {
      thread_id: victim,
      checkpoint_id: before.checkpoint.checkpoint_id,
      checkpoint_ns: 'x',
      __pregel_checkpointer: {},
      __pregel_resuming: true,
    }
    const config = { configurable, recursion_limit: 50 }
    const values = await client.runs.wait(thread, 'orders', { input: { log: ['skip'] }, config } as never)
    expect(logOf(values)).toEqual(['skip', 'found', 'waited', 'done'])
    expect(await client.threads.getState(victim)).toEqual(before)
    const few = { input: { log: ['skip'] }, config: { recursion_limit: 1 } }
    await expect(client.runs.wait(thread, 'orders', few as never)).rejects.toThrow(/[Rr]ecursion/)

    await server.client().thread(thread).erase()
    await client.threads.create({ threadId: thread, graphId: 'orders' })
    expect(await client.threads.getState(thread)).toMatchObject({ values: {}, next: [] })
    expect(await client.threads.getHistory(thread)).toEqual([])
  })

  it('streams whatever modes it has, and shows how it is made', async () => {
    const { client } = await serveGraphs()
    const { thread_id: thread } = await client.threads.create()
    const modes = ['debug', 'tasks', 'checkpoints', 'messages'] as const
    const events = await heard(
      client.runs.stream(thread, 'orders', { input: { log: ['skip'] }, streamMode: [...modes] as never }) as never,
    )
    const names = new Set(events.map(([event]) => event))
    for (const name of ['debug', 'tasks', 'checkpoints', 'messages/metadata', 'messages/complete']) {
      expect(names).toContain(name)
    }
    expect(JSON.stringify(events)).not.toContain('callbacks')
    const drawn = await client.assistants.getGraph('orders')
    expect(drawn.nodes.map(({ id }) => id)).toEqual(['__start__', 'find', 'wait', 'approve', 'done', '__end__'])
    expect(await client.assistants.getSchemas('survey')).toMatchObject({
      graph_id: 'survey',
      state_schema: { properties: { names: {}, answers: {} } },
    })
    expect(Object.keys(await client.assistants.getSubgraphs('survey'))).toEqual(['one'])
  })
})

it('a thread of a graph that is erased leaves none of its states behind, and no other thread is touched', async () => {
  const hf = await openHoldfast('memory:')
  const orders = hostGraph(hf, graphs.orders, { name: 'orders' })
  const plain = flow({ name: 'plain', version: '1.0.0' }, () => 'done')
  for (const id of ['gone', 'kept']) await hf.thread(orders, id).run({ input: { input: { log: ['in'] } } })
  // Of the same name as a thread that some other graph keeps with the saver: that one is not a part of it.
  await hf.thread(plain, 'other').run({ input: {} })
  await hf.thread(plain, { langgraph: 'other' }).run({ input: {} })
  await hf.erase('gone')
  await hf.erase('other')
  const left = (await hf.threads()).threads.map(({ thread }) => JSON.stringify(thread))
  expect([...new Set(left)].sort()).toEqual(['"kept"', '{"langgraph":"kept"}', '{"langgraph":"other"}'])
  await hf.close()
})
