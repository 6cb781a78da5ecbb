import { type FlowProgram, flow } from '#src/runtime/program/flow.js'
import { type GraphProgram, graph } from '#src/runtime/program/graph/graph.js'
import { END, START, send } from '#src/runtime/program/graph/graph-declaration.js'
import { append, last, merge, reduced, type StateOf, type UpdateOf } from '#src/runtime/program/state/state-key.js'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'

// What is expected here is checked by `npm run types`: a line that should be an error and is none fails it.
const message = z.object({ role: z.enum(['user', 'assistant']), text: z.string() })
type Message = z.infer<typeof message>

const state = {
  messages: append(message),
  plain: append<number>(),
  lists: append<readonly number[]>(),
  topic: last(z.string()),
  titled: last(z.string(), { initial: 'none' }),
  typed: last<{ a: number }>(),
  counted: last(undefined, { initial: 0 }),
  when: last(z.string().transform((text) => new Date(text))),
  facts: merge<{ a: number; b: string }>(),
  filled: merge(undefined, { initial: { a: 1, b: 'x' } }),
  checked: merge(z.object({ a: z.number() }).partial()),
  sum: reduced(undefined, (old: number, add: number) => old + add, { initial: 0 }),
  seen: reduced(z.string(), (old: readonly string[] | undefined, add) => [...(old ?? []), add]),
}
type State = StateOf<typeof state>
type Update = UpdateOf<typeof state>

const builder = graph({ name: 'typed', version: '1.0.0', state })

describe('the types of a state', () => {
  it('say what code reads, and which keys may have no value yet', () => {
    expectTypeOf<State['messages']>().toEqualTypeOf<readonly Message[]>()
    expectTypeOf<State['plain']>().toEqualTypeOf<readonly number[]>()
    expectTypeOf<State['topic']>().toEqualTypeOf<string | undefined>()
    expectTypeOf<State['titled']>().toEqualTypeOf<string>()
    expectTypeOf<State['typed']>().toEqualTypeOf<{ a: number } | undefined>()
    expectTypeOf<State['counted']>().toEqualTypeOf<number>()
    expectTypeOf<State['when']>().toEqualTypeOf<Date | undefined>()
    expectTypeOf<State['facts']>().toEqualTypeOf<Readonly<Partial<{ a: number; b: string }>> | undefined>()
    expectTypeOf<State['filled']>().toEqualTypeOf<Readonly<{ a: number; b: string }>>()
    expectTypeOf<State['sum']>().toEqualTypeOf<number>()
    expectTypeOf<State['seen']>().toEqualTypeOf<readonly string[] | undefined>()
  })

  it('say what an update may be', () => {
    expectTypeOf<Update['messages']>().toEqualTypeOf<Message | readonly Message[] | undefined>()
    expectTypeOf<Update['lists']>().toEqualTypeOf<readonly (readonly number[])[] | undefined>()
    expectTypeOf<Update['when']>().toEqualTypeOf<string | undefined>()
    expectTypeOf<Update['filled']>().toEqualTypeOf<Readonly<Partial<{ a: number; b: string }>> | undefined>()
    expectTypeOf<Update['seen']>().toEqualTypeOf<string | undefined>()
    expectTypeOf({}).toExtend<Update>()
    // @ts-expect-error: the initial value must fit the schema
    last(z.string(), { initial: 5 })
  })
})

