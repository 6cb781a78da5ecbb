import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { mcpTools } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { calls, lines, setUp } from './agent-setup.js'

const { talk } = setUp()
const open: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

/** The real server and client of the SDK, joined in memory. */
async function connect() {
  const ran: unknown[] = []
  const server = new McpServer({ name: 'shop', version: '1.0.0' })
  const orderId = { orderId: z.string() }
  server.registerTool(
    'orders.find',
    { description: 'Finds an order', inputSchema: orderId, annotations: { readOnlyHint: true } },
    ({ orderId }) => ({ content: [{ type: 'text', text: `${orderId} was sent` }] }),
  )
  server.registerTool('refund', { inputSchema: orderId }, ({ orderId }, { _meta }) => {
    ran.push([orderId, typeof _meta?.['holdfast/idempotencyKey']])
    if (orderId === 'B') return { content: [{ type: 'text', text: 'It was refunded before.' }], isError: true }
    return { content: [{ type: 'text', text: 'ok' }] }
  })
  server.registerTool(
    'stock',
    { inputSchema: {}, outputSchema: { left: z.number() }, annotations: { readOnlyHint: true } },
    () => ({ content: [], structuredContent: { left: 3 } }),
  )
  const client = new Client({ name: 'test', version: '1.0.0' })
  const [a, b] = InMemoryTransport.createLinkedPair()
  await Promise.all([server.connect(a), client.connect(b)])
  open.push(client, server)
  return { client, ran, server }
}

describe('tools of an MCP server', () => {
  it('are used like others: text, structured results and reported errors', async () => {
    const { client, ran } = await connect()
    const { thread, server } = await talk(
      [
        calls(['orders_find', { orderId: 'A' }], ['stock'], ['refund', { orderId: 'A' }], ['refund', { orderId: 'B' }]),
        calls(['refund', { orderId: 7 }]),
        'Done.',
      ],
      { tools: await mcpTools(client) },
    )
    const outcome = await thread.run({ input: 'Go' })
    expect(outcome).toMatchObject({ status: 'completed', output: 'Done.' })
    const said = lines(outcome.state.messages)
    expect(said.slice(5, 9)).toEqual([
      'text orders_find A was sent',
      'json stock {"left":3}',
      'text refund ok',
      'error refund It was refunded before.',
    ])
    expect(said[10]).toMatch(/^error refund The arguments of refund do not fit/)
    expect(ran.sort()).toEqual([
      ['A', 'string'],
      ['B', 'string'],
    ])
    expect(server.requests[0]?.tools).toMatchObject([
      { function: { name: 'orders_find', description: 'Finds an order', parameters: { required: ['orderId'] } } },
      { function: { name: 'refund' } },
      { function: { name: 'stock' } },
    ])
  })

  it('happen once, unless the application says otherwise or trusts the server’s hints', async () => {
    const { client, server } = await connect()
    server.registerTool('label', { inputSchema: {}, annotations: { idempotentHint: true } }, () => ({ content: [] }))
    const effects = (tools: Awaited<ReturnType<typeof mcpTools>>) =>
      Object.fromEntries(Object.entries(tools).map(([name, { effect }]) => [name, effect]))
    const own = { stock: { effect: 'idempotent', version: '3' } } as const
    const plain = await mcpTools(client, { prefix: 'shop_', tools: own })
    expect(effects(plain)).toEqual({
      shop_orders_find: 'once',
      shop_refund: 'once',
      shop_stock: 'idempotent',
      shop_label: 'once',
    })
    expect(plain['shop_stock']?.version).toBe('3')
    expect(effects(await mcpTools(client, { trustHints: true, tools: { orders_find: {}, ...own } }))).toEqual({
      orders_find: 'read',
      refund: 'once',
      stock: 'idempotent',
      label: 'idempotent',
    })
  })

  it('may take as long as they are given, not only as long as the client waits by itself', async () => {
    const { client } = await connect()
    const waits: unknown[] = []
    const watched = {
      listTools: (params?: { cursor?: string }) => client.listTools(params),
      callTool: (params: never, schema: undefined, options: { timeout?: number }) => {
        waits.push(options.timeout)
        return client.callTool(params, schema, options)
      },
    }
    const tools = await mcpTools(watched, { tools: { stock: { timeoutMs: 300_000 } } })
    const { thread } = await talk([calls(['stock'], ['orders_find', { orderId: 'A' }]), 'Done.'], { tools })
    expect(await thread.run({ input: 'Go' })).toMatchObject({ status: 'completed' })
    expect(waits.sort()).toEqual([300_000, undefined])
  })

  it('ask a person when the connection breaks in the middle of a call', async () => {
    const { client, server } = await connect()
    server.registerTool('slow', { inputSchema: {} }, async () => {
      await server.close()
      return new Promise<never>(() => {})
    })
    const { thread } = await talk([calls(['slow']), 'Done.'], { tools: await mcpTools(client) })
    const outcome = await thread.run({ input: 'Go' })
    expect(outcome).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
  })
})

