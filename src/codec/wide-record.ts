import { inspect } from 'node:util'
import type { Value } from './value.js'

type PlainRecord = { readonly [key: string]: Value }

/** From this many keys on, changing one costs more than finding its bucket. */
export const WIDE_KEYS = 128
/** How full buckets are on average when there are made to be more of them. */
const BUCKET_KEYS = 16

/** A value with its position in the order in which keys were added. */
interface Item {
  readonly value: Value
  readonly place: number
}

type Bucket = Map<string, Item>

/** What is behind each wide record. Weak, so that this table keeps none alive. */
const CONTENTS = new WeakMap<object, Contents>()

export function isWide(record: object): boolean {
  return CONTENTS.has(record)
}

/**
 * The value of a record's own property; undefined if it has none. The same as `Object.hasOwn` and a read, which on a wide
 * record cost as much as all else that a step does to it.
 */
export function ownValue(record: PlainRecord, key: string): Value | undefined {
  const contents = CONTENTS.get(record)
  if (contents !== undefined) return contents.get(key)?.value
  return Object.hasOwn(record, key) ? record[key] : undefined
}

/** Calls back with each own property, in any order. */
export function eachOwn(record: PlainRecord, call: (value: Value, key: string) => void): void {
  const contents = CONTENTS.get(record)
  if (contents !== undefined) contents.each(call)
  else for (const key of Object.keys(record)) call(record[key] as Value, key)
}

/** A record with many keys, from which versions can be made that share all but what changed. */
export function widen(record: PlainRecord): PlainRecord {
  const buckets: Bucket[] = Array.from({ length: bucketsFor(Object.keys(record).length) }, () => new Map())
  let place = 0
  for (const key of Object.keys(record)) {
    bucketOf(buckets, key).set(key, { value: record[key] as Value, place: place++ })
  }
  return new Contents(buckets, place, place).record
}

/**
 * The record with one property set, or without it if the value is undefined. The one before stays as it is, unless it
 * is in `owned`: then nobody else has seen it, and it is changed in place.
 */
export function withWideProperty(
  record: PlainRecord,
  key: string,
  value: Value | undefined,
  owned: Set<object> | undefined,
): PlainRecord {
  const contents = CONTENTS.get(record) as Contents
  const own = owned?.has(record) ? contents : contents.version()
  own.set(key, value)
  owned?.add(own.record)
  return own.record
}

/**
 * Values by key in buckets of a few, each of which versions share until one changes it. The outside sees a plain record
 * through a proxy: to readers, state is plain data, however it is held.
 */
class Contents {
  readonly record: PlainRecord
  #buckets: Bucket[]
  /** Those that no other version has. */
  readonly #own = new Set<Bucket>()
  #size: number
  #places: number

  constructor(buckets: Bucket[], size: number, places: number) {
    this.#buckets = buckets
    this.#size = size
    this.#places = places
    this.record = new Proxy(new Behind(this), HANDLER) as unknown as PlainRecord
    CONTENTS.set(this.record, this)
  }

  version(): Contents {
    return new Contents(this.#buckets.slice(), this.#size, this.#places)
  }

  get(key: string): Item | undefined {
    return bucketOf(this.#buckets, key).get(key)
  }

  set(key: string, value: Value | undefined): void {
    const at = indexOf(this.#buckets, key)
    let bucket = this.#buckets[at] as Bucket
    const known = bucket.get(key)
    if (value === undefined && known === undefined) return
    if (!this.#own.has(bucket)) {
      bucket = new Map(bucket)
      this.#buckets[at] = bucket
      this.#own.add(bucket)
    }
    if (value === undefined) {
      bucket.delete(key)
      this.#size--
      return
    }
    bucket.set(key, { value, place: known?.place ?? this.#places++ })
    if (known === undefined && ++this.#size > this.#buckets.length * BUCKET_KEYS) this.#spread()
  }

  each(call: (value: Value, key: string) => void): void {
    for (const bucket of this.#buckets) for (const [key, { value }] of bucket) call(value, key)
  }

  /** In the order in which they were added, as in a plain record. */
  keys(): string[] {
    return this.#buckets
      .flatMap((bucket) => [...bucket])
      .sort(([, a], [, b]) => a.place - b.place)
      .map(([key]) => key)
  }

  #spread(): void {
    const buckets: Bucket[] = Array.from({ length: bucketsFor(this.#size) }, () => new Map())
    for (const bucket of this.#buckets) for (const [key, item] of bucket) bucketOf(buckets, key).set(key, item)
    this.#buckets = buckets
    for (const bucket of buckets) this.#own.add(bucket)
  }
}

/** What the proxy stands before: tells `console.log` what to show. */
class Behind {
  readonly contents: Contents

  constructor(contents: Contents) {
    this.contents = contents
  }

  /** Called on the proxy. */
  [inspect.custom](this: PlainRecord): PlainRecord {
    return { ...this }
  }
}

const HANDLER: ProxyHandler<Behind> = {
  get: ({ contents }, key) => {
    const item = typeof key === 'string' ? contents.get(key) : undefined
    return item === undefined ? Reflect.get(Object.prototype, key) : item.value
  },
  getPrototypeOf: () => Object.prototype,
  has: ({ contents }, key) => (typeof key === 'string' && contents.get(key) !== undefined) || key in Object.prototype,
  ownKeys: ({ contents }) => contents.keys(),
  getOwnPropertyDescriptor: ({ contents }, key) => {
    const item = typeof key === 'string' ? contents.get(key) : undefined
    return item && { value: item.value, enumerable: true, configurable: true, writable: false }
  },
  set: () => false,
  defineProperty: () => false,
  deleteProperty: () => false,
  preventExtensions: () => false,
  setPrototypeOf: () => false,
}

function bucketsFor(keys: number): number {
  return 2 ** Math.ceil(Math.log2((2 * Math.max(keys, WIDE_KEYS)) / BUCKET_KEYS))
}

function bucketOf(buckets: readonly Bucket[], key: string): Bucket {
  return buckets[indexOf(buckets, key)] as Bucket
}

// FNV-1a: cheap, and spreads names that differ in their last characters only. The number of buckets is a power of two.
function indexOf(buckets: readonly Bucket[], key: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 15)) & (buckets.length - 1)
}
