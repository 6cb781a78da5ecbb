import type { Value } from '../codec/value.js'
import type { ToolCallPart } from './message-part.js'

/**
 * The arguments of a tool call from the text that the model wrote. Text that is no JSON is kept as it is, so that the
 * model can be told what was wrong with it; nothing at all means no arguments.
 */
export function readToolInput(text: string): Pick<ToolCallPart, 'input' | 'invalid' | 'raw'> {
  if (text.trim() === '') return { input: {} }
  try {
    return { input: JSON.parse(text) as Value }
  } catch {
    return { input: {}, invalid: true, raw: text }
  }
}
