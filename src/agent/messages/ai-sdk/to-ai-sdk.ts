import type { AiPrompt, AnyAiMessage, SpecVersion } from './ai-sdk-types.js'
import { copyJson, freezeJson } from '../frozen-json.js'
import type { Message } from '../message.js'
import { toAiMessage } from './to-ai-message.js'

/**
 * The AI SDK's prompt from messages. What it has no place for is dropped: ids, times, usage, model and finish of a
 * message; sources and approval requests; a tool's version; before V4, the name of a file that a tool returns by URL. A
 * refusal becomes text, arguments that are not JSON become `{}`, dates, bigints and bytes inside values become text,
 * and a message that then holds nothing is left out.
 *
 * V2 also lacks denials (they become errors), approvals, and URLs in a tool's output (they become text). V2 and V3 lack
 * inline text files (they become bytes), custom parts and reasoning files (left out), and files stored by a provider,
 * which are refused.
 */
export function toAiSdkPrompt(messages: readonly Message[], version?: 'v3'): AiPrompt
export function toAiSdkPrompt(messages: readonly Message[], version: SpecVersion): AnyAiMessage[]
export function toAiSdkPrompt(messages: readonly Message[], version: SpecVersion = 'v3'): AnyAiMessage[] {
  const { fresh: prompt, made, count } = convertMessages(messages, version)
  for (let at = 0; at < count; at++) {
    const each = made[at]
    if (each !== undefined) prompt.push(copyJson(each.message))
  }
  return prompt
}

/** The messages of a prompt: those at its start that were made anew, and what was made of those that can't change. */
export interface ConvertedMessages extends Pick<Conversion, 'made' | 'left'> {
  readonly fresh: AnyAiMessage[]
  /** How many of `made` they are: the conversation may have been longer before. */
  readonly count: number
}

/** What was made of the messages of a conversation. */
interface Conversion {
  readonly version: SpecVersion
  /** Undefined for one that can still be changed. */
  readonly messages: (Message | undefined)[]
  readonly made: (Converted | undefined)[]
  /** By model: which of them it has left as they were. */
  readonly left: WeakMap<object, LeftAlone>
}

export interface Converted {
  readonly message: AnyAiMessage
  /** It is nothing but JSON, and frozen throughout. */
  readonly isFixed: boolean
}

/** The messages of a conversation that a model was handed copies of, and did not change. */
export interface LeftAlone {
  readonly isLeft: boolean[]
  /** Those at the start, without a gap, as they can be handed out, and how many messages they were made of. */
  readonly lead: AnyAiMessage[]
  count: number
}

/** The newest conversion of each conversation, by its first message: all of it is needed again for every turn. */
const CONVERTED = new WeakMap<Message, Conversion>()

/** Converts what is new since the last time. */
export function convertMessages(messages: readonly Message[], version: SpecVersion): ConvertedMessages {
  const fresh: AnyAiMessage[] = []
  let at = 0
  // What comes first may be made anew for each turn, as instructions are.
  for (; at < messages.length && !Object.isFrozen(messages[at]); at++) {
    const made = toAiMessage(messages[at] as Message, version, at)
    if (made !== undefined) fresh.push(made)
  }
  const first = messages[at]
  if (first === undefined) return { fresh, made: [], count: 0, left: new WeakMap() }
  const known = CONVERTED.get(first)
  let conversion = known?.version === version ? known : startOf({ version, messages: [], made: [] }, 0)
  let count = 0
  for (; at < messages.length; count++, at++) {
    const message = messages[at] as Message
    if (conversion.messages[count] === message) continue
    // Another conversation with the same beginning keeps what it has.
    if (count < conversion.messages.length) conversion = startOf(conversion, count)
    conversion.made.push(convert(message, version, at))
    conversion.messages.push(Object.isFrozen(message) ? message : undefined)
  }
  if (conversion !== known) CONVERTED.set(first, conversion)
  return { fresh, made: conversion.made, count, left: conversion.left }
}

function startOf({ version, messages, made }: Omit<Conversion, 'left'>, length: number): Conversion {
  return { version, messages: messages.slice(0, length), made: made.slice(0, length), left: new WeakMap() }
}

function convert(message: Message, version: SpecVersion, index: number): Converted | undefined {
  const made = toAiMessage(message, version, index)
  return made && { message: made, isFixed: freezeJson(made) }
}
