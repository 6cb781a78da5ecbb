import type { Clock } from '../../core/time/clock.js'
import { InvalidOptionError } from '../../core/errors.js'
import { type RunObserver, UNWATCHED } from '../../telemetry/observer.js'
import type { SpecVersion } from '../messages/ai-sdk/ai-sdk-types.js'
import { estimateParts } from '../messages/estimate.js'
import { MESSAGE_VERSION, newMessageId } from '../messages/message.js'
import { CallPrompt, changesPrompt } from './call-prompt.js'
import { runAttempt } from './attempt/model-attempt.js'
import { type ModelRetryOptions, retryModel } from './attempt/model-retry.js'
import type { LanguageModel, ModelEvent, ModelReply, ModelRequest } from './model-types.js'
import type { CollectedReply } from './attempt/reply-collector.js'
import { type PromptSizes, RememberedSizes } from '../messages/sizes.js'
import { noteReply, planChat } from './spans.js'
import { completeUsage } from './cost/usage.js'

export interface CallOptions {
  readonly clock: Clock
  readonly signal?: AbortSignal
  /** How long one attempt may take in total. Default 10 minutes. */
  readonly timeoutMs?: number
  /** How long a stream may be silent. Default: as long as the attempt may take. */
  readonly idleTimeoutMs?: number
  readonly retry?: ModelRetryOptions
  /** Called as things happen. If it throws, the call fails with what it threw. */
  readonly onEvent?: (event: ModelEvent) => void
  /** Default true: deltas are reported as they arrive. Otherwise the reply is requested in one piece. */
  readonly stream?: boolean
  readonly random?: () => number
  /** The id of the message. Default: random. */
  readonly messageId?: string
  /** Told of the call. */
  readonly watch?: RunObserver
  /** Counts a prompt that the provider did not count. Default: an estimate from the characters. */
  readonly sizes?: PromptSizes
  /** The step that makes the call, for those who are told. */
  readonly step?: string
}

const DEFAULT_TIMEOUT_MS = 600_000
const VERSIONS: readonly string[] = ['v2', 'v3', 'v4']

/**
 * One call to a model, retried by our own rules and no others: AI SDK providers neither loop nor retry when they are
 * called this way. A reply counts only when it is complete; what a broken attempt streamed is marked as superseded.
 */
export function callModel(model: LanguageModel, request: ModelRequest, options: CallOptions): Promise<ModelReply> {
  try {
    const version = checkCall(model, options)
    const { watch = UNWATCHED, stream = true, step } = options
    // Where nobody is told of the call, what they would be told is not put together.
    if (watch === UNWATCHED) return askModel(model, version, request, options)
    return watch.span(planChat(model, request, { stream, step }), async (span) => {
      const reply = await askModel(model, version, request, options)
      noteReply(span, model, reply)
      return reply
    })
  } catch (error) {
    return Promise.reject(error)
  }
}

function checkCall(model: LanguageModel, options: CallOptions): SpecVersion {
  const version = checkModel(model)
  if (options.stream === false && typeof model.doGenerate !== 'function') {
    throw new InvalidOptionError(
      'stream',
      'is false, and the model has no doGenerate',
      'Leave it out, or add doGenerate.',
    )
  }
  checkTime('timeoutMs', options.timeoutMs)
  checkTime('idleTimeoutMs', options.idleTimeoutMs)
  return version
}

