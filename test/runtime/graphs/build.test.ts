import { isHoldfastError } from '#src/core/errors.js'
import { graph } from '#src/runtime/program/graph/graph.js'
import { END, START } from '#src/runtime/program/graph/graph-declaration.js'
import { append, last, merge, reduced } from '#src/runtime/program/state/state-key.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const nothing = (): undefined => undefined
const base = { name: 'orders', version: '1.2.0', state: { total: last<number>() } }
/** For names that the types already refuse. */
const any = (name: string): never => name as never

function start() {
  return graph(base).node('a', nothing).edge(START, 'a')
}

function refused(build: () => unknown, field: string, ...mentioned: readonly string[]): void {
  let error: unknown
  try {
    build()
  } catch (caught) {
    error = caught
  }
  if (!isHoldfastError(error, 'invalid-program')) throw error ?? new Error('it was not refused')
  expect(error.data['field']).toBe(field)
  expect(error.remedy).not.toBe('')
  for (const part of mentioned) expect(error.message).toContain(part)
}

describe('a graph', () => {
  it('is planned once', () => {
    const built = start()
    expect(built.plan).toBe(built.plan)
    expect(built.plan).toMatchObject({
      kind: 'graph',
      name: 'orders',
      version: '1.2.0',
      compatibleWith: undefined,
      maxSteps: 1000,
      stateVersion: 1,
      migrations: {},
      aliases: {},
    })
    expect([...built.plan.nodes.keys()]).toStrictEqual(['a'])
  })

  it('is never changed by building on it', () => {
    const first = start()
    const second = first.node('b', nothing).edge('a', 'b').pauseBefore('b')
    expect([...first.plan.nodes.keys()]).toStrictEqual(['a'])
    expect([...second.plan.nodes.keys()]).toStrictEqual(['a', 'b'])
    expect(second.plan.nodes.get('b')).toMatchObject({ pauseBefore: true, pauseAfter: false })
  })

  it('gives nodes their policy: what they say, else what the graph says', () => {
    const retryIf = (): boolean => true
    const { nodes } = graph({ ...base, retry: { attempts: 5 }, timeoutMs: 100 })
      .node('a', nothing)
      .node('b', {
        effect: 'idempotent',
        retry: { attempts: 1, retryIf },
        keyTtlMs: 5,
        onUnknown: 'fail',
        input: z.string(),
        run: nothing,
      })
      .edge(START, 'a')
      .edge('a', 'b')
      .pauseAfter('a', 'b').plan
    expect(nodes.get('a')).toMatchObject({ kind: 'function', policy: { retry: { attempts: 5 }, timeoutMs: 100 } })
    expect(nodes.get('b')).toMatchObject({ pauseAfter: true, inputSchema: expect.anything() })
    expect(nodes.get('b')?.policy).toStrictEqual({
      effect: 'idempotent',
      retry: { attempts: 1, retryIf },
      timeoutMs: 100,
      keyTtlMs: 5,
      onUnknown: 'fail',
    })
  })

  it('takes an update of its state as input, or what its input schema makes one of', async () => {
    expect(await start().plan.checkInput({ total: 5 })).toStrictEqual({ total: 5 })
    expect(await start().plan.checkInput(undefined)).toStrictEqual({})
    await expect(start().plan.checkInput({ totl: 5 })).rejects.toMatchObject({ data: { path: 'input.totl' } })
    const input = z.object({ amount: z.string() }).transform(({ amount }) => ({ total: Number(amount) }))
    const { plan } = graph({ ...base, input })
      .node('a', nothing)
      .edge(START, 'a')
    expect(await plan.checkInput({ amount: '7' })).toStrictEqual({ total: 7 })
    await expect(plan.checkInput({ amount: 7 })).rejects.toMatchObject({
      code: 'invalid-value',
      data: { path: 'input.amount' },
    })
  })
})