describe('a server that lists what can not be', () => {
  const good = { name: 'good', inputSchema: { type: 'object', properties: { id: { type: 'string' } } } }
  const listing = (pages: (cursor: string | undefined) => unknown) => ({
    listTools: async ({ cursor }: { cursor?: string } = {}) => pages(cursor) as never,
    callTool: async () => ({ content: [{ type: 'text', text: 'ok' }] }),
  })

  it.each([
    ['a schema that refers to itself', { $ref: '#' }, /circle/],
    ['a schema from elsewhere', { properties: { a: { $ref: 'http://127.0.0.1/x' } } }, /which is not part of it/],
    ['a pattern that is none', { properties: { a: { pattern: '(' } } }, /is not a regular expression/],
    ['a schema that is none', null, /no input schema/],
    ['a schema of another type', { type: 'string' }, /of type "string"/],
    ['a schema without end', { description: 'x'.repeat(300_000) }, /at most 262144/],
  ])('costs only the tool with %s', async (_, inputSchema, reason) => {
    const refused: unknown[] = []
    const client = listing(() => ({ tools: [{ name: 'bad', inputSchema }, good, { name: 'good', inputSchema: {} }] }))
    const tools = await mcpTools(client, { onRefused: (one) => refused.push(one) })
    expect(refused).toEqual([
      { name: 'bad', reason: expect.stringMatching(reason) },
      { name: 'good', reason: 'another tool has the name "good" already' },
    ])
    const { thread } = await talk([calls(['good', { id: 'a' }]), 'Done.'], { tools })
    expect(lines((await thread.run({ input: 'Go' })).state.messages)).toContain('text good ok')
  })

  it('is told of where nobody listens', async () => {
    const warned = new Promise((resolve) => process.once('warning', resolve))
    expect(await mcpTools(listing(() => ({ tools: [{ name: 'bad', inputSchema: { $ref: '#' } }] })))).toEqual({})
    expect(await warned).toMatchObject({ code: 'HOLDFAST_MCP_TOOL', message: expect.stringContaining('"bad"') })
  })

  it.each([
    ['the same page again', () => ({ tools: [], nextCursor: 'again' }), /names a page again/],
    ['pages without end', (at = '0') => ({ tools: [], nextCursor: `${Number(at) + 1}` }), /more than 1000 pages/],
    [
      'tools without end',
      (at = '0') => ({ tools: [{ ...good, name: `t${at}` }], nextCursor: `${Number(at) + 1}` }),
      /maxTools is 50/,
    ],
    ['no list', () => ({}), /without a list/],
  ])('is refused by name for %s', async (_, pages, message) => {
    await expect(mcpTools(listing(pages), { maxTools: 50 })).rejects.toThrow(message)
  })

  it('can not hold the process with a pattern, or with references that multiply', async () => {
    const $defs: Record<string, unknown> = { d0: { type: 'string' } }
    for (let i = 1; i <= 40; i++)
      $defs[`d${i}`] = { allOf: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }] }
    const evil = {
      name: 'evil',
      inputSchema: { type: 'object', properties: { a: { pattern: '^(a+)+$' }, b: { $ref: '#/$defs/d40' } }, $defs },
    }
    const tools = await mcpTools(listing(() => ({ tools: [evil, good] })))
    const { thread } = await talk(
      [calls(['evil', { a: `${'a'.repeat(40)}!` }], ['evil', { b: 'b' }], ['good', { id: 'a' }]), 'Done.'],
      { tools },
    )
    const said = lines((await thread.run({ input: 'Go' })).state.messages)
    expect(said).toContain('text good ok')
    expect(said.filter((line) => line.startsWith('error'))).toMatchObject([
      expect.stringContaining('must fit the pattern'),
      expect.stringContaining('takes more than 500000 steps'),
    ])
  })
})
