import { ToolSet, toToolOutput } from '#src/agent/tools/tool-set.js'
import { dynamicTool, jsonSchema, tool as aiTool } from 'ai'
import { tool, type ToolContext, type ToolOptions } from 'holdfast'
import { makeMessage } from 'holdfast/messages'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'

const orderSchema = z.object({ orderId: z.string(), express: z.boolean().default(false) })
const context = {
  callId: 'c',
  toolCallId: 'c',
  idempotencyKey: 'k',
  attempt: 1,
  abortSignal: new AbortController().signal,
  messages: [],
  context: undefined,
  state: {},
  update: () => {},
  emit: () => {},
  experimental_context: undefined,
} as unknown as ToolContext
const call = (name: string, input: unknown) => ({
  type: 'tool-call' as const,
  callId: 'c',
  name,
  input: input as never,
})

/** A schema of a library that knows nothing of JSON Schema. */
const bareSchema = {
  '~standard': {
    version: 1 as const,
    vendor: 'bare',
    validate: (value: unknown) =>
      typeof (value as { n?: unknown })?.n === 'number'
        ? { value: value as { n: number } }
        : { issues: [{ message: 'must be a number', path: ['lines', 2, { key: 'n' }] }] },
  },
}

describe('a tool', () => {
  it('is typed by its schema, and is once unless it says otherwise', () => {
    const getOrder = tool({
      description: 'Finds an order',
      inputSchema: orderSchema,
      execute: (input) => {
        expectTypeOf(input).toEqualTypeOf<{ orderId: string; express: boolean }>()
        return input.orderId.length
      },
      idempotencyKey: (input) => input.orderId,
    })
    expect(getOrder.effect).toBe('once')
    expect(tool({ inputSchema: orderSchema, effect: 'read' }).effect).toBe('read')
    tool({
      inputSchema: jsonSchema<{ a: number }>({ type: 'object' }),
      execute: (input) => expectTypeOf(input).toEqualTypeOf<{ a: number }>(),
    })
    tool({
      inputSchema: bareSchema,
      jsonSchema: { type: 'object' },
      execute: (input) => expectTypeOf(input).toBeUnknown(),
    })
  })

  const bad: readonly (readonly [field: string, options: unknown])[] = [
    ['tool', undefined],
    ['tool.inputSchema', {}],
    ['tool.inputSchema', { inputSchema: { type: 'object' } }],
    ['tool.inputSchema', { inputSchema: bareSchema }],
    ['tool.jsonSchema', { inputSchema: bareSchema, jsonSchema: 'object' }],
    ['tool.execute', { inputSchema: orderSchema, execute: 'run' }],
    ['tool.effect', { inputSchema: orderSchema, effect: 'twice' }],
    ['tool.effect', { inputSchema: orderSchema, effect: 'reconcilable' }],
    ['tool.effect', { inputSchema: orderSchema, effect: 'once', reconcile: () => ({ outcome: 'unknown' }) }],
    ['tool.timeoutMs', { inputSchema: orderSchema, timeoutMs: 0 }],
    ['tool.retry.attempts', { inputSchema: orderSchema, retry: { attempts: 0 } }],
    ['tool.version', { inputSchema: orderSchema, version: 2 }],
    ['tool.needsApproval', { inputSchema: orderSchema, needsApproval: 'yes' }],
  ]
  it.each(bad)('is refused at its definition for %s', (field, options) => {
    const refusal = expect.objectContaining({ code: 'invalid-option', data: expect.objectContaining({ field }) })
    expect(() => tool(options as ToolOptions)).toThrow(refusal)
  })

  it('without a JSON Schema says what to pass', () => {
    expect(() => tool({ inputSchema: bareSchema })).toThrow(
      /\(bare\) offers no JSON Schema.* jsonSchema next to inputSchema/,
    )
  })
})

