export type { AiPrompt, AnyAiMessage, SpecVersion } from './ai-sdk-types.js'
export { checkMessage, checkMessages, toMessage } from './check-message.js'
export { estimateTokens, loadTokenCounter, type TokenCounter } from './estimate.js'
export { fromAiSdkMessages, type FromOptions } from './from-ai-sdk.js'
export { fromOpenAiMessages } from './from-openai.js'
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
export type { OpenAiContentPart, OpenAiMessage, OpenAiToolCall } from './openai-types.js'
export { toAiSdkPrompt } from './to-ai-sdk.js'
export { toOpenAiMessages } from './to-openai.js'
export { costOf } from '../model/cost.js'
export type { ModelFailure } from '../model/model-failure.js'
export type { ModelEvent } from '../model/model-types.js'
export { addUsage } from '../model/usage.js'
