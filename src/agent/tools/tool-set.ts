import type { Value } from '../../codec/value.js'
import { andThen, nowOrLater } from '../../core/async/at-once.js'
import { InvalidOptionError } from '../../core/errors.js'
import { lazyFields, withLazyFields } from '../../core/lazy-fields.js'
import type { AiPrompt } from '../messages/ai-sdk/ai-sdk-types.js'
import { checkOutput } from '../messages/check-message.js'
import { outputFrom } from '../messages/ai-sdk/from-ai-sdk.js'
import type { FinishReason } from '../messages/message.js'
import type { ToolCallPart, ToolOutput } from '../messages/message-part.js'
import type { JsonObject, ModelTool } from '../model/model-types.js'
import { TimeLimit } from '../../runtime/program/time-limit.js'
import { toJsonSchema, type ToolSchema, validateWith } from './schema.js'
import { toAiSdkPrompt } from '../messages/ai-sdk/to-ai-sdk.js'
import { checkToolOptions, isTool, LIMIT, type Tool, makeTool, type ToolContext, type ToolOptions } from './tool.js'

/** The shape of an AI SDK tool, as far as it matters here. */
interface AiSdkTool {
  readonly type?: string | undefined
  readonly inputSchema: unknown
  readonly execute?: unknown
}

/** A tool that the provider runs itself. */
interface ProviderTool {
  readonly type: 'provider'
  readonly id: string
  readonly args: JsonObject
}

/** What users pass: Holdfast tools, AI SDK tools, and provider tools. */
export type AnyTool = Tool | AiSdkTool

/** The arguments of a call for `execute`, or the error to answer the model with. */
type ReadInput = { readonly input: unknown } | { readonly error: string; readonly isSlow?: true }

const NAME = /^[A-Za-z0-9_-]{1,64}$/

/** The name itself if providers accept it, otherwise one that they do. */
export function toToolName(name: string): string {
  return NAME.test(name) ? name : name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || 'unnamed'
}

/** Tools by name, checked. An AI SDK tool is used as it is; its effect is 'once' unless it declares one. */
export class ToolSet {
  readonly #tools = new Map<string, Tool>()
  readonly #providers = new Map<string, ProviderTool>()
  readonly #limit = new TimeLimit()
  #shown: readonly ModelTool[] | Promise<readonly ModelTool[]> | undefined
  #names: readonly string[] | undefined
  #versions: Readonly<Record<string, string>> | undefined

  constructor(tools: Readonly<Record<string, AnyTool>>) {
    for (const [name, candidate] of Object.entries(tools)) {
      if (!NAME.test(name)) {
        throw new InvalidOptionError(
          `tools[${JSON.stringify(name)}]`,
          'has a name that providers refuse',
          'Use up to 64 letters, digits, _ and -.',
        )
      }
      const provider = asProviderTool(candidate)
      if (provider === undefined) this.#tools.set(name, { ...asTool(candidate, `tools.${name}`), [LIMIT]: this.#limit })
      else this.#providers.set(name, provider)
    }
  }

  get names(): readonly string[] {
    this.#names ??= [...this.#tools.keys(), ...this.#providers.keys()]
    return this.#names
  }

  get(name: string): Tool | undefined {
    return this.#tools.get(name)
  }

  /** Versions by name, for the tools that have one. */
  versions(): Readonly<Record<string, string>> {
    this.#versions ??= Object.fromEntries(
      [...this.#tools].flatMap(([name, { version }]) => (version === undefined ? [] : [[name, version] as const])),
    )
    return this.#versions
  }

