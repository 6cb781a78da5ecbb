import { InvalidValueError } from '../../core/errors.js'
import { MESSAGE_VERSION, type Message, makeMessage, type MessageOptions, type Role } from './message.js'
import type { PartType, ToolOutput } from './message-part.js'

/** Which parts a message of each role may hold. */
const PARTS_OF_ROLE: Readonly<Record<Role, readonly PartType[]>> = {
  system: ['text'],
  user: ['text', 'file'],
  assistant: [
    'text',
    'reasoning',
    'refusal',
    'file',
    'reasoning-file',
    'tool-call',
    'tool-result',
    'tool-approval-request',
    'source',
    'custom',
  ],
  tool: ['tool-result', 'tool-approval-response'],
}

const FINISH_REASONS = ['stop', 'length', 'content-filter', 'tool-calls', 'error', 'interrupted', 'other']
const USAGE_COUNTS = ['input', 'cachedInput', 'cacheWrite', 'output', 'reasoning', 'total']

type Bag = Readonly<Record<string, unknown>>

/** What people write as a message: text is a user's message; a whole message is checked. */
export function toMessage(input: unknown, options?: MessageOptions): Message {
  if (typeof input === 'string') return makeMessage('user', input, options)
  checkMessage(input)
  return input
}

/** Refuses an invalid message, with the path to the problem. Values inside are checked by the codec when stored. */
export function checkMessage(input: unknown, path = '$'): asserts input is Message {
  const message = bag(input, path, 'a message: { id, v: 1, role, parts, at }')
  text(message['id'], `${path}.id`, { filled: true })
  if (message['v'] !== MESSAGE_VERSION) {
    throw misfit(
      `${path}.v`,
      `must be ${MESSAGE_VERSION}, not ${describe(message['v'])}`,
      'Upgrade holdfast, or set v: 1.',
    )
  }
  const role = oneOf(message['role'], `${path}.role`, Object.keys(PARTS_OF_ROLE)) as Role
  count(message['at'], `${path}.at`)
  optional(message['name'], (value) => text(value, `${path}.name`))
  list(message['parts'], `${path}.parts`).forEach((part, i) => checkPart(part, role, `${path}.parts[${i}]`))
  optional(message['usage'], (value) => checkUsage(value, `${path}.usage`))
  optional(message['model'], (value) => {
    const model = bag(value, `${path}.model`, '{ provider, id }')
    text(model['provider'], `${path}.model.provider`)
    text(model['id'], `${path}.model.id`)
    optional(model['actual'], (actual) => text(actual, `${path}.model.actual`))
    optional(model['responseId'], (id) => text(id, `${path}.model.responseId`))
  })
  optional(message['finish'], (value) => {
    const finish = bag(value, `${path}.finish`, '{ reason }')
    oneOf(finish['reason'], `${path}.finish.reason`, FINISH_REASONS)
    optional(finish['raw'], (raw) => text(raw, `${path}.finish.raw`))
  })
  checkProviderData(message, path)
}

/** Refuses a list that has an invalid message, or two with the same id. */
export function checkMessages(input: unknown, path = '$'): asserts input is readonly Message[] {
  const seen = new Map<string, number>()
  list(input, path).forEach((message, i) => {
    checkMessage(message, `${path}[${i}]`)
    const first = seen.get(message.id)
    if (first !== undefined) {
      throw misfit(`${path}[${i}].id`, `is also the id of ${path}[${first}]`, 'Give every message its own id.')
    }
    seen.set(message.id, i)
  })
}

function checkPart(input: unknown, role: Role, path: string): void {
  const part = bag(input, path, 'a part: { type, … }')
  const type = oneOf(part['type'], `${path}.type`, PARTS_OF_ROLE[role], ` in a message of role ${role}`) as PartType
  checkProviderData(part, path)
  switch (type) {
    case 'text':
      optional(part['citations'], (value) => list(value, `${path}.citations`))
      text(part['text'], `${path}.text`)
      return
    case 'reasoning':
    case 'refusal':
      text(part['text'], `${path}.text`)
      return
    case 'file':
    case 'reasoning-file':
      text(part['mediaType'], `${path}.mediaType`, { filled: true })
      checkFileData(part['data'], `${path}.data`)
      optional(part['filename'], (value) => text(value, `${path}.filename`))
      optional(part['originalUrl'], (value) => text(value, `${path}.originalUrl`))
      return
    case 'tool-call':
      checkToolCall(part, path)
      return
    case 'tool-result':
      text(part['callId'], `${path}.callId`, { filled: true })
      text(part['name'], `${path}.name`, { filled: true })
      checkOutput(part['output'], `${path}.output`)
      return
    case 'tool-approval-request':
      text(part['approvalId'], `${path}.approvalId`, { filled: true })
      text(part['callId'], `${path}.callId`, { filled: true })
      return
    case 'tool-approval-response':
      text(part['approvalId'], `${path}.approvalId`, { filled: true })
      flag(part['approved'], `${path}.approved`)
      optional(part['reason'], (value) => text(value, `${path}.reason`))
      return
    case 'source':
      text(part['id'], `${path}.id`)
      oneOf(part['sourceType'], `${path}.sourceType`, ['url', 'document'])
      for (const field of ['url', 'title', 'mediaType', 'filename']) {
        optional(part[field], (value) => text(value, `${path}.${field}`))
      }
      return
    case 'custom':
      text(part['kind'], `${path}.kind`, { filled: true })
  }
}

