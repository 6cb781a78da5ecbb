import type { Value } from '../../codec/value.js'
import type { ToolCallPart } from '../messages/message-part.js'

/**
 * The arguments of a tool call from the text that the model wrote. Text that is not JSON is kept as it is, so that the
 * model can be told what was wrong with it; empty text means no arguments.
 */
export function readToolInput(text: string): Pick<ToolCallPart, 'input' | 'invalid' | 'raw'> {
  if (text.trim() === '') return { input: {} }
  try {
    return { input: JSON.parse(text) as Value }
  } catch {
    return { input: {}, invalid: true, raw: text }
  }
}

/**
 * The same for a reply, where only an object will do: providers refuse anything else when it is sent back to them. Some
 * servers write null for no arguments.
 */
export function readArguments(text: string): Pick<ToolCallPart, 'input' | 'invalid' | 'raw'> {
  const read = readToolInput(text)
  if (read.input === null) return { input: {}, raw: text }
  const isObject = typeof read.input === 'object' && !Array.isArray(read.input)
  return isObject ? read : { input: {}, invalid: true, raw: text }
}
