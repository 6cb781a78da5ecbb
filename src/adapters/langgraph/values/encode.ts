import { types } from 'node:util'
import { Document } from '@langchain/core/documents'
import { isDeltaSnapshot } from '@langchain/langgraph-checkpoint'
import type { Value } from '../../../index.js'
import { InvalidValueError } from '../../../errors.js'
import { messageClass, messageFields } from './message-classes.js'

/**
 * The key that marks a node which stands for something JSON lacks: `{ $: 'Map', v: […] }`. A user's object that has
 * this key is stored as `{ $: 'object', v: [[key, value], …] }`, so the two never collide.
 */
export const TAG = '$'

export type PathPart = string | number

/** Built-in errors that come back as themselves; any other comes back as Error with its name. */
const ERRORS = [
  'Error',
  'AggregateError',
  'EvalError',
  'RangeError',
  'ReferenceError',
  'SyntaxError',
  'TypeError',
  'URIError',
]

const TYPED_ARRAYS = [
  'Int8Array',
  'Uint8ClampedArray',
  'Int16Array',
  'Uint16Array',
  'Int32Array',
  'Uint32Array',
  'Float32Array',
  'Float64Array',
  'BigInt64Array',
  'BigUint64Array',
]

/** Classes of LangGraph that know their own plain form, which LangGraph reads back. */
const PLAIN_FORMS = new Set(['Send', 'Command', 'Overwrite'])

/** The stored form of any value that can be stored; what can't be is refused with its path. */
export function encode(value: unknown, path: readonly PathPart[]): Value {
  return new Encoder([...path]).node(value)
}

class Encoder {
  readonly #path: PathPart[]
  readonly #ancestors: object[] = []

  constructor(path: PathPart[]) {
    this.#path = path
  }

  node(value: unknown): Value {
    switch (typeof value) {
      case 'string':
      case 'number':
      case 'boolean':
      case 'bigint':
        return value
      case 'undefined':
        return { [TAG]: 'undefined' }
      case 'object':
        return value === null ? null : this.#object(value)
      default:
        throw this.#refuse(`is a ${typeof value}`, 'Keep functions and symbols out of the state.')
    }
  }

  #object(value: object): Value {
    if (types.isUint8Array(value)) return value
    if (types.isDate(value)) {
      if (Number.isNaN(value.getTime())) throw this.#refuse('is an invalid Date', 'Use null or a valid Date.')
      return value
    }
    if (this.#ancestors.includes(value)) {
      throw this.#refuse('refers back to an object that contains it', 'Store an id instead.')
    }
    this.#ancestors.push(value)
    // Not `map`, which leaves out what was never set.
    const node = Array.isArray(value) ? Array.from(value, (item, i) => this.#child(i, item)) : this.#record(value)
    this.#ancestors.pop()
    return node
  }

  #record(value: object): Value {
    if (isPlainObject(value)) return this.#plain(value)
    if (types.isMap(value)) return this.#tag('Map', this.#entries([...value]))
    if (types.isSet(value)) return this.#tag('Set', this.node([...value]))
    if (types.isRegExp(value)) return { [TAG]: 'RegExp', v: [value.source, value.flags] }
    if (types.isNativeError(value)) return this.#error(value)
    if (isDeltaSnapshot(value)) return this.#tag('DeltaSnapshot', this.#child('value', value.value))
    const message = messageClass(value)
    if (message !== undefined) return { [TAG]: 'message', class: message, v: this.#fields(messageFields(value)) }
    if (value instanceof Document) return this.#tag('Document', this.#fields({ ...value }))
    const typedArray = TYPED_ARRAYS.find((name) => Object.prototype.toString.call(value) === `[object ${name}]`)
    if (typedArray !== undefined && types.isTypedArray(value)) {
      const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
      return { [TAG]: 'typed', class: typedArray, v: bytes }
    }
    const plain = plainForm(value)
    if (plain !== undefined) return this.node(plain)
    throw this.#refuse(`is a ${className(value)}`, 'Convert it to plain data before you put it into the state.')
  }

  #plain(value: object): Value {
    if (Object.getOwnPropertySymbols(value).length > 0) throw this.#refuse('has a symbol as a key', 'Use text keys.')
    const keys = Object.keys(value)
    if (keys.includes(TAG)) {
      return this.#tag(
        'object',
        keys.map((key) => [key, this.#child(key, (value as Record<string, unknown>)[key])]),
      )
    }
    return this.#fields(value)
  }

  /** Of a closed set of names, or of a plain object without the tag. */
  #fields(value: object): Value {
    const node: Record<string, Value> = {}
    for (const key of Object.keys(value)) {
      setOwn(node, key, this.#child(key, (value as Record<string, unknown>)[key]))
    }
    return node
  }

  #entries(entries: readonly (readonly [unknown, unknown])[]): Value {
    return entries.map(([key, value], i) => [this.#child(i, key), this.#child(i, value)])
  }

  #error(error: Error): Value {
    const { name, message, stack, cause } = error
    const own = Object.keys(error).filter((key) => key !== 'name' && key !== 'message' && key !== 'stack')
    const node: Record<string, Value> = {
      [TAG]: 'Error',
      class: ERRORS.find((known) => error.constructor?.name === known) ?? 'Error',
      name: String(name),
      message: String(message),
    }
    if (typeof stack === 'string') node['stack'] = stack
    if (Object.hasOwn(error, 'cause')) node['cause'] = this.#child('cause', cause)
    const rest = own.filter((key) => key !== 'cause' && key !== 'errors')
    // Not among the keys: what an AggregateError gathers is as hidden as its message.
    if (Object.hasOwn(error, 'errors')) node['errors'] = this.#child('errors', (error as AggregateError).errors)
    if (rest.length > 0) {
      const record = error as unknown as Record<string, unknown>
      node['own'] = rest.map((key) => [key, this.#child(key, record[key])])
    }
    return node
  }

  #tag(tag: string, v: Value): Value {
    return { [TAG]: tag, v }
  }

  #child(part: PathPart, value: unknown): Value {
    this.#path.push(part)
    const node = this.node(value)
    this.#path.pop()
    return node
  }

  #refuse(problem: string, remedy: string): InvalidValueError {
    return new InvalidValueError(renderPath(this.#path), problem, remedy)
  }
}

/** Without a prototype of its own making, also when it comes from another realm. */
export function isPlainObject(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null
  if (prototype === null || prototype === Object.prototype) return true
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'hasOwnProperty')
}

/** Sets an own property even when the key is `__proto__`. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
}

function plainForm(value: object): unknown {
  const { lg_name: name, toJSON } = value as { lg_name?: unknown; toJSON?: () => unknown }
  if (typeof name !== 'string' || !PLAIN_FORMS.has(name) || typeof toJSON !== 'function') return undefined
  const form = toJSON.call(value) as Record<string, unknown>
  // LangGraph knows a stored Send by its node and arguments alone. What none of them was given need not be stored.
  const isPart = (key: string): boolean => form[key] !== undefined && !(name === 'Send' && key === 'lg_name')
  return Object.fromEntries(
    Object.keys(form)
      .filter(isPart)
      .map((key) => [key, form[key]]),
  )
}

function renderPath(path: readonly PathPart[]): string {
  let text = '$'
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else text += /^[A-Za-z_$][\w$]*$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`
  }
  return text
}

function className(value: object): string {
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name
  return typeof name === 'string' && name !== '' ? name : 'class instance'
}