describe('a graph is refused', () => {
  it.each(['', 'x'.repeat(129), 'a\nb', ' a', '\ud800'])('with the name %j', (name) => {
    refused(() => graph({ ...base, name }), 'name')
  })

  it.each(['', '1', '1.2', 'v1.2.3', ' 1.2.3', '1.2.3 ', 'latest', '1.2.x'])('with the version %j', (version) => {
    refused(() => graph({ ...base, version }), 'version', '"orders"', JSON.stringify(version))
  })

  it('with a range that is none', () => {
    refused(() => graph({ ...base, compatibleWith: 'newest' }), 'compatibleWith', '"newest"')
  })

  it.each(['', 'x'.repeat(129), 'a/b', 'a[0]', 'a]', 'a:b', 'a\u0000', START, END])('with a node named %j', (name) => {
    refused(() => graph(base).node(name, nothing), 'node')
  })

  it('takes node names with spaces, dots and letters of any script', () => {
    const name = 'Prüfe Bestellung #1 (v2.0) 注文'
    expect(graph(base).node(name, nothing).edge(START, name).plan.nodes.has(name)).toBe(true)
  })

  it('with two nodes of one name', () => {
    refused(() => start().node('a', nothing), 'node "a"', '"orders"')
  })

  it('with a node that has nothing to run', () => {
    refused(() => graph(base).node('b', {} as never), 'node "b"')
    refused(() => graph(base).node('b', undefined as never), 'node "b"')
  })

  it('with an edge from or to an unknown node', () => {
    refused(() => start().edge('a', any('b')).plan, 'edge from "a" to "b"', 'to "b"')
    refused(() => start().edge(any('b'), 'a').plan, 'edge from "b" to "a"', 'from "b"')
    refused(() => start().edge(any(END), 'a').plan, 'edge from END to "a"')
    refused(() => start().edge('a', any(START)).plan, 'edge from "a" to START')
    refused(() => start().edge(['a', any('b')], 'a').plan, 'edge from "a", "b" to "a"', 'from "b"')
    refused(() => start().edge(['a', any(START)], 'a').plan, 'edge from "a", START to "a"')
    refused(() => start().edge([], 'a'), 'edge to "a"')
  })

  it('with a branch from or to an unknown node, or without targets', () => {
    refused(() => start().branch('a', () => END, [any('b'), END]).plan, 'branch from "a"', 'to "b"')
    refused(() => start().branch(any('b'), () => END, [END]).plan, 'branch from "b"')
    refused(() => start().branch('a', () => any('b'), []), 'branch from "a"')
    refused(() => start().branch('a', undefined as never, [END]), 'branch from "a"')
  })

  it('without an edge from START', () => {
    refused(() => graph(base).plan, 'edge from START')
    refused(() => graph(base).node('a', nothing).plan, 'edge from START')
  })

  it('with a node that is never reached', () => {
    refused(() => start().node('b', nothing).plan, 'node "b"', '"b"')
    const island = start().node('b', nothing).node('c', nothing)
    refused(() => island.edge('b', 'c').edge('c', 'b').plan, 'node "b"')
  })

  it('with a loop that has no exit, wherever it is', () => {
    const loop = start().node('b', nothing).node('c', nothing).node('d', nothing).edge('a', 'b').edge('b', 'c')
    refused(() => start().edge('a', 'a').plan, 'node "a"', 'loop')
    refused(() => loop.edge('c', 'b').branch('a', () => 'd', ['d']).plan, 'node "b"', 'loop')
    const open = loop.branch('c', () => 'd', ['b', 'd'])
    expect(open.plan.nodes.size).toBe(4)
    refused(() => open.edge('d', 'b').branch('d', () => 'c', ['c']).plan, 'node "a"', 'loop')
    expect(open.branch('d', () => 'b', ['b', END]).plan.nodes.size).toBe(4)
  })

  it('with a pause or an alias of an unknown node, or an alias that hides a node', () => {
    refused(() => start().pauseBefore(any('b')).plan, 'pauseBefore', '"b"')
    refused(() => start().pauseAfter(any('b')).plan, 'pauseAfter', '"b"')
    const aliased = (aliases: Record<string, string>) =>
      graph({ ...base, aliases })
        .node('a', nothing)
        .edge(START, 'a')
    refused(() => aliased({ old: 'b' }).plan, 'aliases.old', '"b"')
    refused(() => aliased({ a: 'a' }).plan, 'aliases.a')
    expect(aliased({ old: 'a' }).plan.resolve('old')?.name).toBe('a')
    expect(aliased({ old: 'a' }).plan.resolve('constructor')).toBeUndefined()
  })

  it('with a limit or a state version that is no count, or a migration that leads nowhere', () => {
    const built = (options: object) => () =>
      graph({ ...base, ...options })
        .node('a', nothing)
        .edge(START, 'a').plan
    for (const maxSteps of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY]) refused(built({ maxSteps }), 'maxSteps')
    refused(built({ stateVersion: 0 }), 'stateVersion')
    const migrate = <State>(state: State): State => state
    refused(built({ migrations: { 2: migrate } }), 'migrations.2')
    refused(built({ stateVersion: 2, migrations: { 1: migrate } }), 'migrations.1')
    refused(built({ stateVersion: 2, migrations: { 2: 'x' } }), 'migrations.2')
    expect(built({ stateVersion: 3, migrations: { 2: migrate, 3: migrate } })().stateVersion).toBe(3)
  })

  it('with a policy that could only fail later, or an input that is no schema', () => {
    const node = (policy: object) => () => graph(base).node('b', { ...policy, run: nothing })
    const bad = [
      ['effect', 'twice'],
      ['timeoutMs', 0],
      ['keyTtlMs', -1],
      ['reconcile', {}],
      ['onUnknown', 'retry'],
      ['retry', 3],
      ['input', {}],
    ] as const
    for (const [name, value] of bad) refused(node({ [name]: value }), `node "b".${name}`)
    const retry = { attempts: 0, initialMs: -1, factor: 0.5, maxMs: Number.NaN, jitter: 2, retryIf: true }
    for (const [name, value] of Object.entries(retry)) {
      refused(node({ retry: { [name]: value } }), `node "b".retry.${name}`)
      refused(() => graph({ ...base, retry: { [name]: value } }), `graph "orders".retry.${name}`)
    }
    refused(node({ effect: 'reconcilable' }), 'node "b".reconcile')
    refused(() => graph({ ...base, timeoutMs: Number.POSITIVE_INFINITY }), 'graph "orders".timeoutMs')
    refused(() => graph({ ...base, input: {} as never }), 'input')
  })

  it('with a graph of its own name inside, at any depth', () => {
    const middle = graph({ ...base, name: 'middle' })
      .node('inner', start())
      .edge(START, 'inner')
    refused(() => start().node('self', start()).edge('a', 'self').plan, 'node "self"', 'own name')
    refused(() => start().node('deep', middle).edge('a', 'deep').plan, 'node "deep"', 'own name')
    expect(middle.plan.nodes.get('inner')?.kind).toBe('graph')
  })

  it('with a subgraph that is not valid itself', () => {
    refused(() => start().node('sub', graph({ ...base, name: 'sub' })), 'edge from START', '"sub"')
  })

  it('with a subgraph whose input is mapped but not its output', () => {
    const sub = graph({ ...base, name: 'sub' })
      .node('x', nothing)
      .edge(START, 'x')
    refused(() => start().node('sub', sub, { input: () => ({}) } as never), 'node "sub"')
  })
})

