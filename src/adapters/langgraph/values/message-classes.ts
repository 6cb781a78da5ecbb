import {
  AIMessage,
  AIMessageChunk,
  type BaseMessage,
  ChatMessage,
  ChatMessageChunk,
  FunctionMessage,
  FunctionMessageChunk,
  HumanMessage,
  HumanMessageChunk,
  RemoveMessage,
  SystemMessage,
  SystemMessageChunk,
  ToolMessage,
  ToolMessageChunk,
} from '@langchain/core/messages'

type Fields = Record<string, unknown>
type MessageClass = new (fields: never) => BaseMessage

/** The only messages that are ever created from stored data. A name that is not here is refused, not looked up. */
const CLASSES: ReadonlyMap<string, MessageClass> = new Map<string, MessageClass>([
  ['AIMessage', AIMessage],
  ['AIMessageChunk', AIMessageChunk],
  ['ChatMessage', ChatMessage],
  ['ChatMessageChunk', ChatMessageChunk],
  ['FunctionMessage', FunctionMessage],
  ['FunctionMessageChunk', FunctionMessageChunk],
  ['HumanMessage', HumanMessage],
  ['HumanMessageChunk', HumanMessageChunk],
  ['RemoveMessage', RemoveMessage],
  ['SystemMessage', SystemMessage],
  ['SystemMessageChunk', SystemMessageChunk],
  ['ToolMessage', ToolMessage],
  ['ToolMessageChunk', ToolMessageChunk],
])

/** What messages hold. Constructors note what they were given in `lc_kwargs`; some of it is only set later. */
const FIELDS = [
  'content',
  'id',
  'name',
  'role',
  'additional_kwargs',
  'response_metadata',
  'tool_calls',
  'invalid_tool_calls',
  'tool_call_chunks',
  'usage_metadata',
  'tool_call_id',
  'artifact',
  'status',
  'metadata',
] as const

/** `contentBlocks` is made again from the content. */
const KNOWN: ReadonlySet<string> = new Set([...FIELDS, 'contentBlocks'])

/** Shown by every message, also by one of another copy of the package. */
const MESSAGE = Symbol.for('langchain.message')

/** The name under which a message is stored, or undefined if it is not on the closed list. */
export function messageClass(value: object): string | undefined {
  if (!(MESSAGE in value)) return undefined
  const { constructor } = value as { constructor: { lc_name?: unknown; name: string } }
  const name = uniqueName(constructor)
  return CLASSES.has(name) ? name : undefined
}

/**
 * The contents of a message, as its constructor takes them, without what the constructor sets anyway: most messages
 * hold little but their content.
 */
export function messageFields(message: object): Fields {
  const source = message as Fields & { readonly lc_kwargs?: Fields }
  const fields: Fields = {}
  const hasExtras = !isEmpty(source['additional_kwargs'])
  for (const key of FIELDS) {
    // Of some classes only what they were given has it.
    const value = key in source ? source[key] : source.lc_kwargs?.[key]
    if (value !== undefined && !isDefault(message, key, value, hasExtras)) fields[key] = value
  }
  for (const key of Object.keys(source.lc_kwargs ?? {})) {
    if (KNOWN.has(key)) continue
    const value = key in source ? source[key] : source.lc_kwargs?.[key]
    if (value !== undefined) fields[key] = value
  }
  return fields
}

function isDefault({ constructor }: object, key: string, value: unknown, hasExtras: boolean): boolean {
  if (key === 'additional_kwargs') return !hasExtras
  if (key === 'response_metadata') return isEmpty(value)
  if (key !== 'tool_calls' && key !== 'invalid_tool_calls') return false
  // With raw calls among the extras, the constructor would parse those instead.
  return !hasExtras && constructor === AIMessage && isEmpty(value)
}

function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  for (const _ in value) return false
  return Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype
}

/** A message of the closed list; undefined for any other name. */
export function makeMessage(name: string, fields: Fields): BaseMessage | undefined {
  const Message = CLASSES.get(name)
  return Message && new Message(fields as never)
}

// A subclass inherits `lc_name`, but is another class: it would come back as its parent.
function uniqueName(constructor: { lc_name?: unknown; name: string }): string {
  const parent = Object.getPrototypeOf(constructor) as { lc_name?: unknown } | null
  if (typeof constructor.lc_name !== 'function') return constructor.name
  const own = String(constructor.lc_name())
  if (typeof parent?.lc_name === 'function' && parent.lc_name() === own) return constructor.name
  return own
}
