import { InvalidValueError } from '../../../core/errors.js'
import { fileDataFrom, providerDataOf } from './from-ai-sdk.js'
import { type Message, makeMessage } from '../message.js'
import type { Part, ToolCallPart, ToolOutput, ToolResultPart } from '../message-part.js'
import { toPlain } from '../plain.js'

type Bag = Readonly<Record<string, unknown>>

/** The part of the AI SDK's `UIMessage` that is used, as `useChat` sends it. */
export interface UiMessage {
  readonly id?: string
  readonly role: string
  readonly parts: readonly object[]
}

/** Holdfast messages have a version; those of the AI SDK's user interface don't. */
export function isUiMessage(message: unknown): message is UiMessage {
  if (typeof message !== 'object' || message === null) return false
  return Array.isArray((message as Bag)['parts']) && !('v' in message)
}

/**
 * Messages of the AI SDK's user interface. An assistant message may hold several steps, each with its calls and their
 * results: it becomes one message per step and one for the results. What is only for display is left out.
 */
export function fromUiMessages(messages: readonly UiMessage[]): Message[] {
  return messages.flatMap((message, i) => fromUiMessage(message, messages.length === 1 ? '$' : `$[${i}]`))
}

function fromUiMessage({ id, role, parts }: UiMessage, path: string): Message[] {
  if (role !== 'system' && role !== 'user' && role !== 'assistant') {
    throw new InvalidValueError(
      `${path}.role`,
      `can't be ${JSON.stringify(role)}`,
      'Use system, user or assistant, as a UIMessage of the AI SDK has it.',
    )
  }
  const steps: { said: Part[]; results: ToolResultPart[] }[] = [{ said: [], results: [] }]
  for (const [i, part] of parts.entries()) {
    const bag = part as Bag
    if (bag['type'] === 'step-start') steps.push({ said: [], results: [] })
    else readPart(bag, `${path}.parts[${i}]`, steps.at(-1) as (typeof steps)[number])
  }
  const made: Message[] = []
  const add = (as: 'system' | 'user' | 'assistant' | 'tool', of: readonly Part[]) => {
    if (of.length === 0) return
    // The first keeps the id, so that whoever sent it finds it again.
    made.push(makeMessage(as, of, id ? { id: made.length === 0 ? id : `${id}-${made.length}` } : {}))
  }
  for (const { said, results } of steps) {
    add(role, said)
    add('tool', results)
  }
  if (made.length > 0) return made
  throw new InvalidValueError(`${path}.parts`, 'holds nothing that a model can read', 'Leave the message out.')
}

function readPart(part: Bag, path: string, step: { said: Part[]; results: ToolResultPart[] }): void {
  const type = String(part['type'])
  const metadata = providerDataOf(part)
  switch (type) {
    case 'text':
    case 'reasoning':
      step.said.push({ type, text: textAt(part, 'text', path), ...metadata })
      return
    case 'file': {
      const { filename } = part
      const data = fileDataFrom(textAt(part, 'url', path), `${path}.url`)
      const mediaType = textAt(part, 'mediaType', path)
      step.said.push({
        type: 'file',
        mediaType,
        data,
        ...(typeof filename === 'string' ? { filename } : {}),
        ...metadata,
      })
      return
    }
    case 'dynamic-tool':
      readCall(part, textAt(part, 'toolName', path), path, step)
      return
    case 'source-url':
    case 'source-document':
      return
    default:
      if (type.startsWith('tool-')) readCall(part, type.slice('tool-'.length), path, step)
      else if (!type.startsWith('data-')) {
        throw new InvalidValueError(
          `${path}.type`,
          `is unknown: ${JSON.stringify(part['type'])}`,
          'Leave the part out.',
        )
      }
  }
}

function readCall(part: Bag, name: string, path: string, step: { said: Part[]; results: ToolResultPart[] }): void {
  // It broke off before its arguments were complete.
  if (part['state'] === 'input-streaming') return
  const callId = textAt(part, 'toolCallId', path)
  const call: ToolCallPart = {
    type: 'tool-call',
    callId,
    name,
    input: toPlain(part['input'] ?? part['rawInput']) ?? {},
    ...(part['providerExecuted'] === true ? { providerExecuted: true } : {}),
    ...providerDataOf({ providerMetadata: part['callProviderMetadata'] }),
  }
  step.said.push(call)
  const output = outputOf(part)
  if (output === undefined) return
  const result: ToolResultPart = { type: 'tool-result', callId, name, output }
  if (call.providerExecuted) step.said.push(result)
  else step.results.push(result)
}

function outputOf(part: Bag): ToolOutput | undefined {
  switch (part['state']) {
    case 'output-available': {
      const value = toPlain(part['output']) ?? null
      return typeof value === 'string' ? { type: 'text', value } : { type: 'json', value }
    }
    case 'output-error':
      return { type: 'error', value: String(part['errorText'] ?? 'The tool failed.') }
    case 'output-denied': {
      const { reason } = (part['approval'] ?? {}) as { readonly reason?: unknown }
      return { type: 'denied', ...(typeof reason === 'string' ? { reason } : {}) }
    }
    default:
      return undefined
  }
}

function textAt(owner: Bag, field: string, path: string): string {
  const value = owner[field]
  if (typeof value === 'string') return value
  throw new InvalidValueError(`${path}.${field}`, 'must be a string', "See the AI SDK's UIMessage.")
}
