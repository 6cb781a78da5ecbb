import { decodeBlob, encodeBlob, type StoredBlob } from '../../codec/blob.js'
import type { DataKey } from '../../codec/secret/data-key.js'
import type { BlobSource } from '../../codec/decode/decode.js'
import type { BlobSink } from '../../codec/value.js'
import { CorruptError, MissingKeyError } from '../../core/errors.js'
import type { TenantId } from '../../core/ids.js'
import type { BlobWriter, Driver } from '../contract.js'
import type { KeySource } from '../keys/keys.js'
import type { LogEnvironment } from '../log-environment.js'
import { retry } from '../write/retry.js'

/** Values whose JSON is at least this long are stored once per tenant and pointed to. */
export const DEFAULT_BLOB_THRESHOLD = 64 * 1024

/** As many as a state that is written again and again has; each is as long as a blob, and in memory anyway. */
const MAX_TEXTS = 8

type BlobDriver = BlobWriter & Pick<Driver, 'getBlobs'>

/** The blobs of a store, asked for again while it does not answer: storing one twice stores it once. */
export function patientBlobs(environment: LogEnvironment): BlobDriver {
  const { driver } = environment
  return {
    touchBlobs: (...args) => retry(environment, () => driver.touchBlobs(...args)),
    putBlobs: (...args) => retry(environment, () => driver.putBlobs(...args)),
    getBlobs: (...args) => retry(environment, () => driver.getBlobs(...args)),
  }
}

/** What shelves of one log share. */
interface Known {
  readonly names: WeakMap<object, string>
  /** The texts that were in a blob lately, so that a keyframe need not pack them again. */
  readonly texts: Map<string, string>
  bytes: number
}

/** The blobs of one tenant, and which values of the folds in memory lie in them. */
export class BlobShelf {
  readonly threshold: number
  readonly #driver: BlobDriver
  readonly #tenant: TenantId
  readonly #keys: KeySource | undefined
  readonly #maxBytes: number
  readonly #known: Known
  readonly #names: WeakMap<object, string>

  constructor(
    driver: BlobDriver,
    tenant: TenantId,
    options: { threshold: number; maxBytes: number; keys?: KeySource | undefined },
    known: Known = { names: new WeakMap(), texts: new Map(), bytes: 0 },
  ) {
    this.#driver = driver
    this.#tenant = tenant
    this.threshold = options.threshold
    this.#maxBytes = options.maxBytes
    this.#keys = options.keys
    this.#known = known
    this.#names = known.names
  }

  /**
   * Bytes of all blobs that came by here, those that the state no longer has included: at least what is in memory. A
   * fold counts only the pointers to them.
   */
  get bytes(): number {
    return this.#known.bytes
  }

