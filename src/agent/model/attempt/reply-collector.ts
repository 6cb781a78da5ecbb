import type { Value } from '../../../codec/value.js'
import { fileDataFrom, fromAiPart, providerDataOf } from '../../messages/ai-sdk/from-ai-sdk.js'
import type { FinishReason, ModelRef } from '../../messages/message.js'
import type { Part, ProviderData, ReasoningPart, TextPart, ToolCallPart } from '../../messages/message-part.js'
import { AttemptFailure } from './model-failure.js'
import type { ModelWarning } from '../model-types.js'
import { toPlain } from '../../messages/plain.js'
import { mergeProviderData } from '../../messages/ai-sdk/to-ai-message.js'
import { readArguments } from '../../tools/tool-input.js'
import { readUsage, type ReportedUsage } from '../cost/usage.js'

type Bag = Readonly<Record<string, unknown>>

/** What one attempt streams, before it is known whether it will count. */
export type ReplyDelta =
  | { readonly type: 'text-delta'; readonly id: string; readonly text: string }
  | { readonly type: 'reasoning-delta'; readonly id: string; readonly text: string }
  | { readonly type: 'tool-input-start'; readonly callId: string; readonly name: string }
  | { readonly type: 'tool-input-delta'; readonly callId: string; readonly text: string }
  | { readonly type: 'tool-call'; readonly part: ToolCallPart }

export interface CollectedReply {
  readonly parts: readonly Part[]
  readonly finish: { readonly reason: FinishReason; readonly raw?: string }
  readonly usage: ReportedUsage
  readonly warnings: readonly ModelWarning[]
  readonly response: Pick<ModelRef, 'actual' | 'responseId'>
  readonly providerMetadata?: ProviderData
}

const FINISH_REASONS = ['stop', 'length', 'content-filter', 'tool-calls', 'error', 'interrupted', 'other']

/** Assembles a reply from the parts of a stream, or from a whole result, of any spec version. */
export class ReplyCollector {
  readonly #emit: (delta: ReplyDelta) => void
  /** In the order in which they began. A block of text grows until it ends. */
  readonly #parts: Part[] = []
  readonly #open = new Map<string, { readonly at: number; text: string }>()
  #warnings: readonly ModelWarning[] = []
  readonly #leftOut = new Set<string>()
  /** Calls that came without a single character of arguments. */
  readonly #bare = new Set<Part>()
  #response: Pick<ModelRef, 'actual' | 'responseId'> = {}
  #finish: Bag | undefined
  #streamed = false

  constructor(emit: (delta: ReplyDelta) => void) {
    this.#emit = emit
  }

  /** Takes one part of a stream. Throws on an error part: a stream that had an error can't be trusted. */
  add(input: unknown): void {
    this.#streamed = true
    const part = input as Bag
    const id = String(part['id'] ?? '')
    switch (part['type']) {
      case 'text-start':
      case 'reasoning-start':
        this.#start(part['type'] === 'text-start' ? 'text' : 'reasoning', id, part)
        return
      case 'text-delta':
      case 'reasoning-delta':
        this.#grow(part['type'] === 'text-delta' ? 'text' : 'reasoning', id, part)
        return
      case 'text-end':
      case 'reasoning-end':
        this.#end(part['type'] === 'text-end' ? 'text' : 'reasoning', id, part)
        return
      case 'tool-input-start':
        this.#emit({ type: 'tool-input-start', callId: id, name: String(part['toolName'] ?? '') })
        return
      case 'tool-input-delta':
        this.#emit({ type: 'tool-input-delta', callId: id, text: String(part['delta'] ?? '') })
        return
      case 'stream-start':
        this.#warnings = readWarnings(part['warnings'])
        return
      case 'response-metadata':
        this.#response = readResponse(part)
        return
      case 'finish':
        this.#finish = part
        return
      case 'error':
        throw new AttemptFailure('broken-reply', 'The reply ended in an error.', part['error'])
      case 'tool-input-end':
      case 'raw':
      case 'ping':
        return
      default:
        this.#addContent(part)
    }
  }

