import type { OpenSpan, SpanPlan } from '../../telemetry/observer.js'
import type { PendingCall } from '../agent-state.js'
import type { Message } from '../messages/message.js'
import type { Part } from '../messages/message-part.js'
import type { LanguageModel, ModelReply, ModelRequest } from './model-types.js'
import type { Tool } from '../tools/tool.js'

/** Provider names in OpenTelemetry's conventions, where the AI SDK has different ones. */
const PROVIDERS: Readonly<Record<string, string>> = {
  'amazon-bedrock': 'aws.bedrock',
  azure: 'azure.ai.openai',
  'azure-openai': 'azure.ai.openai',
  google: 'gcp.gemini',
  'google.generative-ai': 'gcp.gemini',
  'google.vertex': 'gcp.vertex_ai',
  mistral: 'mistral_ai',
  xai: 'x_ai',
}

/** `openai` of `openai.chat`: the AI SDK adds which of a provider's interfaces it is. */
export function providerName(provider: string): string {
  const [first = '', second = ''] = provider.split('.')
  return PROVIDERS[`${first}.${second}`] ?? PROVIDERS[first] ?? (first || '_OTHER')
}

/** The span of a call to a model, by the conventions for generative AI. */
export function planChat(
  model: LanguageModel,
  request: ModelRequest,
  { stream, step }: { readonly stream: boolean; readonly step: string | undefined },
): SpanPlan {
  const { settings = {}, messages } = request
  const id = model.modelId
  const about = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': providerName(model.provider ?? ''),
    'gen_ai.request.model': id,
  }
  const { responseFormat } = settings
  return {
    name: `chat ${id}`,
    kind: 'client',
    attributes: {
      ...about,
      'holdfast.step': step,
      'gen_ai.request.stream': stream,
      'gen_ai.request.max_tokens': settings.maxOutputTokens,
      'gen_ai.request.temperature': settings.temperature,
      'gen_ai.request.top_p': settings.topP,
      'gen_ai.request.top_k': settings.topK,
      'gen_ai.request.presence_penalty': settings.presencePenalty,
      'gen_ai.request.frequency_penalty': settings.frequencyPenalty,
      'gen_ai.request.stop_sequences': settings.stopSequences && [...settings.stopSequences],
      'gen_ai.request.seed': settings.seed,
      'gen_ai.output.type': responseFormat?.type,
    },
    measured: about,
    content: () => ({
      'gen_ai.system_instructions': JSON.stringify(messages.filter(isSystem).flatMap(({ parts }) => parts.map(toPart))),
      'gen_ai.input.messages': JSON.stringify(messages.filter((one) => !isSystem(one)).map(toMessage)),
    }),
  }
}

/** What is known about a call when it has ended. */
export function noteReply(
  span: OpenSpan,
  model: LanguageModel,
  { message, finish, usage, attempts }: ModelReply,
): void {
  const reason = finish.replaceAll('-', '_')
  span.set({
    'gen_ai.response.model': message.model?.actual ?? model.modelId,
    'gen_ai.response.id': message.model?.responseId,
    'gen_ai.response.finish_reasons': [reason],
    'gen_ai.usage.input_tokens': usage.input,
    'gen_ai.usage.output_tokens': usage.output,
    'gen_ai.usage.cache_read.input_tokens': usage.cachedInput,
    'gen_ai.usage.cache_creation.input_tokens': usage.cacheWrite,
    'gen_ai.usage.reasoning.output_tokens': usage.reasoning,
    'holdfast.model.attempts': attempts,
  })
  span.content(() => ({
    'gen_ai.output.messages': JSON.stringify([
      // Messages have their own vocabulary in the conventions; the attribute above holds what the provider says.
      { ...toMessage(message), finish_reason: finish === 'tool-calls' ? 'tool_call' : reason },
    ]),
  }))
}

/** The span of a tool's execution. */
export function planTool(tool: Tool, { callId, name, input }: PendingCall): SpanPlan {
  return {
    name: `execute_tool ${name}`,
    kind: 'internal',
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.call.id': callId,
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.description': tool.description,
      'holdfast.effect': tool.effect,
    },
    content: () => ({ 'gen_ai.tool.call.arguments': JSON.stringify(input) }),
    result: (update) => {
      const parts = (update as { readonly messages?: readonly Message[] } | undefined)?.messages?.[0]?.parts ?? []
      const [answer] = parts.map(toPart)
      return { 'gen_ai.tool.call.result': answer && 'response' in answer ? JSON.stringify(answer.response) : undefined }
    },
  }
}

function isSystem({ role }: Message): boolean {
  return role === 'system'
}

function toMessage({ role, parts }: Message) {
  return { role, parts: parts.map(toPart) }
}

// Files and provider-specific content are named, not copied: a span is no place for megabytes.
function toPart(part: Part) {
  switch (part.type) {
    case 'text':
    case 'reasoning':
      return { type: part.type, content: part.text }
    case 'refusal':
      return { type: 'text', content: part.text }
    case 'tool-call':
      return { type: 'tool_call', id: part.callId, name: part.name, arguments: part.input }
    case 'tool-result': {
      const { output } = part
      return { type: 'tool_call_response', id: part.callId, response: 'value' in output ? output.value : output.type }
    }
    default:
      return { type: part.type }
  }
}
