import type { LanguageModelV3StreamPart } from '@ai-sdk/provider'
import { MockLanguageModelV3 } from 'ai/test'

/** One call to a model, which says what the test lets it say, when it does. */
export class PacedCall {
  readonly #controller: ReadableStreamDefaultController<LanguageModelV3StreamPart>
  #open = false
  #calls = 0

  constructor(controller: ReadableStreamDefaultController<LanguageModelV3StreamPart>) {
    this.#controller = controller
    controller.enqueue({ type: 'stream-start', warnings: [] })
  }

  say(delta: string): this {
    if (!this.#open) this.#controller.enqueue({ type: 'text-start', id: '1' })
    this.#open = true
    this.#controller.enqueue({ type: 'text-delta', id: '1', delta })
    return this
  }

  call(toolName: string, input: object, toolCallId = `call-${toolName}-${Math.random().toString(36).slice(2)}`): this {
    this.#calls++
    const text = JSON.stringify(input)
    this.#controller.enqueue({ type: 'tool-input-start', id: toolCallId, toolName })
    this.#controller.enqueue({ type: 'tool-input-delta', id: toolCallId, delta: text })
    this.#controller.enqueue({ type: 'tool-input-end', id: toolCallId })
    this.#controller.enqueue({ type: 'tool-call', toolCallId, toolName, input: text })
    return this
  }

  end(): void {
    if (this.#open) this.#controller.enqueue({ type: 'text-end', id: '1' })
    const finishReason = this.#calls > 0 ? 'tool-calls' : 'stop'
    this.#controller.enqueue({
      type: 'finish',
      finishReason: { unified: finishReason, raw: finishReason },
      usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } } as never,
    })
    this.#controller.close()
  }
}

/** A model whose calls the test answers, one after the other. */
export function pacedModel() {
  const arrived: PacedCall[] = []
  const waiting: ((call: PacedCall) => void)[] = []
  const model = new MockLanguageModelV3({
    doStream: async () => ({
      stream: new ReadableStream<LanguageModelV3StreamPart>({
        start(controller) {
          const call = new PacedCall(controller)
          const next = waiting.shift()
          if (next) next(call)
          else arrived.push(call)
        },
      }),
    }),
  })
  const next = (): Promise<PacedCall> => {
    const call = arrived.shift()
    return call ? Promise.resolve(call) : new Promise((resolve) => waiting.push(resolve))
  }
  return { model, next }
}
