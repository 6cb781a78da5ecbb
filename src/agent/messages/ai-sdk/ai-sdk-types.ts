/** The versions of the AI SDK's language model interface that are understood. */
export type SpecVersion = 'v2' | 'v3' | 'v4'

type Options = { providerOptions?: Record<string, { [key: string]: AiJson | undefined }> }

/** The prompt of spec V3, as `@ai-sdk/provider` 3 declares it. */
export type AiPrompt = AiMessage[]

type AiMessage = Options &
  (
    | { role: 'system'; content: string }
    | { role: 'user'; content: (AiTextPart | AiFilePart)[] }
    | {
        role: 'assistant'
        content: (AiTextPart | AiFilePart | AiReasoningPart | AiToolCallPart | AiToolResultPart)[]
      }
    | { role: 'tool'; content: (AiToolResultPart | AiApprovalResponsePart)[] }
  )

type AiTextPart = Options & { type: 'text'; text: string }
type AiReasoningPart = Options & { type: 'reasoning'; text: string }
type AiFilePart = Options & {
  type: 'file'
  filename?: string
  data: Uint8Array | string | URL
  originalUrl?: string
  mediaType: string
}
type AiToolCallPart = Options & {
  type: 'tool-call'
  toolCallId: string
  toolName: string
  input: unknown
  providerExecuted?: boolean
}
type AiToolResultPart = Options & {
  type: 'tool-result'
  toolCallId: string
  toolName: string
  output: AiToolOutput
}
type AiApprovalResponsePart = Options & {
  type: 'tool-approval-response'
  approvalId: string
  approved: boolean
  reason?: string
}
type AiToolOutput =
  | (Options & { type: 'text'; value: string })
  | (Options & { type: 'json'; value: AiJson })
  | (Options & { type: 'execution-denied'; reason?: string })
  | (Options & { type: 'error-text'; value: string })
  | (Options & { type: 'error-json'; value: AiJson })
  | { type: 'content'; value: AiContentItem[] }
type AiContentItem = Options &
  (
    | { type: 'text'; text: string }
    | { type: 'file-data'; data: string; mediaType: string; filename?: string }
    | { type: 'file-url'; url: string; mediaType?: string }
    | { type: 'file-id'; fileId: string | Record<string, string> }
    | { type: 'image-data'; data: string; mediaType: string }
    | { type: 'image-url'; url: string }
    | { type: 'image-file-id'; fileId: string | Record<string, string> }
    | { type: 'custom' }
  )

/** JSON as the AI SDK declares it: mutable. */
type AiJson = null | string | number | boolean | AiJson[] | { [key: string]: AiJson | undefined }

/** A message of any version: the shapes above as V2 and V4 have them. */
export interface AnyAiMessage {
  readonly role: string
  readonly content: unknown
  readonly providerOptions?: unknown
}
