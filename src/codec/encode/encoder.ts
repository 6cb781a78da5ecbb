import { types } from 'node:util'
import { InvalidValueError, isHoldfastError, TooLargeError } from '../../core/errors.js'
import { className, isForeignArrayPrototype, isForeignObjectPrototype } from './foreign-objects.js'
import { guardDate } from './guard-date.js'
import { joinWritten, MARK, stringify, tooManyBytes } from './json-text.js'
import type { Limits } from '../limits.js'
import {
  type BlobSink,
  type PathPart,
  renderPath,
  setOwn,
  type TypeEntry,
  type TypeName,
  type Value,
  Whole,
} from '../value-types.js'
import { takeWritten, type Written } from './written.js'

/** How often what surrounds large parts may be walked again, in one entry. */
const MAX_REPEATS = 8

/**
 * 'apart': large parts of a value become separate blobs, so that what is equal is stored once however it is wrapped.
 * 'together': they stay inside, for one blob of all of it. 'given up': they will have to.
 */
type Parts = 'apart' | 'together' | 'given up' | undefined

/** Where a subtree begins in what has been gone through. */
interface Start {
  readonly size: number
  readonly keys: number
  readonly types: number
  readonly written: number
  readonly lastBlob: number
  readonly moved: number
}

/** Walks a value once: checks it, copies it, measures it and builds what JSON is written from. */
export class Encoder {
  readonly types: TypeEntry[] = []
  /** JSON of parts that were written before, in the order in which they are met. */
  readonly written: string[] = []
  /** The JSON form of what `copy` returned last; the same object when nothing in it needs a type. */
  wire: unknown = null
  depth = 0
  hasBytes = false
  readonly #limits: Limits
  readonly #sink: BlobSink | undefined
  readonly #path: PathPart[] = []
  readonly #ancestors: object[] = []
  /** A running lower bound of the JSON's length, by which large subtrees and oversized values are recognized. */
  size = 0
  keys = 0
  readonly #isFrozen: boolean
  #parts: Parts
  #repeats = 0
  /** The number of the newest blob. */
  #lastBlob = -1
  /** Bytes of a value that moved to blobs: a value is limited as a whole, however it is stored. */
  #moved = 0

  /** @param form 'frozen': copies that nobody can change, bytes excepted. */
  constructor(limits: Limits, sink: BlobSink | undefined, form: 'frozen' | 'plain' = 'plain') {
    this.#limits = limits
    this.#sink = sink
    this.#isFrozen = form === 'frozen'
  }

  encode(input: unknown): Value {
    try {
      return this.copy(input)
    } catch (cause) {
      if (isHoldfastError(cause)) throw cause
      // A getter or a proxy threw. The path still leads to where it happened.
      throw new InvalidValueError(renderPath(this.#path), 'could not be read', 'Store plain data.', {}, cause)
    }
  }

  copy(input: unknown): Value {
    switch (typeof input) {
      case 'string':
        return this.#string(input)
      case 'number':
        this.size += 1
        if (Number.isFinite(input) && !Object.is(input, -0)) {
          this.wire = input
          return input
        }
        return this.#typed('number', Object.is(input, -0) ? '-0' : String(input), input)
      case 'boolean':
        this.size += 4
        this.wire = input
        return input
      case 'bigint':
        return this.#bigint(input)
      case 'object':
        if (input === null) {
          this.size += 4
          this.wire = null
          return null
        }
        return this.#object(input)
      default:
        throw this.#refuse(
          `is ${input === undefined ? 'undefined' : `a ${typeof input}`}`,
          'Leave it out, use null, or store plain data.',
        )
    }
  }

  // In hexadecimal, which is written and read in linear time; a few megabytes of decimal digits take minutes.
  #bigint(input: bigint): Value {
    const wire = input.toString(16)
    this.#grow(wire.length + 2)
    return this.#typed('bigint', wire, input)
  }

