import type { Value } from '../../codec/value.js'
import { InvalidOptionError, InvalidValueError, isHoldfastError, NotExecutedError } from '../../core/errors.js'
import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import type { Effect } from '../../runtime/step/context.js'
import { refuseSchema, SchemaChecker } from '../../json-schema/schema-checker.js'
import type { ContentItem, ToolOutput } from '../messages/message-part.js'
import type { JsonObject } from '../model/model-types.js'
import { fromBase64, toPlain } from '../messages/plain.js'
import { type Tool, tool, type ToolOptions } from './tool.js'
import { toToolName } from './tool-set.js'

/** The part of a Model Context Protocol client that is used; `Client` from `@modelcontextprotocol/sdk` matches. */
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
  readonly annotations?:
    | { readonly readOnlyHint?: boolean | undefined; readonly idempotentHint?: boolean | undefined }
    | undefined
}

/** What to add to what an MCP server says about its tools. */
export interface McpOptions {
  /** Put before every name, so that the tools of two servers don't collide. */
  readonly prefix?: string
  /**
   * Whether to trust what this server says about its tools: `readOnlyHint` makes one 'read', `idempotentHint`
   * 'idempotent'. Default false: a server that is wrong, or lies, could have payments repeated without anyone being
   * asked.
   */
  readonly trustHints?: boolean
  /** How many tools the server may list. Default 1,000. */
  readonly maxTools?: number
  /** Called with each tool that can't be used, and why; the others are not affected. Default: a process warning. */
  readonly onRefused?: (refused: RefusedTool) => void
  /**
   * What you know better than the server says: effect, approval, timeout, version … by the server's name for the tool.
   */
  readonly tools?: Readonly<Record<string, Partial<Omit<ToolOptions, 'inputSchema' | 'jsonSchema' | 'execute'>>>>
}

/** A tool of a server that can't be used. */
export interface RefusedTool {
  /** As the server names it. */
  readonly name: string
  readonly reason: string
}

const OPTIONS: OptionNames<McpOptions> = {
  prefix: true,
  trustHints: true,
  maxTools: true,
  onRefused: true,
  tools: true,
}

const DEFAULT_MAX_TOOLS = 1000
/** Pages may be empty and yet lead to others. */
const MAX_PAGES = 1000
const MAX_SCHEMA = 256 * 1024

/** The key of a request under which a server finds our idempotency key. */
const KEY = 'holdfast/idempotencyKey'
/** JSON-RPC codes by which a server says that it did nothing: unknown method, or invalid arguments. */
const REFUSED: readonly unknown[] = [-32601, -32602]

/**
 * The tools of an MCP server, for the `tools` of an agent. Their effect is 'once' unless the server is trusted to know
 * better: what a server does when it is called twice is not known here. A tool that can't be used is left out.
 */
export async function mcpTools(client: McpClient, options: McpOptions = {}): Promise<Record<string, Tool>> {
  checkOptionNames('mcpTools()', options, OPTIONS)
  const { prefix = '', onRefused = warn } = options
  const found: Record<string, Tool> = {}
  for (const listed of await listAll(client, options.maxTools ?? DEFAULT_MAX_TOOLS)) {
    const own = String(listed?.name)
    const refuse = (reason: string) => onRefused({ name: own, reason })
    const name = toToolName(`${prefix}${own}`)
    const reason = refuseTool(listed)
    if (reason !== undefined) refuse(reason)
    else if (Object.hasOwn(found, name)) refuse(`another tool has the name "${name}" already`)
    else found[name] = fromMcp(client, listed, options.tools?.[own] ?? {}, options.trustHints === true)
  }
  return found
}

async function listAll(client: McpClient, most: number): Promise<readonly McpTool[]> {
  if (!(Number.isSafeInteger(most) && most >= 1)) {
    throw new InvalidOptionError('maxTools', `is ${String(most)}`, 'Pass a whole number, 1 or more.')
  }
  const all: McpTool[] = []
  const seen = new Set<string>()
  let cursor: string | undefined
  do {
    const page = await client.listTools(cursor === undefined ? {} : { cursor })
    if (!Array.isArray(page?.tools)) throw unlistable('answered without a list of tools')
    for (const listed of page.tools as readonly McpTool[]) all.push(listed)
    if (all.length > most) {
      throw new InvalidOptionError(
        'maxTools',
        `is ${most}, and the server lists more tools`,
        'Raise it if they are real.',
      )
    }
    cursor = page.nextCursor
    if (cursor === undefined) return all
    if (seen.has(cursor)) throw unlistable('names a page again that it named before')
    seen.add(cursor)
  } while (seen.size < MAX_PAGES)
  throw unlistable(`has more than ${MAX_PAGES} pages`)
}

function unlistable(problem: string): InvalidValueError {
  return new InvalidValueError('listTools', `of the MCP server ${problem}`, 'Fix the server, or leave it out.')
}

/** Why a tool can't be used, given what the server says about it; undefined if it can. */
function refuseTool(listed: McpTool | null | undefined): string | undefined {
  if (typeof listed?.name !== 'string' || listed.name === '') return 'it has no name'
  const { inputSchema: schema } = listed
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return 'it has no input schema'
  const { length } = JSON.stringify(schema)
  if (length > MAX_SCHEMA) return `its schema has ${length} characters, and at most ${MAX_SCHEMA} are allowed`
  const { type } = schema as { readonly type?: unknown }
  if (type !== undefined && type !== 'object') return `its schema is of type ${JSON.stringify(type)}, not "object"`
  const refusal = refuseSchema(schema as Value)
  return refusal === undefined ? undefined : `its schema ${refusal}`
}

function warn({ name, reason }: RefusedTool): void {
  process.emitWarning(`The MCP tool ${JSON.stringify(name)} is left out: ${reason}.`, { code: 'HOLDFAST_MCP_TOOL' })
}

function fromMcp(
  client: McpClient,
  listed: McpTool,
  own: NonNullable<McpOptions['tools']>[string],
  isTrusted: boolean,
): Tool {
  const { name, description } = listed
  const schema = listed.inputSchema as JsonObject
  let checker: Promise<SchemaChecker> | undefined
  const validate = (value: unknown) => {
    checker ??= SchemaChecker.of(schema as Value)
    return check(checker, value)
  }
  // Clients give up after a minute unless they are told otherwise.
  const wait = own.timeoutMs === undefined ? {} : { timeout: own.timeoutMs }
  return tool({
    ...(typeof description === 'string' ? { description } : {}),
    effect: isTrusted ? hintedEffect(listed) : 'once',
    toModelOutput: (result) => readResult(result),
    ...own,
    inputSchema: { _type: undefined as unknown, jsonSchema: schema, validate },
    execute: async (input, { abortSignal: signal, idempotencyKey }) => {
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

function hintedEffect({ annotations }: McpTool): Effect {
  if (annotations?.readOnlyHint === true) return 'read'
  return annotations?.idempotentHint === true ? 'idempotent' : 'once'
}

async function check(checker: Promise<SchemaChecker>, value: unknown) {
  try {
    ;(await checker).check(value as Value)
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
