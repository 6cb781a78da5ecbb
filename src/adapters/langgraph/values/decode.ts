import { Document } from '@langchain/core/documents'
import { DeltaSnapshot } from '@langchain/langgraph-checkpoint'
import { isHoldfastError, type Value } from '../../../index.js'
import { CorruptError } from '../../../errors.js'
import { setOwn, TAG } from './encode.js'
import { makeMessage } from './message-classes.js'

type Tagged = { readonly [key: string]: Value }

/** The value that a stored node stands for, created again each time: the caller may change it. */
export function decode(node: Value): unknown {
  if (typeof node !== 'object' || node === null) return node
  if (node instanceof Date) return new Date(node)
  if (node instanceof Uint8Array) return new Uint8Array(node)
  if (Array.isArray(node)) return (node as readonly Value[]).map(decode)
  const record = node as Tagged
  return Object.hasOwn(record, TAG) ? decodeNamed(record) : decodeRecord(record)
}

// When a constructor gets parts of the wrong kind, its error says nothing about where it comes from.
function decodeNamed(node: Tagged): unknown {
  try {
    return decodeTagged(node)
  } catch (cause) {
    if (isHoldfastError(cause)) throw cause
    throw new CorruptError(
      `The stored state holds a malformed value of the kind ${JSON.stringify(node[TAG])}.`,
      {},
      cause,
    )
  }
}

export function decodeRecord(record: Tagged): Record<string, unknown> {
  const value: Record<string, unknown> = {}
  for (const key of Object.keys(record)) {
    if (key === '__proto__') setOwn(value, key, decode(record[key] as Value))
    else value[key] = decode(record[key] as Value)
  }
  return value
}

// Nothing here looks up a class by a stored name: each tag and each class is listed in the code.
function decodeTagged(node: Tagged): unknown {
  const { v } = node as { v: Value }
  switch (node[TAG]) {
    case 'undefined':
      return undefined
    case 'object':
      return fromEntries(v)
    case 'Map':
      return new Map(decode(v) as [unknown, unknown][])
    case 'Set':
      return new Set(decode(v) as unknown[])
    case 'RegExp': {
      const [source, flags] = v as [string, string]
      return new RegExp(source, flags)
    }
    case 'Error':
      return decodeError(node)
    case 'DeltaSnapshot':
      return new DeltaSnapshot(decode(v))
    case 'Document':
      return new Document(decodeRecord(v as Tagged) as never)
    case 'typed':
      return decodeTypedArray(String(node['class']), v as Uint8Array)
    case 'message': {
      const message = makeMessage(String(node['class']), decodeRecord(v as Tagged))
      if (message !== undefined) return message
      throw unknownNode(`the message class ${JSON.stringify(node['class'])}`)
    }
    default:
      throw unknownNode(`a value of the kind ${JSON.stringify(node[TAG])}`)
  }
}

function decodeError(node: Tagged): Error {
  const message = String(node['message'])
  const options = Object.hasOwn(node, 'cause') ? { cause: decode(node['cause'] as Value) } : undefined
  const error = makeError(String(node['class']), message, options)
  if (Object.hasOwn(node, 'errors')) setHidden(error, 'errors', decode(node['errors'] as Value))
  if (error.name !== node['name']) setHidden(error, 'name', node['name'])
  if (typeof node['stack'] === 'string') setHidden(error, 'stack', node['stack'])
  for (const [key, value] of (node['own'] ?? []) as readonly (readonly [string, Value])[]) {
    setOwn(error as unknown as Record<string, unknown>, key, decode(value))
  }
  return error
}

function makeError(name: string, message: string, options: ErrorOptions | undefined): Error {
  switch (name) {
    case 'AggregateError':
      return new AggregateError([], message, options)
    case 'EvalError':
      return new EvalError(message, options)
    case 'RangeError':
      return new RangeError(message, options)
    case 'ReferenceError':
      return new ReferenceError(message, options)
    case 'SyntaxError':
      return new SyntaxError(message, options)
    case 'TypeError':
      return new TypeError(message, options)
    case 'URIError':
      return new URIError(message, options)
    default:
      return new Error(message, options)
  }
}

function decodeTypedArray(name: string, bytes: Uint8Array): unknown {
  const buffer = new Uint8Array(bytes).buffer
  switch (name) {
    case 'Int8Array':
      return new Int8Array(buffer)
    case 'Uint8ClampedArray':
      return new Uint8ClampedArray(buffer)
    case 'Int16Array':
      return new Int16Array(buffer)
    case 'Uint16Array':
      return new Uint16Array(buffer)
    case 'Int32Array':
      return new Int32Array(buffer)
    case 'Uint32Array':
      return new Uint32Array(buffer)
    case 'Float32Array':
      return new Float32Array(buffer)
    case 'Float64Array':
      return new Float64Array(buffer)
    case 'BigInt64Array':
      return new BigInt64Array(buffer)
    case 'BigUint64Array':
      return new BigUint64Array(buffer)
    default:
      throw unknownNode(`the array ${JSON.stringify(name)}`)
  }
}

function fromEntries(entries: Value): Record<string, unknown> {
  const value: Record<string, unknown> = {}
  for (const [key, item] of entries as readonly (readonly [string, Value])[]) setOwn(value, key, decode(item))
  return value
}

function setHidden(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: false, configurable: true, writable: true })
}

function unknownNode(what: string): CorruptError {
  return new CorruptError(
    `The stored state holds ${what}, which this version does not know.`,
    {},
    undefined,
    'Upgrade holdfast.',
  )
}