  /** The same shelf, with what it stores stored inside a transaction. */
  within(writer: BlobWriter): BlobShelf {
    const driver: BlobDriver = { ...writer, getBlobs: (tenant, hashes) => this.#driver.getBlobs(tenant, hashes) }
    const { threshold } = this
    return new BlobShelf(driver, this.#tenant, { threshold, maxBytes: this.#maxBytes, keys: this.#keys }, this.#known)
  }

  readonly isBlob = (value: string | object): boolean =>
    typeof value === 'string'
      ? value.length >= this.threshold
      : this.#names.has(value) || (value instanceof Uint8Array && value.length >= this.threshold)

  /** Collects the blobs of one entry. `reuse` points to blobs that are there already, for keyframes. */
  sink(reuse: boolean): BlobCollector {
    const { names, texts } = this.#known
    return new BlobCollector(this.threshold, (from) => {
      if (!reuse) return undefined
      return typeof from === 'string' ? texts.get(from) : names.get(from)
    })
  }

  /** Stores what a sink collected and returns the names for the entry's header, in the order of their numbers. */
  async store(sink: BlobCollector, key: DataKey | null): Promise<readonly string[]> {
    if (sink.items.length === 0) return []
    const encrypted = this.#keys?.encrypt ?? false
    const blobs = new Map<string, StoredBlob>()
    const names: string[] = []
    for (const item of sink.items) {
      if (typeof item === 'string') {
        names.push(item)
        continue
      }
      const blob = await encodeBlob(item.content, key, encrypted)
      this.#known.bytes += item.content.length
      blobs.set(blob.hash, blob)
      names.push(blob.hash)
      if (item.from !== undefined) this.#learn(item.from, blob.hash)
    }
    // Every blob an entry points to is touched before the entry lands, also one that a keyframe only points to
    // again: collection spares what was touched lately, and so can't remove it in between.
    const missing = new Set(await this.#driver.touchBlobs(this.#tenant, [...new Set(names)]))
    const lost = names.find((name) => missing.has(name) && !blobs.has(name))
    if (lost) throw new CorruptError(`Blob ${lost} is missing.`, { blob: lost })
    const fresh = [...blobs.values()].filter((blob) => missing.has(blob.hash))
    if (fresh.length > 0) await this.#driver.putBlobs(this.#tenant, fresh)
    return names
  }

  /**
   * Reads all these blobs at once and verifies each. A damaged one stands as its error, for the entry that needs it, and
   * so does one that would unpack to more than is left of `budget`.
   */
  async load(names: readonly string[], budget: number): Promise<BlobContents> {
    const contents = new Map<string, Uint8Array | CorruptError>()
    if (names.length === 0) return contents
    const stored = await this.#driver.getBlobs(this.#tenant, [...new Set(names)])
    const findKey = async (id: string): Promise<DataKey> => {
      if (this.#keys) return this.#keys.find(this.#tenant, id)
      throw new MissingKeyError(
        `A blob was written under the data key "${id}", but this store was opened without keys.`,
        { key: id },
      )
    }
    let left = budget
    for (const [name, bytes] of stored) {
      try {
        const content = await decodeBlob(name, bytes, { maxBytes: this.#maxBytes, left }, findKey)
        left -= content.length
        this.#known.bytes += content.length
        contents.set(name, content)
      } catch (error) {
        if (!(error instanceof CorruptError)) throw error
        contents.set(name, error)
      }
    }
    return contents
  }

  /** The blobs of one entry for the decoder, by their numbers. */
  source(names: readonly string[], contents: BlobContents): BlobSource {
    const nameOf = (number: number): string => {
      const name = names[number]
      if (name === undefined)
        throw new CorruptError(`An entry points to its blob ${number}, which it does not list.`, {})
      return name
    }
    return {
      get: (number) => {
        const name = nameOf(number)
        const content = contents.get(name)
        if (content === undefined) throw new CorruptError(`Blob ${name} is missing.`, { blob: name })
        if (content instanceof CorruptError) throw content
        return content
      },
      learned: (number, value) => this.#learn(value, nameOf(number)),
    }
  }

  #learn(from: object | string, name: string): void {
    if (typeof from !== 'string') {
      this.#names.set(from, name)
      return
    }
    const { texts } = this.#known
    texts.delete(from)
    texts.set(from, name)
    for (const oldest of texts.keys()) {
      if (texts.size <= MAX_TEXTS) break
      texts.delete(oldest)
    }
  }
}

export type BlobContents = ReadonlyMap<string, Uint8Array | CorruptError>

/** A sink that remembers, in order, new content and the names of blobs that exist. */
export class BlobCollector implements BlobSink {
  readonly threshold: number
  readonly items: (string | { readonly content: Uint8Array; readonly from: object | string | undefined })[] = []
  readonly #nameOf: (from: object | string) => string | undefined
  readonly #numbers = new Map<string, number>()

  constructor(threshold: number, nameOf: (from: object | string) => string | undefined) {
    this.threshold = threshold
    this.#nameOf = nameOf
  }

  known(subtree: object): number | undefined {
    return this.#find(subtree)
  }

  knownText(text: string): number | undefined {
    return this.#find(text)
  }

  #find(from: object | string): number | undefined {
    const name = this.#nameOf(from)
    if (name === undefined) return undefined
    const number = this.#numbers.get(name) ?? this.items.push(name) - 1
    this.#numbers.set(name, number)
    return number
  }

  add(content: Uint8Array, from?: object | string): number {
    return this.items.push({ content, from }) - 1
  }

  drop(from: number): void {
    for (const [name, number] of this.#numbers) if (number >= from) this.#numbers.delete(name)
    this.items.length = from
  }
}