describe('a set of tools', () => {
  it('takes tools of ours and of the AI SDK side by side', async () => {
    const set = new ToolSet({
      ours: tool({ inputSchema: orderSchema, effect: 'read', version: '2', execute: () => 1 }),
      theirs: aiTool({
        description: 'd',
        inputSchema: orderSchema,
        needsApproval: true,
        execute: async ({ orderId }) => orderId,
      }),
      declared: { ...aiTool({ inputSchema: orderSchema, execute: () => 'x' }), effect: 'idempotent' },
      dynamic: dynamicTool({
        inputSchema: jsonSchema({ type: 'object', properties: { a: { type: 'number' } } }),
        execute: async () => 1,
      }),
      search: { type: 'provider', id: 'openai.web_search', args: { limit: 3 }, inputSchema: undefined } as never,
    })
    expect(set.names).toEqual(['ours', 'theirs', 'declared', 'dynamic', 'search'])
    expect(set.versions()).toEqual({ ours: '2' })
    expect(set.get('theirs')).toMatchObject({ effect: 'once', needsApproval: true })
    expect(set.get('declared')?.effect).toBe('idempotent')
    expect(await set.get('theirs')?.execute?.({ orderId: 'a' } as never, context)).toBe('a')
    const shown = await set.describe()
    expect(shown[1]).toEqual({
      type: 'function',
      name: 'theirs',
      description: 'd',
      inputSchema: {
        type: 'object',
        properties: { orderId: { type: 'string' }, express: { type: 'boolean', default: false } },
        required: ['orderId'],
      },
    })
    expect(shown[3]).toMatchObject({ inputSchema: { properties: { a: { type: 'number' } } } })
    expect(shown[4]).toEqual({ type: 'provider', id: 'openai.web_search', name: 'search', args: { limit: 3 } })
    expect(await set.describe()).toBe(shown)
  })

  it('shows the last result of one that yields, as its own toModelOutput says', async () => {
    const set = new ToolSet({
      slow: aiTool({
        inputSchema: orderSchema,
        execute: async function* () {
          yield 'looking'
          yield 'found'
        },
        toModelOutput: ({ output, toolCallId }) => ({ type: 'text', value: `${toolCallId}: ${String(output)}` }),
      }),
      plain: tool({ inputSchema: orderSchema, execute: () => 1 }),
    })
    const slow = set.get('slow')
    if (slow === undefined) return expect.unreachable('it is there')
    const result = await slow.execute?.({} as never, context)
    expect(result).toBe('found')
    expect(await toToolOutput(slow, result, { callId: 'c7', input: {} })).toEqual({ type: 'text', value: 'c7: found' })
    const plain = set.get('plain')
    if (plain === undefined) return expect.unreachable('it is there')
    const shown = (value: unknown) => toToolOutput(plain, value, { callId: 'c', input: {} })
    expect(await shown('a')).toEqual({ type: 'text', value: 'a' })
    expect(await shown({ a: 1 })).toEqual({ type: 'json', value: { a: 1 } })
    expect(await shown(undefined)).toEqual({ type: 'json', value: null })
  })

  it('shows tools of the AI SDK the conversation in their own shape', async () => {
    const seen: unknown[] = []
    const set = new ToolSet({
      theirs: aiTool({
        inputSchema: orderSchema,
        needsApproval: (_input, { messages }) => seen.push(messages) > 0,
        execute: (_input, { messages, toolCallId, abortSignal }) => seen.push(messages, toolCallId, abortSignal),
      }),
      ours: tool({ inputSchema: orderSchema, execute: (_input, { messages }) => seen.push(messages) }),
    })
    const messages = [makeMessage('user', 'Hi')]
    const given = { ...context, messages }
    const { needsApproval } = set.get('theirs') ?? {}
    if (typeof needsApproval !== 'function') return expect.unreachable('it is a function')
    expect(await needsApproval({}, given)).toBe(true)
    await set.get('theirs')?.execute?.({}, given)
    await set.get('ours')?.execute?.({}, given)
    const shown = [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }]
    expect(seen).toEqual([shown, shown, 'c', context.abortSignal, messages])
  })

  it.each(['', 'a b', 'x'.repeat(65), 'né'])('refuses the name %o', (name) => {
    expect(() => new ToolSet({ [name]: tool({ inputSchema: orderSchema }) })).toThrow(/name that providers refuse/)
  })

  it('refuses what is no tool, with its name', () => {
    expect(() => new ToolSet({ broken: { inputSchema: 5 } })).toThrow(
      expect.objectContaining({ data: expect.objectContaining({ field: 'tools.broken.inputSchema' }) }),
    )
  })

  it('makes JSON Schemas of Zod schemas that have none of their own, and takes an explicit one', async () => {
    const { jsonSchema: _offered, ...standard } = orderSchema['~standard'] as unknown as Record<string, unknown>
    // As in Zod before 4.2. The prototype keeps what Zod's own function needs.
    const older = Object.create(orderSchema, { '~standard': { value: standard } }) as typeof orderSchema
    const explicit = { type: 'object', properties: { n: { type: 'number' } } } as const
    const set = new ToolSet({
      older: tool({ inputSchema: older }),
      bare: tool({ inputSchema: bareSchema, jsonSchema: explicit }),
    })
    const [first, second] = await set.describe()
    expect(first).toMatchObject({ inputSchema: { type: 'object', required: ['orderId'] } })
    expect(first).not.toHaveProperty('inputSchema.$schema')
    expect(second).toMatchObject({ inputSchema: explicit })
  })

  it('refuses a schema that is no object, or that JSON Schema has no words for', async () => {
    const wrong = new ToolSet({ list: tool({ inputSchema: z.array(z.string()) }) })
    await expect(wrong.describe()).rejects.toThrow(/tools.list.inputSchema describes "array"/)
    const odd = new ToolSet({ odd: tool({ inputSchema: z.object({ f: z.instanceof(Map) }) }) })
    await expect(odd.describe()).rejects.toMatchObject({ code: 'invalid-option' })
  })
})