  /** Takes a whole result of `doGenerate`. */
  addResult(result: unknown): void {
    const bag = (result ?? {}) as Bag
    if (!Array.isArray(bag['content'])) throw new AttemptFailure('broken-reply', 'The reply has no content.')
    bag['content'].forEach((part: Bag, i) => {
      if (part['type'] === 'text' || part['type'] === 'reasoning') {
        const text = String(part['text'] ?? '')
        this.#parts.push(fromAiPart({ ...part, text }, `$.content[${i}]`))
        this.#emit({ type: `${part['type']}-delta`, id: String(i), text })
      } else {
        this.#addContent(part)
      }
    })
    this.#warnings = readWarnings(bag['warnings'])
    this.#response = readResponse((bag['response'] ?? {}) as Bag)
    this.#finish = bag
  }

  finish(): CollectedReply {
    // Blocks that were never ended keep what they hold.
    for (const [key, block] of [...this.#open]) this.#close(key, block)
    const finish = this.#finish
    if (finish === undefined) throw new AttemptFailure('broken-reply', 'The reply broke off before its end.')
    const reason = readFinish(finish['finishReason'])
    if (reason.reason === 'error') {
      throw new AttemptFailure('broken-reply', 'The model ended its reply with an error.')
    }
    // If a connection closes cleanly but too early, some providers fill in the missing end.
    if (this.#streamed && reason.reason === 'other' && (reason.raw ?? 'unknown') === 'unknown') {
      throw new AttemptFailure('broken-reply', 'The reply ended without a reason.')
    }
    this.#markCutCall(reason.reason)
    return {
      // An empty block says nothing, and providers refuse it when it is sent back, unless it carries a signature.
      parts: this.#parts.filter((part) => !isEmpty(part)),
      finish: reason,
      usage: readUsage(finish['usage']),
      warnings: [...this.#warnings, ...[...this.#leftOut].map(leftOutWarning)],
      response: this.#response,
      ...providerDataOf(finish),
    }
  }

  // Otherwise a reply that was cut right before the arguments would count as a call without any.
  #markCutCall(reason: FinishReason): void {
    if (reason !== 'length' && reason !== 'content-filter') return
    const at = this.#parts.findLastIndex(({ type }) => type === 'tool-call')
    const last = this.#parts[at] as ToolCallPart | undefined
    if (last !== undefined && this.#bare.has(last)) this.#parts[at] = { ...last, invalid: true, raw: '' }
  }

  #start(type: 'text' | 'reasoning', id: string, part: Bag): void {
    this.#open.set(`${type}:${id}`, { at: this.#parts.length, text: '' })
    this.#parts.push({ type, text: '', ...providerDataOf(part) })
  }

  #grow(type: 'text' | 'reasoning', id: string, part: Bag): void {
    if (!this.#open.has(`${type}:${id}`)) this.#start(type, id, {})
    const block = this.#open.get(`${type}:${id}`)
    if (block === undefined) return
    const text = String(part['delta'] ?? '')
    block.text += text
    this.#annotate(block.at, part)
    if (text !== '') this.#emit({ type: `${type}-delta`, id, text })
  }

  #end(type: 'text' | 'reasoning', id: string, part: Bag): void {
    const block = this.#open.get(`${type}:${id}`)
    if (block === undefined) return
    this.#annotate(block.at, part)
    this.#close(`${type}:${id}`, block)
  }

  #close(key: string, block: { readonly at: number; readonly text: string }): void {
    const begun = this.#parts[block.at] as TextPart | ReasoningPart
    this.#parts[block.at] = { ...begun, text: block.text }
    this.#open.delete(key)
  }