async function askModel(
  model: LanguageModel,
  version: SpecVersion,
  request: ModelRequest,
  options: CallOptions,
): Promise<ModelReply> {
  const { clock, signal } = options
  const callOptions = toCallOptions(request, version)
  let prompt = new CallPrompt(model, request.messages, version)
  const limits = {
    clock,
    signal,
    timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    idleTimeoutMs: options.idleTimeoutMs,
    stream: options.stream ?? true,
  }
  let attempts = 0
  let streamed = false
  let thrown: { readonly error: unknown } | undefined
  const onEvent = (event: ModelEvent) => {
    try {
      options.onEvent?.(event)
    } catch (error) {
      thrown = { error }
      throw error
    }
  }
  const collected = await retryModel(
    (attempt) => {
      if (attempt > attempts) onEvent({ type: 'attempt', attempt })
      attempts = attempt
      streamed = false
      return runAttempt(model, callOptions, prompt.messages, limits, (delta) => {
        streamed = true
        onEvent({ ...delta, attempt })
      })
    },
    options.retry ?? {},
    {
      clock,
      signal,
      random: options.random,
      // A listener's error may look like a broken connection, but it is not the model's.
      isFinal: (error) => thrown !== undefined && thrown.error === error,
      // A model may do with its prompt what it likes: that is no failure of it.
      isVoid: (error) => {
        if (!changesPrompt(model, error) || streamed) return false
        prompt = new CallPrompt(model, request.messages, version)
        return true
      },
      model: { provider: model.provider, id: model.modelId },
      onFailure: (attempt, failure, delayMs) => {
        if (streamed) onEvent({ type: 'superseded', attempt })
        onEvent({ type: 'failure', attempt, failure, delayMs })
      },
    },
  )
  prompt.settle()
  return toReply(model, request, collected, {
    attempts,
    id: options.messageId ?? newMessageId(),
    at: clock.now(),
    sizes: options.sizes ?? new RememberedSizes(),
  })
}

/** The spec version that a model follows; refuses what is not an AI SDK language model. */
export function checkModel(model: LanguageModel): SpecVersion {
  const version: unknown = (model as Partial<LanguageModel> | null | undefined)?.specificationVersion
  if (typeof version === 'string' && VERSIONS.includes(version)) {
    if (typeof model.doGenerate === 'function' || typeof model.doStream === 'function') return version as SpecVersion
  }
  const said =
    typeof model === 'string' ? `is the text ${JSON.stringify(model)}` : 'is not a language model of the AI SDK'
  const spec = version === undefined ? '' : ` (it follows ${JSON.stringify(version)})`
  throw new InvalidOptionError(
    'model',
    `${said}${spec}`,
    `Pass one of spec ${VERSIONS.join(', ')}, such as createOpenAICompatible({ name, baseURL, apiKey })('model').`,
  )
}

function checkTime(field: string, ms: number | undefined): void {
  if (ms === undefined || ms > 0) return
  throw new InvalidOptionError(field, `is ${String(ms)}`, 'Pass milliseconds above 0, or leave it out.')
}

/** The options of `doGenerate` and `doStream`, which are almost the same in all versions. */
function toCallOptions(request: ModelRequest, version: SpecVersion): Readonly<Record<string, unknown>> {
  const { tools, toolChoice, settings = {} } = request
  const { reasoning, ...shared } = settings
  return {
    ...shared,
    ...(version === 'v4' && reasoning !== undefined ? { reasoning } : {}),
    ...(tools === undefined || tools.length === 0
      ? {}
      : {
          tools: tools.map((tool) =>
            tool.type === 'provider' && version === 'v2' ? { ...tool, type: 'provider-defined' } : tool,
          ),
          toolChoice: toToolChoice(toolChoice ?? 'auto'),
        }),
  }
}

function toToolChoice(choice: NonNullable<ModelRequest['toolChoice']>): unknown {
  return typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: choice.tool }
}

function toReply(
  model: LanguageModel,
  request: ModelRequest,
  collected: CollectedReply,
  made: { readonly attempts: number; readonly id: string; readonly at: number; readonly sizes: PromptSizes },
): ModelReply {
  const { parts, finish, response } = collected
  const usage = completeUsage(collected.usage, {
    input: () => made.sizes.of(request.messages, request.tools),
    output: () => estimateParts(parts),
  })
  const actual = response.actual === model.modelId ? undefined : response.actual
  return {
    message: {
      id: made.id,
      v: MESSAGE_VERSION,
      role: 'assistant',
      parts,
      at: made.at,
      usage,
      model: {
        provider: model.provider,
        id: model.modelId,
        ...(actual === undefined ? {} : { actual }),
        ...(response.responseId === undefined ? {} : { responseId: response.responseId }),
      },
      finish,
      ...(collected.providerMetadata === undefined ? {} : { providerMetadata: collected.providerMetadata }),
    },
    finish: finish.reason,
    usage,
    warnings: collected.warnings,
    attempts: made.attempts,
  }
}
