type Bag = Record<string, unknown>

/** Deeper than any state that people keep; what is below is left out. */
const MAX_DEPTH = 200
/** The parts of a config that are for clients: others are handlers, signals and so on. */
const OF_CONFIGS: ReadonlySet<string> = new Set(['configurable', 'metadata', 'tags', 'recursion_limit'])

/**
 * A graph's values as JSON for clients: messages as LangChain writes them, without LangGraph's own machinery, which
 * configs carry along.
 */
export function toPlain(value: unknown): unknown {
  return plain(value, [])
}

function plain(value: unknown, above: readonly object[]): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value === 'function' || typeof value === 'symbol') return undefined
  if (typeof value !== 'object' || value === null) return value
  if (above.length >= MAX_DEPTH || above.includes(value)) return undefined
  const inside = [...above, value]
  if (isMessage(value)) return plainMessage(value, inside)
  if (value instanceof Date) return value.toISOString()
  if (value instanceof Error) return { name: value.name, message: value.message }
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64')
  if (Array.isArray(value)) return value.map((item) => plain(item, inside) ?? null)
  if (value instanceof Set) return [...value].map((item) => plain(item, inside) ?? null)
  const entries = value instanceof Map ? [...value].map(([key, item]) => [String(key), item]) : Object.entries(value)
  const isConfig = 'configurable' in value
  const made: Bag = {}
  for (const [key, item] of entries as [string, unknown][]) {
    const isOwn = key.startsWith('__pregel') || (isConfig && !OF_CONFIGS.has(key))
    const shown = isOwn ? undefined : plain(item, inside)
    if (shown !== undefined) Object.defineProperty(made, key, { value: shown, enumerable: true, writable: true })
  }
  return made
}

interface MessageLike {
  toDict(): { readonly type: string; readonly data: object }
  readonly concat?: unknown
}

function isMessage(value: object): value is MessageLike {
  const { toDict, getType, _getType: oldType } = value as { toDict?: unknown; getType?: unknown; _getType?: unknown }
  return typeof toDict === 'function' && (typeof getType === 'function' || typeof oldType === 'function')
}

function plainMessage(message: MessageLike, inside: readonly object[]): unknown {
  const { type, data } = message.toDict()
  // Only pieces of messages can be put together.
  const isChunk = type === 'ai' && typeof message.concat === 'function'
  return { ...(plain(data, inside) as Bag), type: isChunk ? 'AIMessageChunk' : type }
}