describe('the types of a graph', () => {
  it('give nodes their state, their item and the updates that they may return', () => {
    builder.node('a', (read, ctx) => {
      expectTypeOf(read).toEqualTypeOf<State>()
      expectTypeOf(ctx.input).toEqualTypeOf<unknown>()
      return { messages: { role: 'user', text: 'hi' }, sum: 1 }
    })
    builder.node('a', async () => ({ topic: 'x' }))
    builder.node('a', () => {})
    builder.node('a', async () => {})
    builder.node('a', {
      effect: 'read',
      input: z.object({ id: z.string().transform(Number) }),
      run: async (read, ctx) => {
        expectTypeOf(read.sum).toEqualTypeOf<number>()
        expectTypeOf(ctx.input).toEqualTypeOf<{ id: number }>()
        return { sum: ctx.input.id }
      },
    })
    // @ts-expect-error: a number is no topic
    builder.node('a', () => ({ topic: 5 }))
    // @ts-expect-error: nor in a promise
    builder.node('a', async () => ({ topic: 5 }))
    // @ts-expect-error: no such key
    builder.node('a', () => ({ unknown: 5 }))
    // @ts-expect-error: no such effect
    expect(() => builder.node('a', { effect: 'twice', run: () => {} })).toThrow('twice')
  })

  it('know the names of nodes in edges, branches and pauses', () => {
    const built = builder.node('a', () => {}).node('b', () => {})
    built.edge(START, 'a').edge('a', 'b').edge(['a', 'b'], END).pauseBefore('a').pauseAfter('b')
    // @ts-expect-error: no such node
    built.edge('a', 'c')
    // @ts-expect-error: no such node
    built.edge('c', 'a')
    // @ts-expect-error: no such node
    built.edge(['a', 'c'], 'b')
    // @ts-expect-error: nothing leads to START
    built.edge('a', START)
    // @ts-expect-error: nothing comes after END
    built.edge(END, 'a')
    // @ts-expect-error: no such node
    built.pauseBefore('c')
    built.branch('a', (read) => (read.sum > 1 ? 'b' : END), ['b', END])
    built.branch('a', async (read) => read.plain.map((item) => send('b', item)), ['b', END])
    built.branch(START, () => ['a', send('b', 1)], ['a', 'b'])
    // @ts-expect-error: no such node
    built.branch('a', () => 'c', ['c'])
    // @ts-expect-error: b is not among the targets
    built.branch('a', () => 'b', ['a'])
    // @ts-expect-error: b is not among the targets
    built.branch('a', () => [send('b', 1)], ['a'])
    // @ts-expect-error: no node is declared yet
    builder.edge(START, 'a')
  })

  it('carry the input of the program', () => {
    expectTypeOf(builder).toExtend<GraphProgram<typeof state, Update>>()
    const input = z.object({ id: z.string() }).transform(({ id }) => ({ topic: id }))
    expectTypeOf(graph({ name: 'x', version: '1.0.0', state, input })).toExtend<
      GraphProgram<typeof state, { id: string }>
    >()
  })

  it('join a subgraph to its parent', () => {
    const sub = graph({ name: 'sub', version: '1.0.0', state: { found: append<string>(), query: last<string>() } })
      .node('x', () => {})
      .edge(START, 'x')
    builder.node('sub', sub).edge(START, 'sub')
    builder.node('sub', sub, {
      input: (read, item) => {
        expectTypeOf(read).toEqualTypeOf<State>()
        expectTypeOf(item).toEqualTypeOf<unknown>()
        return { query: read.titled }
      },
      output: (found, read) => {
        expectTypeOf(found.found).toEqualTypeOf<readonly string[]>()
        expectTypeOf(read.sum).toEqualTypeOf<number>()
        return { sum: found.found.length }
      },
    })
    // @ts-expect-error: the subgraph's query is a text
    builder.node('sub', sub, { input: () => ({ query: 5 }), output: () => ({}) })
    // @ts-expect-error: the parent's sum is a number
    builder.node('sub', sub, { output: () => ({ sum: 'x' }) })
    // @ts-expect-error: who maps the input maps the output
    expect(() => builder.node('sub', sub, { input: () => ({}) })).toThrow('output')
  })
})

describe('the types of a flow', () => {
  const options = { name: 'f', version: '1.0.0' }

  it('come from its schemas', () => {
    const input = z.object({ at: z.string().transform((text) => new Date(text)) })
    const both = flow({ ...options, input, output: z.number() }, async (ctx, given) => {
      expectTypeOf(given).toEqualTypeOf<{ at: Date }>()
      expectTypeOf(ctx.input).toEqualTypeOf<{ at: Date }>()
      return given.at.getTime()
    })
    expectTypeOf(both).toEqualTypeOf<FlowProgram<{ at: string }, number>>()
    const one = flow({ ...options, input }, async (ctx) => ctx.input.at)
    expectTypeOf(one).toEqualTypeOf<FlowProgram<{ at: string }, Date>>()
    // @ts-expect-error: a text is no number
    flow({ ...options, output: z.number() }, async () => 'text')
  })

  it('come from its function or its type arguments without schemas', () => {
    const typed = flow<{ id: string }, number>(options, async (ctx, input) => ctx.input.id.length + input.id.length)
    expectTypeOf(typed).toEqualTypeOf<FlowProgram<{ id: string }, number>>()
    const inferred = flow(options, async (_, input: string) => input.length)
    expectTypeOf(inferred).toEqualTypeOf<FlowProgram<string, number>>()
    // @ts-expect-error: a text is no number
    flow<string, number>(options, async () => 'text')
  })
})
