import { flow, graph, openHoldfast, START } from 'holdfast'
import { expect, it } from 'vitest'

const schema = {
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    // Takes its time, as a schema that asks somebody does.
    validate: async (value: unknown) => {
      for (let i = 0; i < 50; i++) await Promise.resolve()
      return value === 'bad' ? { issues: [{ message: 'is bad' }] } : { value }
    },
  },
}

const programs = {
  'a step of a flow': (value: string) =>
    flow({ name: 'p', version: '1.0.0' }, (ctx) =>
      ctx.step('write', (step) => {
        void step.store.scope({ user: 'u' }).collection('notes', { schema }).put('last', value)
        return 'done'
      }),
    ),
  'an effect of a flow': (value: string) =>
    flow({ name: 'p', version: '1.0.0' }, (ctx) =>
      ctx.step('write', { effect: 'idempotent', retry: { attempts: 1 } }, async (step) => {
        void step.store.scope({ user: 'u' }).collection('notes', { schema }).put('last', value)
        return 'done'
      }),
    ),
  'a step that returns a query, which begins when it is waited for': (value: string) =>
    flow({ name: 'p', version: '1.0.0' }, (ctx) =>
      ctx.step('write', (step) => {
        const begin = (resolve: (result: string) => void) => {
          void step.store.scope({ user: 'u' }).collection('notes', { schema }).put('last', value)
          resolve('done')
        }
        // oxlint-disable-next-line unicorn/no-thenable -- as query builders have it.
        const query = { then: begin }
        return query as unknown as Promise<string>
      }),
    ),
  'a flow': (value: string) =>
    flow({ name: 'p', version: '1.0.0' }, async (ctx) => {
      void ctx.store.scope({ user: 'u' }).collection('notes', { schema }).put('last', value)
      return 'done'
    }),
  'a node': (value: string) =>
    graph({ name: 'p', version: '1.0.0', state: {} })
      .node('write', (_, ctx) => {
        void ctx.store.scope({ user: 'u' }).collection('notes', { schema }).put('last', value)
        return {}
      })
      .edge(START, 'write'),
}

it.each(Object.entries(programs))(
  'writes of %s belong to it though its code does not wait for them',
  async (_, make) => {
    await using hf = await openHoldfast('memory:')
    expect(await hf.thread(make('good') as never, 't').run({ input: {} })).toMatchObject({ status: 'completed' })
    const item = await hf.store.scope({ user: 'u' }).collection('notes').get('last')
    expect(item?.value).toBe('good')
  },
)

it.each(Object.entries(programs))('%s fails if one of them can not be made', async (_, make) => {
  await using hf = await openHoldfast('memory:')
  const outcome = await hf.thread(make('bad') as never, 't').run({ input: {} })
  expect(outcome).toMatchObject({ status: 'failed' })
  // An effect that throws may have happened, and that is what its failure says.
  expect(JSON.stringify(outcome)).toMatch(/is bad|effect-unknown/)
})
