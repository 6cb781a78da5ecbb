import { MissingDependencyError } from '../../core/errors.js'
import type { Message } from './message.js'
import type { ContentItem, FileData, Part, ToolOutput } from './message-part.js'
import { toJson } from './plain.js'

/** Counts the tokens of a text. */
export type TokenCounter = (text: string) => number

/** What a message costs besides its content: role and separators. */
const PER_MESSAGE = 4
/** What primes the reply. */
const PER_PROMPT = 3
/** The frame of a tool call or result besides name and arguments. */
const PER_TOOL_USE = 8
/**
 * An image of typical size. Providers count from 85 to 1,600, depending on its dimensions, which are not known here.
 */
const PER_IMAGE = 1_000
/** A document, audio or video whose content is not text. */
const PER_FILE = 2_000

const LETTERS_PER_TOKEN = 4.5
const SIGNS_PER_TOKEN = 2
const OTHERS_PER_TOKEN = 1.5

/**
 * Tokens of a text, estimated from its characters: one token per four and a half ASCII letters or spaces, two digits or
 * signs, or one and a half of any other characters. English, German, Chinese, JSON and code come within a fifth of what
 * OpenAI's tokenizer counts; Cyrillic comes out at twice as much, long hexadecimal text at two thirds.
 */
export function estimateTextTokens(text: string): number {
  let letters = 0
  let others = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code > 127) others++
    // a to z in both cases, the space and the line break.
    else if (((code | 32) >= 97 && (code | 32) <= 122) || code === 32 || code === 10) letters++
  }
  const signs = text.length - letters - others
  return Math.ceil(letters / LETTERS_PER_TOKEN + signs / SIGNS_PER_TOKEN + others / OTHERS_PER_TOKEN)
}

/** Tokens that these messages, and the tools shown with them, are likely to take in a prompt. */
export function estimateTokens(
  messages: readonly Message[],
  options: { readonly count?: TokenCounter; readonly tools?: readonly unknown[] } = {},
): number {
  const count = options.count ?? estimateTextTokens
  let tokens = PER_PROMPT
  for (const message of messages) tokens += PER_MESSAGE + estimateParts(message.parts, count)
  for (const tool of options.tools ?? []) tokens += PER_TOOL_USE + count(JSON.stringify(tool) ?? '')
  return tokens
}

/** Tokens of the parts of one message, without its framing. */
export function estimateParts(parts: readonly Part[], count: TokenCounter = estimateTextTokens): number {
  return parts.reduce((tokens, part) => tokens + estimatePart(part, count), 0)
}

/**
 * The exact counter for OpenAI's models, from the optional package gpt-tokenizer. For other models it is an estimate
 * too.
 */
export async function loadTokenCounter(): Promise<TokenCounter> {
  try {
    const { countTokens } = await import('gpt-tokenizer')
    // Text that spells a special token is still text here; by default the package would throw.
    const options = { disallowedSpecial: new Set<string>() }
    return (text) => countTokens(text, options)
  } catch (cause) {
    throw new MissingDependencyError('gpt-tokenizer', 'npm install gpt-tokenizer', {
      what: 'Counting tokens exactly',
      cause,
    })
  }
}

function estimatePart(part: Part, count: TokenCounter): number {
  switch (part.type) {
    case 'text':
    case 'reasoning':
    case 'refusal':
      return count(part.text)
    case 'file':
    case 'reasoning-file':
      return estimateFile(part.data, part.mediaType, count)
    case 'tool-call':
      return PER_TOOL_USE + count(part.name) + count(part.raw ?? JSON.stringify(toJson(part.input)))
    case 'tool-result':
      return PER_TOOL_USE + estimateOutput(part.output, count)
    case 'tool-approval-response':
      return count(part.reason ?? '')
    default:
      // Sources are never sent; the others weigh nothing.
      return 0
  }
}

function estimateOutput(output: ToolOutput, count: TokenCounter): number {
  switch (output.type) {
    case 'text':
    case 'error':
      return count(output.value)
    case 'json':
    case 'error-json':
      return count(JSON.stringify(toJson(output.value)))
    case 'denied':
      return count(output.reason ?? '') + PER_TOOL_USE
    case 'content':
      return output.value.reduce((tokens, item) => tokens + estimateItem(item, count), 0)
  }
}

function estimateItem(item: ContentItem, count: TokenCounter): number {
  if (item.type === 'text') return count(item.text)
  if (item.type === 'custom') return 0
  return estimateFile(item.data, item.mediaType ?? (item.image ? 'image/*' : ''), count)
}

function estimateFile(data: FileData, mediaType: string, count: TokenCounter): number {
  if (data.kind === 'text') return count(data.text)
  if (mediaType.startsWith('image/')) return PER_IMAGE
  if (data.kind === 'bytes' && mediaType.startsWith('text/')) return count(Buffer.from(data.bytes).toString())
  return PER_FILE
}