  /** All tools as they are shown to the model. The JSON Schemas are generated once. */
  describe(): readonly ModelTool[] | Promise<readonly ModelTool[]> {
    this.#shown ??= this.#describe().then((shown) => {
      this.#shown = shown
      return shown
    })
    return this.#shown
  }

  /** The arguments of a call for `execute`, or the error to answer the model with. */
  readInput(call: ToolCallPart, finish?: FinishReason): ReadInput | Promise<ReadInput> {
    const found = this.#tools.get(call.name)
    if (found === undefined) {
      const known = this.names.length === 0 ? 'There are no tools.' : `The tools are: ${this.names.join(', ')}.`
      return { error: `There is no tool named ${JSON.stringify(call.name)}. ${known}` }
    }
    if (call.invalid) {
      const quoted = (call.raw ?? '').slice(0, 200)
      if (finish === 'length' || finish === 'content-filter') {
        const why = finish === 'length' ? 'reached the limit of its length' : 'was held back by the provider'
        return {
          error: `Your reply ${why}: the arguments of ${call.name} were cut off, so nothing was done. They began: ${quoted}\nCall it again with shorter arguments.`,
        }
      }
      return {
        error: `The arguments of ${call.name} are not a JSON object, so nothing was done. They began: ${quoted}\nCall it again with a JSON object.`,
      }
    }
    return andThen(validateWith(found.inputSchema, call.input, this.#limit), (validated): ReadInput => {
      if (validated.ok) return { input: validated.value }
      const problems = validated.problems.map((problem) => `- ${problem}`).join('\n')
      return {
        error: `The arguments of ${call.name} do not fit, so nothing was done:\n${problems}\nCorrect them and call it again.`,
        ...(validated.isSlow ? { isSlow: true } : {}),
      }
    })
  }

  async #describe(): Promise<readonly ModelTool[]> {
    const functions = [...this.#tools].map(async ([name, found]): Promise<ModelTool> => {
      const { description, strict, providerOptions } = found
      return {
        type: 'function',
        name,
        ...(description === undefined ? {} : { description }),
        inputSchema: await toJsonSchema(found.inputSchema, found.jsonSchema, `tools.${name}`),
        ...(strict === undefined ? {} : { strict }),
        ...(providerOptions === undefined ? {} : { providerOptions }),
      }
    })
    const providers = [...this.#providers].map(
      ([name, { id, args }]): ModelTool => ({ type: 'provider', id, name, args }),
    )
    return [...(await Promise.all(functions)), ...providers]
  }
}

/** What the model is shown of a tool's result. */
export function toToolOutput(
  found: Tool,
  result: unknown,
  call: { readonly callId: string; readonly input: unknown },
): ToolOutput | Promise<ToolOutput> {
  if (found.toModelOutput !== undefined) return andThen(nowOrLater(found.toModelOutput(result, call)), readOutput)
  if (typeof result === 'string') return { type: 'text', value: result }
  return { type: 'json', value: (result === undefined ? null : result) as Value }
}

// Something no provider understands would be sent, and refused, with every later turn. The AI SDK's words are
// understood.
function readOutput(output: unknown): ToolOutput {
  const type = (output as { readonly type?: unknown } | null | undefined)?.type
  const read = type === 'error-text' || type === 'execution-denied' ? outputFrom(output, 'toModelOutput') : output
  checkOutput(read, 'toModelOutput')
  return read
}

function asTool(candidate: AnyTool, field: string): Tool {
  if (isTool(candidate)) return candidate
  checkToolOptions(candidate, field)
  return fromAiSdkTool(candidate)
}

/**
 * Its functions see the conversation in the AI SDK's shape, its `execute` may yield preliminary results, and its
 * `toModelOutput` is called the AI SDK's way.
 */
function fromAiSdkTool(options: ToolOptions): Tool {
  const { execute, needsApproval, toModelOutput, ...rest } = options
  const foreign = toModelOutput as ((options: object) => unknown) | undefined
  return makeTool<ToolSchema, unknown>({
    ...rest,
    ...(execute === undefined
      ? {}
      : { execute: async (input, context) => lastOf(await execute(input, withTheirMessages(context))) }),
    ...(needsApproval === undefined
      ? {}
      : {
          needsApproval:
            typeof needsApproval === 'boolean'
              ? needsApproval
              : (input, context) => needsApproval(input, withTheirMessages(context)),
        }),
    ...(foreign === undefined
      ? {}
      : {
          toModelOutput: async (output, { callId, input }) =>
            outputFrom(await foreign({ toolCallId: callId, input, output }), '$'),
        }),
  })
}

/** Converted when asked for: most tools never look at the conversation. */
class TheirMessages {
  readonly #ours: ToolContext['messages']
  #prompt: AiPrompt | undefined

  constructor(ours: ToolContext['messages']) {
    this.#ours = ours
  }

  get messages(): AiPrompt {
    this.#prompt ??= toAiSdkPrompt(this.#ours)
    return this.#prompt
  }
}

const THEIRS = lazyFields(['messages'])

function withTheirMessages<Context extends Pick<ToolContext, 'messages'>>(context: Context): Context {
  const { messages, ...rest } = context
  return withLazyFields(rest, new TheirMessages(messages), THEIRS) as unknown as Context
}

async function lastOf(result: unknown): Promise<unknown> {
  if (typeof result !== 'object' || result === null || !(Symbol.asyncIterator in result)) return result
  let last: unknown
  for await (const value of result as AsyncIterable<unknown>) last = value
  return last
}

function asProviderTool(candidate: AnyTool): ProviderTool | undefined {
  const { type, id, args } = (candidate ?? {}) as unknown as Readonly<Record<string, unknown>>
  if ((type !== 'provider' && type !== 'provider-defined') || typeof id !== 'string') return undefined
  return { type: 'provider', id, args: (args ?? {}) as JsonObject }
}
