import { graph } from '#src/runtime/program/graph/graph.js'
import { END, START, send } from '#src/runtime/program/graph/graph-declaration.js'
import type { Joins, Task } from '#src/runtime/program/program.js'
import { append, last } from '#src/runtime/program/state/state-key.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const nothing = (): undefined => undefined
const base = { name: 'g', version: '1.0.0', state: { items: append<number>(), way: last<unknown>() } }
const five = graph(base).node('a', nothing).node('b', nothing).node('c', nothing).node('d', nothing).node('e', nothing)
/** For what the types already refuse. */
const any = (value: unknown): never => value as never

async function after(
  built: { readonly plan: typeof five.plan },
  finished: readonly string[],
  state: object = {},
  joins: Joins = {},
): Promise<{ readonly tasks: readonly Task[]; readonly joins: Joins }> {
  return built.plan.next(finished, state as never, joins)
}

describe('edges', () => {
  const built = five
    .edge(START, 'b')
    .edge(START, 'a')
    .edge('a', 'c')
    .edge('a', 'd')
    .edge('b', 'd')
    .edge('c', END)
    .edge('d', 'e')

  it('start every node they lead to, in the order of declaration', async () => {
    expect(await built.plan.start({})).toStrictEqual([{ node: 'b' }, { node: 'a' }])
    expect(await after(built, ['a'])).toStrictEqual({ tasks: [{ node: 'c' }, { node: 'd' }], joins: {} })
  })

  it('start a node once in a super-step, whoever finished first', async () => {
    const expected = { tasks: [{ node: 'c' }, { node: 'd' }], joins: {} }
    expect(await after(built, ['a', 'b'])).toStrictEqual(expected)
    expect(await after(built, ['b', 'a', 'b'])).toStrictEqual(expected)
  })

  it('end the path at END and at a node without any', async () => {
    expect(await after(built, ['c'])).toStrictEqual({ tasks: [], joins: {} })
    expect(await after(built, ['e'])).toStrictEqual({ tasks: [], joins: {} })
    expect(await after(built, [])).toStrictEqual({ tasks: [], joins: {} })
  })
})

describe('branches', () => {
  const choosing = (choose: (state: any) => any) =>
    five.branch(START, choose, ['a', 'b', END]).branch('a', choose, ['c', 'd', 'e', END]).edge('b', 'c')

  it('choose by the state, at START too, and may be async', async () => {
    const built = choosing(async (state) => state.way)
    expect(await built.plan.start({ way: 'b' })).toStrictEqual([{ node: 'b' }])
    expect((await after(built, ['a'], { way: 'd' })).tasks).toStrictEqual([{ node: 'd' }])
    expect((await after(built, ['a'], { way: END })).tasks).toStrictEqual([])
    expect((await after(built, ['a'], { way: ['d', 'c', END, 'd'] })).tasks).toStrictEqual([
      { node: 'd' },
      { node: 'c' },
    ])
  })

  it('start a node once together with edges of others', async () => {
    const built = choosing(() => 'c')
    expect((await after(built, ['a', 'b'])).tasks).toStrictEqual([{ node: 'c' }])
  })

  it('fan out: a node once per item, in order, beside the nodes that edges start', async () => {
    const built = choosing((state) => [...state.items.map((item: number) => send('c', item)), 'd'])
    expect((await after(built, ['a', 'b'], { items: [3, 1, 3] })).tasks).toStrictEqual([
      { node: 'c', input: 3 },
      { node: 'c', input: 1 },
      { node: 'c', input: 3 },
      { node: 'd' },
      { node: 'c' },
    ])
    expect(
      (
        await after(
          choosing(() => send('c', null)),
          ['a'],
        )
      ).tasks,
    ).toStrictEqual([{ node: 'c', input: null }])
  })

  it('are asked once when their node ran many times in a super-step', async () => {
    let asked = 0
    const built = choosing(() => ((asked += 1), 'd'))
    await after(built, ['a', 'a', 'a'])
    expect(asked).toBe(1)
  })

  it('check the items by the schema of the node that they are sent to', async () => {
    const built = graph(base)
      .node('a', nothing)
      .node('work', { input: z.object({ id: z.coerce.number() }), run: nothing })
      .edge(START, 'a')
      .branch('a', (state) => state.items.map((id) => send('work', { id: `${id}` })), ['work', END])
    expect((await after(built, ['a'], { items: [7] })).tasks).toStrictEqual([{ node: 'work', input: { id: 7 } }])
    await expect(after(built, ['a'], { items: ['x'] })).rejects.toMatchObject({
      code: 'invalid-value',
      data: { path: 'input of "work".id' },
    })
  })

  const wrong: readonly (readonly [string, unknown, string])[] = [
    ['an unknown node', 'nowhere', 'nowhere'],
    ['a node that is not declared as a target', 'b', 'b'],
    ['a list with one that is not declared', ['c', 'b'], 'b'],
    ['a send to an undeclared target', send('b', 1), 'b'],
    ['a send to END', send(END, 1), END],
    ['nothing', undefined, 'undefined'],
    ['null', null, 'object'],
    ['a number', 5, 'number'],
  ]
  it.each(wrong)('that choose %s are refused, naming the node and the target', async (_, choice, target) => {
    await expect(
      after(
        choosing(() => choice),
        ['a'],
      ),
    ).rejects.toMatchObject({
      code: 'invalid-program',
      data: { target, ...(target === END ? {} : { node: 'a' }) },
    })
  })

  it('that choose an empty list end the path only where END is declared', async () => {
    expect(
      (
        await after(
          choosing(() => []),
          ['a'],
        )
      ).tasks,
    ).toStrictEqual([])
    const built = graph(base)
      .node('a', nothing)
      .node('b', nothing)
      .edge(START, 'a')
      .branch('a', () => [], ['b'])
    await expect(after(built, ['a'])).rejects.toMatchObject({
      code: 'invalid-program',
      data: { node: 'a', target: END },
    })
  })

  it('that throw fail with what they threw', async () => {
    const failure = new Error('no way')
    const built = choosing(() => {
      throw failure
    })
    await expect(after(built, ['a'])).rejects.toBe(failure)
  })
})

