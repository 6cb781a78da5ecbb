import type { Value } from '../codec/value.js'
import { InvalidOptionError, isHoldfastError, NotExecutedError } from '../core/errors.js'
import { checkAgainst } from '../runtime/json-schema.js'
import type { ContentItem, ToolOutput } from './message-part.js'
import type { JsonObject } from './model-types.js'
import { fromBase64, toPlain } from './plain.js'
import { type Tool, tool, type ToolOptions } from './tool.js'
import { toToolName } from './tool-set.js'

/** The slice of a client of the Model Context Protocol that is used; `Client` of `@modelcontextprotocol/sdk` fits. */
export interface McpClient {
  listTools(params?: { readonly cursor?: string }): Promise<{
    readonly tools: readonly McpTool[]
    readonly nextCursor?: string | undefined
  }>
  callTool(
    params: { readonly name: string; readonly arguments?: never; readonly _meta?: never },
    schema?: undefined,
    options?: { readonly signal?: AbortSignal; readonly timeout?: number },
  ): Promise<unknown>
}

interface McpTool {
  readonly name: string
  readonly description?: string | undefined
  readonly inputSchema: unknown
  readonly annotations?: { readonly readOnlyHint?: boolean | undefined } | undefined
}

/** What to add to what an MCP server says of its tools. */
export interface McpOptions {
  /** Put before every name, so that tools of two servers don't meet. */
  readonly prefix?: string
  /** What is known better here than the server says: effect, approval, timeout, version … by the server's name. */
  readonly tools?: Readonly<Record<string, Partial<Omit<ToolOptions, 'inputSchema' | 'jsonSchema' | 'execute'>>>>
}

/** The key of a request under which a server finds our idempotency key. */
const KEY = 'holdfast/idempotencyKey'
/** Codes of JSON-RPC by which a server says that it did nothing: no such method, and arguments that don't fit. */
const REFUSED: readonly unknown[] = [-32601, -32602]

/**
 * The tools of an MCP server, for the `tools` of an agent. Their effect is 'once' unless the server says that one only
 * reads: what a server does when it is called twice is not known here.
 */
export async function mcpTools(client: McpClient, options: McpOptions = {}): Promise<Record<string, Tool>> {
  const found: Record<string, Tool> = {}
  let cursor: string | undefined
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor })
    for (const listed of page.tools) {
      const name = toToolName(`${options.prefix ?? ''}${listed.name}`)
      if (Object.hasOwn(found, name)) {
        throw new InvalidOptionError('prefix', `leaves two tools with the name "${name}"`, 'Rename one at its server.')
      }
      found[name] = fromMcp(client, listed, options.tools?.[listed.name] ?? {})
    }
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return found
}

function fromMcp(client: McpClient, listed: McpTool, own: NonNullable<McpOptions['tools']>[string]): Tool {
  const { name, description, annotations } = listed
  const schema = listed.inputSchema as JsonObject
  // Clients give up after a minute unless they are told otherwise.
  const wait = own.timeout === undefined ? {} : { timeout: own.timeout }
  return tool({
    ...(description === undefined ? {} : { description }),
    effect: annotations?.readOnlyHint === true ? 'read' : 'once',
    toModelOutput: (result) => readResult(result),
    ...own,
    inputSchema: { _type: undefined as unknown, jsonSchema: schema, validate: (value) => check(schema, value) },
    execute: async (input, { signal, idempotencyKey }) => {
      const params = { name, arguments: input as never, _meta: { [KEY]: idempotencyKey } as never }
      try {
        return toPlain(await client.callTool(params, undefined, { signal, ...wait })) ?? null
      } catch (error) {
        const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown }
        if (!REFUSED.includes(code)) throw error
        throw new NotExecutedError(`The server refused the call of ${name}: ${String(message)}`, { cause: error })
      }
    },
  })
}

async function check(schema: JsonObject, value: unknown) {
  try {
    await checkAgainst(schema as Value, value as Value)
    return { success: true, value } as const
  } catch (error) {
    if (!isHoldfastError(error, 'invalid-value')) throw error
    return { success: false, error: new Error(error.message) } as const
  }
}

interface McpResult {
  readonly content?: readonly Readonly<Record<string, unknown>>[]
  readonly structuredContent?: Value
  readonly isError?: boolean
}

/** What the model is shown: structured content as it is, text as text, the rest as files. */
function readResult(result: unknown): ToolOutput {
  const { content = [], structuredContent, isError } = (result ?? {}) as McpResult
  const text = content.flatMap((item) => (item['type'] === 'text' ? [String(item['text'])] : [])).join('\n')
  if (isError) return { type: 'error', value: text === '' ? 'The tool reported an error.' : text }
  if (structuredContent !== undefined) return { type: 'json', value: structuredContent }
  if (content.every(({ type }) => type === 'text')) return { type: 'text', value: text }
  return { type: 'content', value: content.map(readItem) }
}

function readItem(item: Readonly<Record<string, unknown>>): ContentItem {
  const mediaType = typeof item['mimeType'] === 'string' ? item['mimeType'] : 'application/octet-stream'
  if ((item['type'] === 'image' || item['type'] === 'audio') && typeof item['data'] === 'string') {
    const data = { kind: 'bytes', bytes: fromBase64(item['data']) } as const
    return { type: 'file', data, mediaType, ...(item['type'] === 'image' ? { image: true } : {}) }
  }
  if (item['type'] === 'text') return { type: 'text', text: String(item['text']) }
  return { type: 'text', text: JSON.stringify(item) }
}