function checkToolCall(part: Bag, path: string): void {
  text(part['callId'], `${path}.callId`, { filled: true })
  text(part['name'], `${path}.name`, { filled: true })
  if (part['input'] === undefined) {
    throw misfit(`${path}.input`, 'is missing', 'Pass the arguments; {} where there are none.')
  }
  optional(part['version'], (value) => text(value, `${path}.version`))
  optional(part['providerExecuted'], (value) => flag(value, `${path}.providerExecuted`))
  optional(part['dynamic'], (value) => flag(value, `${path}.dynamic`))
  optional(part['raw'], (value) => text(value, `${path}.raw`))
  if (part['invalid'] === undefined) return
  if (part['invalid'] !== true) throw misfit(`${path}.invalid`, 'must be true or absent', 'Leave it out.')
  text(part['raw'], `${path}.raw`)
}

/** Refuses an invalid tool output. */
export function checkOutput(input: unknown, path: string): asserts input is ToolOutput {
  const output = bag(input, path, 'an output: { type, value }')
  checkProviderData(output, path)
  const types = ['text', 'json', 'error', 'error-json', 'content', 'denied']
  switch (oneOf(output['type'], `${path}.type`, types)) {
    case 'text':
    case 'error':
      text(output['value'], `${path}.value`)
      return
    case 'denied':
      optional(output['reason'], (value) => text(value, `${path}.reason`))
      return
    case 'content':
      list(output['value'], `${path}.value`).forEach((item, i) => checkContentItem(item, `${path}.value[${i}]`))
      return
    default:
      if (output['value'] === undefined) throw misfit(`${path}.value`, 'is missing', 'Use null for nothing.')
  }
}

function checkContentItem(input: unknown, path: string): void {
  const item = bag(input, path, 'an item: { type, … }')
  checkProviderData(item, path)
  switch (oneOf(item['type'], `${path}.type`, ['text', 'file', 'custom'])) {
    case 'text':
      text(item['text'], `${path}.text`)
      return
    case 'file':
      checkFileData(item['data'], `${path}.data`)
      optional(item['mediaType'], (value) => text(value, `${path}.mediaType`))
      optional(item['filename'], (value) => text(value, `${path}.filename`))
  }
}

function checkFileData(input: unknown, path: string): void {
  const data = bag(input, path, "file data: { kind: 'bytes' | 'url' | 'reference' | 'text', … }")
  switch (oneOf(data['kind'], `${path}.kind`, ['bytes', 'url', 'reference', 'text'])) {
    case 'bytes':
      if (!(data['bytes'] instanceof Uint8Array)) {
        throw misfit(`${path}.bytes`, `must be a Uint8Array, not ${describe(data['bytes'])}`, 'Decode base64 first.')
      }
      return
    case 'url':
      text(data['url'], `${path}.url`, { filled: true })
      return
    case 'text':
      text(data['text'], `${path}.text`)
      return
    default: {
      const { reference } = data
      if (typeof reference === 'string') return
      const ids = bag(reference, `${path}.reference`, 'an id, or ids by provider')
      for (const provider of Object.keys(ids)) text(ids[provider], `${path}.reference.${provider}`)
    }
  }
}

function checkUsage(input: unknown, path: string): void {
  const usage = bag(input, path, 'a usage')
  for (const field of USAGE_COUNTS) count(usage[field], `${path}.${field}`)
  oneOf(usage['basis'], `${path}.basis`, ['provider', 'estimate', 'mixed'])
}

function checkProviderData(owner: Bag, path: string): void {
  optional(owner['providerMetadata'], (value) => {
    const data = bag(value, `${path}.providerMetadata`, 'objects by provider')
    for (const provider of Object.keys(data)) {
      bag(data[provider], `${path}.providerMetadata.${provider}`, 'an object')
    }
  })
}

function bag(value: unknown, path: string, wanted: string): Bag {
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)) {
    return value as Bag
  }
  throw misfit(path, `must be ${wanted}, not ${describe(value)}`, 'See the type Message.')
}

function list(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw misfit(path, `must be an array, not ${describe(value)}`, 'See the type Message.')
}

function text(value: unknown, path: string, options: { readonly filled?: boolean } = {}): void {
  if (typeof value !== 'string') throw misfit(path, `must be a string, not ${describe(value)}`, 'Pass text.')
  if (options.filled && value === '') throw misfit(path, 'is empty', 'Pass at least one character.')
}

function flag(value: unknown, path: string): void {
  if (typeof value !== 'boolean') throw misfit(path, `must be a boolean, not ${describe(value)}`, 'Pass true or false.')
}

function count(value: unknown, path: string): void {
  if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return
  throw misfit(path, `must be a number from 0, not ${describe(value)}`, 'Pass a number.')
}

function oneOf(value: unknown, path: string, allowed: readonly string[], where = ''): string {
  if (typeof value === 'string' && allowed.includes(value)) return value
  const said = typeof value === 'string' ? JSON.stringify(value) : describe(value)
  throw misfit(path, `can't be ${said}${where}`, `Use one of: ${allowed.join(', ')}.`)
}

function optional(value: unknown, check: (value: unknown) => void): void {
  if (value !== undefined) check(value)
}

function misfit(path: string, problem: string, remedy: string): InvalidValueError {
  return new InvalidValueError(path, problem, remedy)
}

function describe(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'number') return String(value)
  return typeof value === 'object' ? 'an object' : typeof value
}