describe('the arguments of a call', () => {
  const set = new ToolSet({
    getOrder: tool({ inputSchema: orderSchema }),
    bare: tool({ inputSchema: bareSchema, jsonSchema: { type: 'object' } }),
    unchecked: tool({ inputSchema: jsonSchema({ type: 'object' }) }),
    checked: tool({
      inputSchema: jsonSchema<{ a: number }>(
        { type: 'object' },
        {
          validate: (value) =>
            (value as { a?: unknown }).a === 1
              ? { success: true, value: { a: 1 } }
              : { success: false, error: new Error('a must be 1') },
        },
      ),
    }),
  })

  it('are what the schema makes of them', async () => {
    expect(await set.readInput(call('getOrder', { orderId: 'a', more: 1 }))).toEqual({
      input: { orderId: 'a', express: false },
    })
    expect(await set.readInput(call('bare', { n: 1 }))).toEqual({ input: { n: 1 } })
    expect(await set.readInput(call('unchecked', { x: [] }))).toEqual({ input: { x: [] } })
    expect(await set.readInput(call('checked', { a: 1 }))).toEqual({ input: { a: 1 } })
  })

  it('that do not fit are answered in words the model can act on', async () => {
    const answer = await set.readInput(call('getOrder', { orderId: 5 }))
    expect(answer).toMatchObject({
      error: expect.stringMatching(/getOrder do not fit, so nothing was done:\n- orderId: .*string.*\nCorrect/),
    })
    expect(await set.readInput(call('bare', {}))).toMatchObject({
      error: expect.stringContaining('- lines[2].n: must be a number'),
    })
    expect(await set.readInput(call('checked', {}))).toMatchObject({ error: expect.stringContaining('- a must be 1') })
  })

  it('that are no JSON are quoted', async () => {
    const answer = await set.readInput({ ...call('getOrder', {}), invalid: true, raw: '{"orderId": "A' })
    expect(answer).toMatchObject({ error: expect.stringMatching(/not a JSON object.*\{"orderId": "A/) })
  })

  it('of a tool that is not there name those that are', async () => {
    expect(await set.readInput(call('getOrders', {}))).toEqual({
      error: 'There is no tool named "getOrders". The tools are: getOrder, bare, unchecked, checked.',
    })
    expect(await new ToolSet({}).readInput(call('x', {}))).toMatchObject({
      error: expect.stringContaining('There are no tools'),
    })
  })

  it('are described by a few problems, however many there are', async () => {
    const wide = z.object(Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`f${i}`, z.string()])))
    const answer = await new ToolSet({ wide: tool({ inputSchema: wide }) }).readInput(call('wide', {}))
    expect((answer as { error: string }).error.split('\n')).toHaveLength(13)
    expect((answer as { error: string }).error).toContain('and 40 more')
  })
})