  #string(input: string): Value {
    // A lone surrogate has no UTF-8 form; a string with one stays in the JSON, where it is escaped.
    if (this.#takesBlobs(input.length) && input.isWellFormed()) {
      const known = this.#sink?.knownText?.(input)
      return this.#typed(
        'text-blob',
        known === undefined ? this.#addBlob(Buffer.from(input), input) : String(known),
        input,
      )
    }
    this.#grow(input.length + 2)
    this.wire = input
    return input
  }

  #object(input: object): Value {
    if (input instanceof Whole) return this.#whole(input.value)
    const written = takeWritten(input, this.#limits.maxDepth - this.#ancestors.length)
    // A large value is walked again: a part of it may already be stored.
    if (written !== undefined && !(this.#parts === 'apart' && written.size >= (this.#sink?.threshold ?? 0)))
      return this.#joined(written, input as Value)
    const known = this.#sink?.known(input)
    if (known !== undefined) return this.#typed('json-blob', String(known), input as Value)
    const prototype: unknown = Object.getPrototypeOf(input)
    if (prototype !== Object.prototype && prototype !== Array.prototype) {
      // Recognized by their internals: one from another realm is accepted, a proxy or a lookalike is not.
      if (types.isDate(input)) return this.#date(input)
      if (types.isUint8Array(input)) return this.#bytes(input)
    }
    if (this.#ancestors.length >= this.#limits.maxDepth) {
      if (this.#ancestors.includes(input)) throw this.#cyclic()
      throw new TooLargeError(
        `The value at ${renderPath(this.#path)}`,
        'levels of nesting',
        this.#limits.maxDepth,
        undefined,
        'Flatten it, or raise limits.maxDepth.',
      )
    }
    if (this.#ancestors.includes(input)) throw this.#cyclic()
    this.#ancestors.push(input)
    this.depth = Math.max(this.depth, this.#ancestors.length)
    const copy = this.#parts === 'apart' ? this.#apart(input) : this.#container(input)
    this.#ancestors.pop()
    return copy
  }

  #joined({ json, types: inner, depth, size, keys }: Written, value: Value): Value {
    this.depth = Math.max(this.depth, this.#ancestors.length + depth)
    this.#count(keys)
    this.#grow(size)
    for (const [type, ...path] of inner) this.types.push([type, ...this.#path, ...path])
    this.written.push(json)
    this.wire = MARK
    return value
  }

  #date(input: Date): Value {
    this.size += 26
    const copy = new Date(Date.prototype.getTime.call(input))
    if (Number.isNaN(copy.getTime())) throw this.#refuse('is an invalid Date', 'Use null or a valid Date.')
    return this.#typed('date', copy.toISOString(), this.#isFrozen ? guardDate(copy) : copy)
  }

  #bytes(input: Uint8Array): Value {
    this.hasBytes = true
    const takesBlob = this.#takesBlobs(input.length)
    if (!takesBlob) this.#grow(Math.ceil(input.length / 3) * 4 + 2)
    const copy = new Uint8Array(input)
    if (takesBlob) return this.#typed('bytes-blob', this.#addBlob(copy), copy)
    return this.#typed('bytes', Buffer.from(copy.buffer).toString('base64'), copy)
  }

  #array(input: readonly unknown[]): Value {
    const prototype = Object.getPrototypeOf(input)
    if (prototype !== Array.prototype && !isForeignArrayPrototype(prototype)) throw this.#refuseClass(input)
    this.#count(input.length)
    this.#grow(input.length)
    const copy: Value[] = new Array(input.length)
    let wire: unknown[] = copy
    for (let i = 0; i < input.length; i++) {
      this.#path.push(i)
      const item = this.copy(input[i])
      this.#path.pop()
      if (this.wire !== item && wire === copy) wire = copy.slice(0, i)
      copy[i] = item
      if (wire !== copy) wire[i] = this.wire
    }
    this.wire = wire
    return this.#isFrozen ? Object.freeze(copy) : copy
  }

  #record(input: object): Value {
    const prototype = Object.getPrototypeOf(input)
    if (prototype !== null && prototype !== Object.prototype && !isForeignObjectPrototype(prototype)) {
      throw this.#refuseClass(input)
    }
    if (Object.getOwnPropertySymbols(input).length > 0) {
      throw this.#refuse('has a symbol as a key', 'Use text keys only.')
    }
    const keys = Object.keys(input)
    this.#count(keys.length)
    const copy: Record<string, Value> = {}
    let wire: Record<string, unknown> = copy
    for (const key of keys) {
      this.#path.push(key)
      const child = (input as Record<string, unknown>)[key]
      if (child === undefined) {
        this.#path.pop()
        continue
      }
      this.#grow(key.length + 4)
      const item = this.copy(child)
      this.#path.pop()
      if (this.wire !== item && wire === copy) wire = cloneShallow(copy)
      setOwn(copy, key, item)
      if (wire !== copy) setOwn(wire, key, this.wire)
    }
    this.wire = wire
    return this.#isFrozen ? Object.freeze(copy) : copy
  }

  #container(input: object): Value {
    return Array.isArray(input) ? this.#array(input) : this.#record(input)
  }

  /**
   * An array or object whose large parts became blobs. What is left of it may be large as well: then it is one blob,
   * with those parts in it, because a blob never points to blobs.
   */
  #apart(input: object): Value {
    const start = this.#start()
    const copy = this.#container(input)
    const isLarge = this.size - start.size >= (this.#sink as BlobSink).threshold
    const hasBlobs = this.#lastBlob > start.lastBlob
    if (!isLarge || this.#parts === 'given up') return copy
    if (!hasBlobs) return this.#asBlob(copy, start)
    // Each walk costs as much as what is walked again: values nested on purpose would cost without end.
    if (++this.#repeats > MAX_REPEATS) {
      this.#parts = 'given up'
      return copy
    }
    const whole = this.#together(copy as object, start)
    this.#parts = 'apart'
    return this.#asBlob(whole, start)
  }

  /** Walks a copy again, with all of its parts inside. A copy, because a getter may return something else now. */
  #together(copy: object, start: Start): Value {
    const { types, written, size, keys, lastBlob, moved } = start
    if (this.#lastBlob > lastBlob) this.#sink?.drop(lastBlob + 1)
    this.#lastBlob = lastBlob
    this.#moved = moved
    this.types.length = types
    this.written.length = written
    this.size = size
    this.keys = keys
    this.#parts = 'together'
    return this.#container(copy)
  }

  #asBlob(copy: Value, { types, written, size }: Start): Value {
    this.size = size
    // Types inside the subtree move into its blob, with paths from its own root.
    const inner = this.types.splice(types).map(([type, ...path]) => [type, ...path.slice(this.#path.length)])
    const body = inner.length === 0 ? [this.wire] : [this.wire, inner]
    const json = joinWritten(stringify(body, this.#limits), this.written.splice(written))
    return this.#typed('json-blob', this.#addBlob(Buffer.from(json), copy as object), copy)
  }

  #whole(input: unknown): Value {
    if (this.#sink === undefined) return this.copy(input)
    const outside = this.size
    this.size = 0
    this.#moved = 0
    const start = this.#start()
    this.#parts = 'apart'
    let copy = this.copy(input)
    if ((this.#parts as Parts) === 'given up') {
      copy = this.#together(copy as object, start)
      copy = this.size >= this.#sink.threshold ? this.#asBlob(copy, start) : copy
    }
    this.#parts = undefined
    const inside = this.size
    this.size = outside
    this.#grow(inside)
    return copy
  }

  #start(): Start {
    const { size, keys } = this
    return {
      size,
      keys,
      types: this.types.length,
      written: this.written.length,
      lastBlob: this.#lastBlob,
      moved: this.#moved,
    }
  }

  #takesBlobs(length: number): boolean {
    return this.#sink !== undefined && this.#parts !== 'together' && length >= this.#sink.threshold
  }

  // What could not be read back must not be written: a blob is limited like the JSON that points to it.
  #addBlob(content: Uint8Array, from?: object | string): string {
    if (this.#parts !== undefined) this.#moved += content.length
    const bytes = Math.max(content.length, this.#moved)
    if (bytes > this.#limits.maxBytes) throw tooManyBytes(this.#limits, bytes, renderPath(this.#path))
    const number = (this.#sink as BlobSink).add(content, from)
    this.#lastBlob = number
    return String(number)
  }

  #typed(type: TypeName, wire: string, value: Value): Value {
    this.types.push([type, ...this.#path])
    this.wire = wire
    return value
  }

  /** Stops as soon as the JSON is sure to be too long, before memory runs out. */
  #grow(bytes: number): void {
    this.size += bytes
    if (this.size > this.#limits.maxBytes) throw tooManyBytes(this.#limits, undefined, renderPath(this.#path))
  }

  #count(keys: number): void {
    this.keys += keys
    if (this.keys > this.#limits.maxKeys) {
      throw new TooLargeError(
        'The value',
        'keys',
        this.#limits.maxKeys,
        undefined,
        'Split it, or raise limits.maxKeys.',
      )
    }
  }

  #cyclic(): InvalidValueError {
    return this.#refuse('refers back to an object that contains it', 'Remove the cycle, for example by storing an id.')
  }

  #refuseClass(input: object): InvalidValueError {
    return this.#refuse(`is a ${className(input)}`, 'Store plain objects and arrays; convert it first.')
  }

  #refuse(problem: string, remedy: string): InvalidValueError {
    return new InvalidValueError(renderPath(this.#path), problem, remedy)
  }
}

function cloneShallow(source: Record<string, unknown>): Record<string, unknown> {
  const clone: Record<string, unknown> = {}
  for (const key of Object.keys(source)) setOwn(clone, key, source[key])
  return clone
}
