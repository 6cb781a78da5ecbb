import type { Message, Part, RunEvent } from '../../index.js'
import type { ToolOutput, ToolResultPart } from '../../agent/messages/index.js'
import { messagesIn } from './state-messages.js'
import type { UiChunk } from './ui-chunk.js'

type Token = Extract<RunEvent, { readonly type: 'token' }>
type Pause = Extract<RunEvent, { readonly type: 'pause' }>
type Run = Extract<RunEvent, { readonly type: 'run' }>

/** What a model call has said so far, before it is recorded. */
interface Draft {
  readonly step: string
  attempt: number
  /** The part that is being written. */
  open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | undefined
  count: number
  readonly calls: Set<string>
}

/** Settings of a stream for the AI SDK. */
export interface UiWriterOptions {
  /** The message to continue; default: a new one, named after the agent's first message of the run. */
  readonly messageId?: string
  /**
   * Sends text when its model call is recorded, not as it is generated. A call that breaks off and is retried then
   * leaves no trace; otherwise what it said stays, and a `data-holdfast-superseded` part says so.
   */
  readonly buffer?: boolean
}

/**
 * Turns what happens in an agent's run into pieces of one assistant message. What was recorded decides: tokens only
 * come earlier, and a message that was never streamed, such as one from another process, is sent whole.
 */
export class UiWriter {
  readonly #options: UiWriterOptions
  readonly #drafts = new Map<string, Draft>()
  readonly #recorded = new Set<string>()
  readonly #calls = new Set<string>()
  #isStarted = false
  #isInStep = false
  #finish: 'stop' | 'tool-calls' = 'stop'

  constructor(options: UiWriterOptions = {}) {
    this.#options = options
  }

  /** Messages that the stream does not tell of: those before the run. */
  skip(messages: readonly Message[]): void {
    for (const { id } of messages) this.#recorded.add(id)
  }

  /** The pieces that an event makes. */
  *write(event: RunEvent): Generator<UiChunk> {
    switch (event.type) {
      case 'token':
        if (!this.#options.buffer) yield* this.#token(event)
        return
      case 'superseded':
        yield* this.#supersede(event.step)
        return
      case 'custom':
        yield* this.#start()
        yield { type: 'data-holdfast-custom', data: { step: event.step, value: event.value }, transient: true }
        return
      case 'state':
        for (const message of messagesIn(event.ops)) yield* this.message(message)
        return
      case 'pause':
        yield* this.#pause(event)
        return
      case 'run':
        yield* this.#end(event.status, event.error)
        return
      case 'parked':
        yield* this.#end('failed', event.error)
        return
      default:
    }
  }

  /** A message that is recorded. */
  *message(message: Message): Generator<UiChunk> {
    if (this.#recorded.has(message.id)) return
    this.#recorded.add(message.id)
    if (message.role === 'assistant') yield* this.#said(message)
    else if (message.role === 'tool')
      for (const part of message.parts) if (part.type === 'tool-result') yield* this.#result(part)
  }

  *#start(message?: string): Generator<UiChunk> {
    if (this.#isStarted) return
    this.#isStarted = true
    const messageId = this.#options.messageId ?? message
    yield { type: 'start', ...(messageId === undefined ? {} : { messageId }) }
  }

  *#step(): Generator<UiChunk> {
    if (this.#isInStep) yield { type: 'finish-step' }
    this.#isInStep = true
    yield { type: 'start-step' }
  }

  *#token({ message, step, attempt, kind, text, callId, tool }: Token): Generator<UiChunk> {
    // It is recorded by now, or belongs to no message, such as that of a summary.
    if (message === undefined || this.#recorded.has(message)) return
    let draft = this.#drafts.get(message)
    if (draft === undefined) {
      yield* this.#start(message)
      yield* this.#step()
      draft = { step, attempt, open: undefined, count: 0, calls: new Set() }
      this.#drafts.set(message, draft)
    }
    draft.attempt = attempt
    if (kind === 'tool-input') {
      yield* close(draft)
      if (callId === undefined) return
      if (!draft.calls.has(callId)) {
        draft.calls.add(callId)
        yield { type: 'tool-input-start', toolCallId: callId, toolName: tool ?? '' }
      }
      if (text !== '') yield { type: 'tool-input-delta', toolCallId: callId, inputTextDelta: text }
      return
    }
    if (kind !== 'text' && kind !== 'reasoning') return
    if (draft.open?.kind !== kind) {
      yield* close(draft)
      draft.open = { kind, id: `${message}-${draft.count++}` }
      yield { type: `${kind}-start`, id: draft.open.id }
    }
    yield { type: `${kind}-delta`, id: draft.open.id, delta: text }
  }

  *#supersede(step: string): Generator<UiChunk> {
    for (const [message, draft] of this.#drafts) {
      if (draft.step !== step) continue
      yield* close(draft)
      for (const call of draft.calls) {
        yield { type: 'tool-output-error', toolCallId: call, errorText: 'The reply broke off; this call was not made.' }
      }
      yield { type: 'data-holdfast-superseded', data: { message, parts: draft.count } }
      this.#drafts.delete(message)
    }
  }

  *#said(message: Message): Generator<UiChunk> {
    const draft = this.#drafts.get(message.id)
    this.#drafts.delete(message.id)
    yield* this.#start(message.id)
    if (draft === undefined) yield* this.#step()
    else yield* close(draft)
    for (const [i, part] of message.parts.entries()) yield* this.#part(part, `${message.id}-${i}`, draft)
    this.#finish = message.parts.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop'
  }