describe('joins', () => {
  const built = five.edge(START, 'a').edge(START, 'b').edge(START, 'c').edge(['a', 'b', 'c'], 'd').edge('d', 'e')

  it('start their node when all have finished, over any number of super-steps', async () => {
    const first = await after(built, ['b'])
    expect(first).toStrictEqual({ tasks: [], joins: { 'a/b/c:d': ['b'] } })
    const second = await after(built, ['a', 'b'], {}, first.joins)
    expect(second).toStrictEqual({ tasks: [], joins: { 'a/b/c:d': ['a', 'b'] } })
    expect(await after(built, ['c'], {}, second.joins)).toStrictEqual({ tasks: [{ node: 'd' }], joins: {} })
    expect(await after(built, ['a', 'b', 'c'])).toStrictEqual({ tasks: [{ node: 'd' }], joins: {} })
  })

  it('wait anew after they started their node', async () => {
    const done = await after(built, ['a', 'b', 'c'])
    expect(await after(built, ['a'], {}, done.joins)).toStrictEqual({ tasks: [], joins: { 'a/b/c:d': ['a'] } })
  })

  it('keep what they wait for while other nodes go on', async () => {
    const { joins } = await after(built, ['a'])
    expect((await after(built, ['e'], {}, joins)).joins).toStrictEqual(joins)
  })

  it('start a node once that an edge starts too', async () => {
    const both = five
      .edge(START, 'a')
      .edge(START, 'b')
      .edge('a', 'c')
      .edge(['b', 'a'], 'c')
      .edge('c', 'd')
      .edge('c', 'e')
    expect(await after(both, ['a', 'b'])).toStrictEqual({ tasks: [{ node: 'c' }], joins: {} })
  })

  it('go on under new names of their nodes', async () => {
    const renamed = graph({ ...base, aliases: { a: 'alpha', d: 'delta' } })
      .node('alpha', nothing)
      .node('b', nothing)
      .node('delta', nothing)
      .edge(START, 'alpha')
      .edge(START, 'b')
      .edge(['b', 'alpha'], 'delta')
    const expected = { tasks: [{ node: 'delta' }], joins: {} }
    expect(await after(renamed, ['b'], {}, { 'a/b:d': ['a'] })).toStrictEqual(expected)
    expect(await after(renamed, ['a', 'b'])).toStrictEqual(expected)
    expect((await after(renamed, ['a'])).joins).toStrictEqual({ 'alpha/b:delta': ['alpha'] })
  })
})

describe('records that do not fit the graph', () => {
  const built = five.edge(START, 'a').edge(START, 'b').edge('a', 'c').edge('b', 'd').edge(['c', 'd'], 'e')

  it.each<[string, readonly string[], Joins, string]>([
    ['a node that is gone', ['a', 'gone'], {}, 'unknown-node'],
    ['a join of a node that is gone', ['a'], { 'c/gone:e': ['c'] }, 'unknown-node'],
    ['a join that is gone', ['a'], { 'a/c:e': ['a'] }, 'unknown-join'],
    ['an inherited name', ['constructor'], {}, 'unknown-node'],
  ])('are reported: %s', async (_, finished, joins, reason) => {
    await expect(after(built, finished, {}, joins)).rejects.toMatchObject({
      code: 'incompatible',
      data: { reason, canResume: false },
    })
  })

  it('are not mistaken for choices of a branch', async () => {
    const branching = five.branch(START, () => any('gone'), ['a', 'b', 'c', 'd', 'e'])
    await expect(branching.plan.start({})).rejects.toMatchObject({ code: 'invalid-program', data: { node: START } })
  })
})
