import type { Value } from '../../../index.js'
import { encode, isPlainObject, TAG } from './encode.js'
import { messageClass, messageFields } from './message-classes.js'

/** How much of a long value is compared before equal references are trusted. */
export interface Effort {
  left: number
}

/** Taking a message apart costs about as much as comparing this many values. */
const MESSAGE_EFFORT = 6

/** Whether a live value is what a stored node stands for. Allocates nothing for plain data. */
export function matches(value: unknown, node: Value, effort: Effort): boolean {
  effort.left -= 1
  if (typeof value !== 'object' || value === null) {
    if (value === undefined) return sameNode({ [TAG]: 'undefined' }, node)
    return Object.is(value, node)
  }
  if (typeof node !== 'object' || node === null) return false
  if (Array.isArray(value)) {
    if (!Array.isArray(node) || node.length !== value.length) return false
    return value.every((item, i) => matches(item, node[i] as Value, effort))
  }
  if (isPlainObject(value) && !Object.hasOwn(value, TAG)) return matchesRecord(value, node, effort)
  const message = messageClass(value)
  if (message === undefined) return sameNode(encode(value, []), node)
  const { [TAG]: tag, class: name, v } = node as { readonly [key: string]: Value }
  if (tag !== 'message' || name !== message) return false
  effort.left -= MESSAGE_EFFORT
  return matchesRecord(messageFields(value), v as object, effort)
}

function matchesRecord(value: object, node: object, effort: Effort): boolean {
  if (!isRecordNode(node as Value) || Object.getOwnPropertySymbols(value).length > 0) return false
  const keys = Object.keys(value)
  const stored = Object.keys(node)
  if (keys.length !== stored.length) return false
  // In the same order: what comes back lists its keys as they were given.
  return keys.every((key, i) => {
    if (key !== stored[i]) return false
    return matches((value as Record<string, unknown>)[key], (node as Record<string, Value>)[key] as Value, effort)
  })
}

/** An object as it is, and no node that stands for something else. */
export function isRecordNode(node: Value | undefined): node is { readonly [key: string]: Value } {
  if (typeof node !== 'object' || node === null || Array.isArray(node)) return false
  return !(node instanceof Date) && !(node instanceof Uint8Array) && !Object.hasOwn(node, TAG)
}

/** Equality of two stored forms. */
export function sameNode(a: Value | undefined, b: Value | undefined): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (a instanceof Date || b instanceof Date) {
    return a instanceof Date && b instanceof Date && a.getTime() === b.getTime()
  }
  if (a instanceof Uint8Array || b instanceof Uint8Array) {
    return a instanceof Uint8Array && b instanceof Uint8Array && Buffer.from(a).equals(b)
  }
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false
    return a.every((item, i) => sameNode(item as Value, b[i] as Value))
  }
  const [left, right] = [a as Record<string, Value>, b as Record<string, Value>]
  const keys = Object.keys(left)
  const others = Object.keys(right)
  return keys.length === others.length && keys.every((key, i) => key === others[i] && sameNode(left[key], right[key]))
}