  *#part(part: Part, id: string, draft: Draft | undefined): Generator<UiChunk> {
    switch (part.type) {
      case 'text':
      case 'reasoning':
        if (draft !== undefined && draft.count > 0) return
        yield { type: `${part.type}-start`, id }
        yield { type: `${part.type}-delta`, id, delta: part.text }
        yield { type: `${part.type}-end`, id }
        return
      case 'refusal':
        yield { type: 'text-start', id }
        yield { type: 'text-delta', id, delta: part.text }
        yield { type: 'text-end', id }
        return
      case 'source':
        if (part.url === undefined) return
        yield {
          type: 'source-url',
          sourceId: part.id,
          url: part.url,
          ...(part.title === undefined ? {} : { title: part.title }),
        }
        return
      case 'file':
        if (part.data.kind === 'url') yield { type: 'file', url: part.data.url, mediaType: part.mediaType }
        else if (part.data.kind === 'bytes') {
          const data = Buffer.from(part.data.bytes).toString('base64')
          yield { type: 'file', url: `data:${part.mediaType};base64,${data}`, mediaType: part.mediaType }
        }
        return
      case 'tool-call':
        this.#calls.add(part.callId)
        yield {
          type: 'tool-input-available',
          toolCallId: part.callId,
          toolName: part.name,
          input: part.input,
          ...(part.providerExecuted ? { providerExecuted: true } : {}),
        }
        return
      case 'tool-result':
        yield* this.#result(part)
        return
      default:
    }
  }

  *#result({ callId, output }: ToolResultPart): Generator<UiChunk> {
    // For a call in an earlier message, such as one of a run that was ended: readers fail on what they can't place.
    if (this.#options.messageId === undefined && !this.#calls.has(callId)) return
    yield* this.#start()
    yield outputChunk(callId, output)
  }

  *#pause({ pause, kind, question }: Pause): Generator<UiChunk> {
    yield* this.#start()
    const callId = callOf(kind, question)
    if (callId !== undefined) yield { type: 'tool-approval-request', approvalId: pause, toolCallId: callId }
    else yield { type: 'data-holdfast-pause', id: pause, data: { pause, kind, question } }
  }

  *#end(status: Run['status'], error: Run['error']): Generator<UiChunk> {
    if (status === 'started' || status === 'resumed' || status === 'interrupted') return
    yield* this.#start()
    for (const draft of this.#drafts.values()) yield* close(draft)
    if (this.#isInStep) yield { type: 'finish-step' }
    this.#isInStep = false
    if (status === 'completed' || status === 'paused') yield { type: 'finish', finishReason: this.#finish }
    // Not 'stop', or 'tool-calls' as the last reply said: readers would take the answer for a complete one.
    else if (status === 'limited') yield { type: 'finish', finishReason: 'length' }
    else if (status === 'cancelled') yield { type: 'abort', reason: 'cancelled' }
    else yield { type: 'error', errorText: error?.message ?? 'The run failed.' }
  }
}

/** What a tool returned, as a piece of the stream. */
function outputChunk(toolCallId: string, output: ToolOutput): UiChunk {
  switch (output.type) {
    case 'error':
      return { type: 'tool-output-error', toolCallId, errorText: output.value }
    case 'error-json':
      return { type: 'tool-output-error', toolCallId, errorText: JSON.stringify(output.value) }
    case 'denied':
      return { type: 'tool-output-denied', toolCallId }
    default:
      return { type: 'tool-output-available', toolCallId, output: output.value }
  }
}

/** The call that a question is about: whether it may be made, at all or on a fork. */
export function callOf(kind: string, question: unknown): string | undefined {
  const asked = question as { readonly callId?: unknown; readonly input?: { readonly callId?: unknown } } | null
  const callId = kind === 'approval' ? asked?.callId : kind === 'permission' ? asked?.input?.callId : undefined
  return typeof callId === 'string' ? callId : undefined
}

function* close(draft: Draft): Generator<UiChunk> {
  if (draft.open !== undefined) yield { type: `${draft.open.kind}-end`, id: draft.open.id }
  draft.open = undefined
}