describe('a subgraph', () => {
  const sub = graph({
    name: 'sub',
    version: '1.0.0',
    state: {
      topic: last<string>(),
      log: append<string>(undefined, { initial: ['sub'] }),
      facts: merge<Record<string, unknown>>(),
      sum: reduced(undefined, (old: number, add: number) => old + add, { initial: 0 }),
      mixed: append<string>(),
      own: last<string>(),
    },
  })
    .node('x', nothing)
    .edge(START, 'x')
  const parent = graph({
    name: 'parent',
    version: '1.0.0',
    state: {
      topic: last<string>(),
      log: append<string>(),
      facts: merge<Record<string, unknown>>(),
      sum: reduced(undefined, (old: number, add: number) => old + add, { initial: 0 }),
      mixed: last<string>(),
      result: last<string>(),
    },
  })

  function planned(node = parent.node('s', sub)) {
    const plan = node.edge(START, 's').plan.nodes.get('s')
    if (plan?.kind !== 'graph') throw new Error('it is no graph')
    return plan
  }

  it('shares the keys that both declare the same way', () => {
    const state = { topic: 't', log: ['a'], facts: { x: 1 }, sum: 4, mixed: 'm', result: 'r' }
    expect(planned().enter(state, undefined)).toStrictEqual({ topic: 't', log: ['a'], facts: { x: 1 } })
    expect(planned().enter({ log: [] }, undefined)).toStrictEqual({ log: [] })
  })

  it('hands back only what it changed, so that it undoes nothing of its siblings and doubles no list', () => {
    const state = { topic: 't', log: ['a'], facts: { x: 1, y: { z: 1 } } }
    const { leave } = planned()
    const entered = { topic: 't', log: ['sub', 'a'], facts: { x: 1, y: { z: 1 } }, sum: 0, own: 'o' }
    expect(leave(entered, state)).toStrictEqual({})
    const changed = { ...entered, topic: 'new', log: ['sub', 'a', 'b'], facts: { x: 1, y: { z: 2 }, n: null } }
    expect(leave(changed, state)).toStrictEqual({ topic: 'new', log: ['b'], facts: { y: { z: 2 }, n: null } })
  })

  it('is entered and left by its own functions where it has them', () => {
    const plan = planned(
      parent.node('s', sub, {
        input: (state, item) => ({ topic: `${state.topic} ${String(item)}` }),
        output: (subState) => ({ result: subState.own }),
      }),
    )
    expect(plan.enter({ topic: 't' }, 1)).toStrictEqual({ topic: 't 1' })
    expect(plan.leave({ own: 'o' }, {})).toStrictEqual({ result: 'o' })
  })

  it('refuses an item that nothing was said about', () => {
    refused(() => planned().enter({}, 'item'), 'node "s"', '"s"')
  })
})

it('refuses options beside a function, where an effect would silently be a read', () => {
  const start = graph({ name: 'g', version: '1.0.0', state: { a: last<number>() } })
  expect(() => start.node('pay', (() => ({ a: 1 })) as never, { effect: 'once' } as never)).toThrow(
    /options after its function/,
  )
})
