export type { AiPrompt, AnyAiMessage, SpecVersion } from './ai-sdk/ai-sdk-types.js'
export { checkMessage, checkMessages, toMessage } from './check-message.js'
export { estimateTokens, loadTokenCounter, type TokenCounter } from './estimate.js'
export { fromAiSdkMessages, type FromOptions } from './ai-sdk/from-ai-sdk.js'
export { fromOpenAiMessages } from './openai/from-openai.js'
export type {
  ApprovalRequestPart,
  ApprovalResponsePart,
  ContentItem,
  CustomPart,
  FileData,
  FilePart,
  PartType,
  ProviderData,
  ReasoningFilePart,
  ReasoningPart,
  RefusalPart,
  SourcePart,
  TextPart,
  ToolCallPart,
  ToolOutput,
  ToolResultPart,
} from './message-part.js'
export { type FinishReason, makeMessage, type MessageOptions, type ModelRef, type Role } from './message.js'
export type { OpenAiContentPart, OpenAiMessage, OpenAiToolCall } from './openai/openai-types.js'
export { toAiSdkPrompt } from './ai-sdk/to-ai-sdk.js'
export { toOpenAiMessages } from './openai/to-openai.js'
export { costOf } from '../model/cost/cost.js'
export type { ModelFailure } from '../model/attempt/model-failure.js'
export type { ModelEvent } from '../model/model-types.js'
export { addUsage } from '../model/cost/usage.js'
