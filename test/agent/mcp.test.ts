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

  it('only read when the server says so, and otherwise happen once', async () => {
    const { client } = await connect()
    const tools = await mcpTools(client, { prefix: 'shop_', tools: { stock: { effect: 'idempotent', version: '3' } } })
    expect(Object.entries(tools).map(([name, { effect }]) => [name, effect])).toEqual([
      ['shop_orders_find', 'read'],
      ['shop_refund', 'once'],
      ['shop_stock', 'idempotent'],
    ])
    expect(tools['shop_stock']?.version).toBe('3')
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
    const tools = await mcpTools(watched, { tools: { stock: { timeout: 300_000 } } })
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