  // A signature over reasoning often arrives with the last delta or the end.
  #annotate(at: number, part: Bag): void {
    const { providerMetadata } = providerDataOf(part)
    const citations = toPlain(part['citations'])
    const begun = this.#parts[at] as TextPart | ReasoningPart
    const merged = mergeProviderData(begun.providerMetadata, providerMetadata)
    this.#parts[at] = {
      ...begun,
      ...(merged === undefined ? {} : { providerMetadata: merged }),
      ...(Array.isArray(citations) ? { citations: citations as readonly Value[] } : {}),
    } as Part
  }

  #addContent(part: Bag): void {
    switch (part['type']) {
      case 'tool-call': {
        const call = readCall(part)
        this.#parts.push(call)
        if (typeof part['input'] === 'string' && part['input'].trim() === '') this.#bare.add(call)
        this.#emit({ type: 'tool-call', part: call })
        return
      }
      case 'tool-result':
        this.#addResult(part)
        return
      case 'source':
        this.#parts.push({
          ...(toPlain({ ...part, providerMetadata: undefined }) as unknown as Part & { type: 'source' }),
          ...providerDataOf(part),
        })
        return
      case 'file':
        this.#parts.push({
          type: 'file',
          mediaType: String(part['mediaType'] ?? 'application/octet-stream'),
          data: fileDataFrom(part['data'], '$.data'),
          ...providerDataOf(part),
        })
        return
      case 'custom':
      case 'reasoning-file':
      case 'tool-approval-request':
        this.#parts.push(fromAiPart(part, '$'))
        return
      default:
        // A newer provider may send more than is known here; the rest of its reply is still worth having.
        this.#leftOut.add(String(part['type']))
    }
  }

  /** The result of a tool that the provider ran. A preliminary one is replaced by the next for the same call. */
  #addResult(part: Bag): void {
    const callId = String(part['toolCallId'])
    const value = toPlain(part['result']) ?? null
    const result: Part = {
      type: 'tool-result',
      callId,
      name: String(part['toolName']),
      output: { type: part['isError'] === true ? 'error-json' : 'json', value },
      ...providerDataOf(part),
    }
    const before = this.#parts.findIndex((other) => other.type === 'tool-result' && other.callId === callId)
    if (before === -1) this.#parts.push(result)
    else this.#parts[before] = result
  }
}

function readCall(part: Bag): ToolCallPart {
  const { input } = part
  return {
    type: 'tool-call',
    callId: String(part['toolCallId'] ?? ''),
    name: String(part['toolName'] ?? ''),
    ...(typeof input === 'string' ? readArguments(input) : { input: input === null ? null : (toPlain(input) ?? {}) }),
    ...(part['providerExecuted'] === true ? { providerExecuted: true } : {}),
    ...(part['dynamic'] === true ? { dynamic: true } : {}),
    ...providerDataOf(part),
  }
}

function leftOutWarning(type: string): ModelWarning {
  return {
    type: 'other',
    message: `The reply held a part of type ${JSON.stringify(type)}, which is unknown and was left out.`,
  }
}

function isEmpty(part: Part): boolean {
  return (part.type === 'text' || part.type === 'reasoning') && part.text === '' && part.providerMetadata === undefined
}

/** V2 gives a word, V3 and V4 the word and what the provider said. */
function readFinish(input: unknown): { readonly reason: FinishReason; readonly raw?: string } {
  const { unified, raw } =
    typeof input === 'object' && input !== null ? (input as Bag) : { unified: input, raw: undefined }
  const known = typeof unified === 'string' && FINISH_REASONS.includes(unified)
  // V2 says `unknown` for no reason at all, and `other` for one that it has no word for.
  const said = typeof raw === 'string' ? raw : known && input !== 'other' ? undefined : unified
  return {
    reason: known ? (unified as FinishReason) : 'other',
    ...(typeof said === 'string' ? { raw: said } : {}),
  }
}

function readResponse(response: Bag): Pick<ModelRef, 'actual' | 'responseId'> {
  const { id, modelId } = response
  return {
    ...(typeof id === 'string' ? { responseId: id } : {}),
    ...(typeof modelId === 'string' ? { actual: modelId } : {}),
  }
}

/** V2 says `unsupported-setting` and `unsupported-tool` where V3 and V4 say `unsupported`. */
function readWarnings(input: unknown): ModelWarning[] {
  if (!Array.isArray(input)) return []
  return input.map((warning: Bag) => {
    const tool = warning['tool'] as Bag | undefined
    const feature = warning['feature'] ?? warning['setting'] ?? tool?.['name']
    const message = warning['message'] ?? warning['details']
    return {
      type: String(warning['type'] ?? 'other').replace(/^unsupported-.*/, 'unsupported'),
      ...(typeof feature === 'string' ? { feature } : {}),
      ...(typeof message === 'string' ? { message } : {}),
    }
  })
}
