import type { Value } from '../../codec/value.js'

/** Data that belongs to one provider and means nothing to the others, such as a signature over its reasoning. */
export type ProviderData = { readonly [provider: string]: { readonly [key: string]: Value } }

type WithProviderData = { readonly providerMetadata?: ProviderData }

/** What was said. */
export type TextPart = WithProviderData & {
  readonly type: 'text'
  readonly text: string
  /** Which sources support which part of the text, as the provider reported them. */
  readonly citations?: readonly Value[]
}

/** What the model thought. `providerMetadata` holds the signature without which some providers refuse it later. */
export type ReasoningPart = WithProviderData & { readonly type: 'reasoning'; readonly text: string }

/** The model declined, in OpenAI's words. */
export type RefusalPart = WithProviderData & { readonly type: 'refusal'; readonly text: string }

/** Where the content of a file is: inline, at a URL, stored by a provider, or as text. */
export type FileData =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'url'; readonly url: string }
  | { readonly kind: 'reference'; readonly reference: string | { readonly [provider: string]: string } }
  | { readonly kind: 'text'; readonly text: string }

/** An image, a document, audio: distinguished by media type (`image/*` if the exact one is unknown). */
export type FilePart = WithProviderData & {
  readonly type: 'file'
  readonly mediaType: string
  readonly data: FileData
  readonly filename?: string
  /** The URL as it was written, if parsing or downloading changed it. */
  readonly originalUrl?: string
}

/** A file that is part of the model's reasoning. */
export type ReasoningFilePart = WithProviderData & {
  readonly type: 'reasoning-file'
  readonly mediaType: string
  readonly data: FileData
}

/** The model asks for a tool to be run. */
export type ToolCallPart = WithProviderData & {
  readonly type: 'tool-call'
  readonly callId: string
  readonly name: string
  /** The arguments. `{}` when `invalid`. */
  readonly input: Value
  /** The version of the tool that was shown to the model. */
  readonly version?: string
  /** The provider runs this tool itself. */
  readonly providerExecuted?: boolean
  /** The tool was not known when the program was written (MCP). */
  readonly dynamic?: boolean
  /**
   * The arguments are not a JSON object; `raw` is what the model wrote. The call is answered with an error, never run.
   */
  readonly invalid?: true
  readonly raw?: string
}

/** The result of a tool call; `callId` says which. */
export type ToolResultPart = WithProviderData & {
  readonly type: 'tool-result'
  readonly callId: string
  readonly name: string
  readonly output: ToolOutput
  readonly dynamic?: boolean
  /** The arguments the call was made with, if a person changed them: the call itself holds what the model wrote. */
  readonly edited?: Value
}

/** What a tool returned. Models see an `error` as something they can correct. */
export type ToolOutput = WithProviderData &
  (
    | { readonly type: 'text'; readonly value: string }
    | { readonly type: 'json'; readonly value: Value }
    | { readonly type: 'error'; readonly value: string }
    | { readonly type: 'error-json'; readonly value: Value }
    | { readonly type: 'content'; readonly value: readonly ContentItem[] }
    | { readonly type: 'denied'; readonly reason?: string }
  )

/** One item of a tool's result, if it is more than text or JSON. */
export type ContentItem = WithProviderData &
  (
    | { readonly type: 'text'; readonly text: string }
    | {
        readonly type: 'file'
        readonly data: FileData
        readonly mediaType?: string
        readonly filename?: string
        /** Shown to the model as an image. */
        readonly image?: true
      }
    | { readonly type: 'custom' }
  )

/** The model, or its provider, asks whether a call may be made. */
export type ApprovalRequestPart = WithProviderData & {
  readonly type: 'tool-approval-request'
  readonly approvalId: string
  readonly callId: string
}

/** What a person answered to such a request. */
export type ApprovalResponsePart = WithProviderData & {
  readonly type: 'tool-approval-response'
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string
}

/** A source the model used. Kept for people; never sent back. */
export type SourcePart = WithProviderData & {
  readonly type: 'source'
  readonly sourceType: 'url' | 'document'
  readonly id: string
  readonly url?: string
  readonly title?: string
  readonly mediaType?: string
  readonly filename?: string
}

/** Content that only its provider understands; `kind` is `<provider>.<name>`. */
export type CustomPart = WithProviderData & { readonly type: 'custom'; readonly kind: string }

/** One piece of a message. */
export type Part =
  | TextPart
  | ReasoningPart
  | RefusalPart
  | FilePart
  | ReasoningFilePart
  | ToolCallPart
  | ToolResultPart
  | ApprovalRequestPart
  | ApprovalResponsePart
  | SourcePart
  | CustomPart

/** The kinds of parts. */
export type PartType = Part['type']
