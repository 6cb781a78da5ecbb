import { hash as digestOf } from 'node:crypto'
import { DEFAULT_LIMITS } from '../codec/limits.js'
import { copyValue, type Value } from '../codec/value.js'
import { InvalidValueError } from '../core/errors.js'

/** What a source yields. */
export interface Document {
  /** Identifies the document in its source: a path, a primary key. Up to 400 bytes. */
  readonly id: string
  /** Its content. Provide this or `load`. */
  readonly content?: string | Uint8Array
  /** Reads it when it is needed. With `hash`, a document that did not change is never read. */
  readonly load?: () => string | Uint8Array | Promise<string | Uint8Array>
  /** Anything that changes when the content does: an ETag, size and time. Default: the SHA-256 of the content. */
  readonly hash?: string
  /** Passed to stages and sink. */
  readonly metadata?: Readonly<Record<string, Value>>
}

/** A document as stages see it. */
export interface LoadedDocument {
  readonly id: string
  readonly content: string | Uint8Array
  /** The content as text; bytes are read as UTF-8. */
  readonly text: string
  readonly hash: string
  readonly metadata: Readonly<Record<string, Value>>
}

const MAX_ID_BYTES = 400
const MAX_HASH_BYTES = 200

/** Refuses what a source must not yield; the remedy names the source, which is where the mistake is. */
export function checkDocument(document: unknown): Document {
  if (typeof document !== 'object' || document === null) {
    throw refuse('document', `must be an object, not ${document === null ? 'null' : typeof document}`)
  }
  const { id, content, load, hash, metadata } = document as Record<string, unknown>
  if (typeof id !== 'string' || id === '' || !id.isWellFormed() || Buffer.byteLength(id) > MAX_ID_BYTES) {
    throw refuse('id', `must be a string of 1 to ${MAX_ID_BYTES} bytes`)
  }
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(id)) throw refuse('id', `${JSON.stringify(id)} holds control characters`)
  if (content !== undefined && typeof content !== 'string' && !(content instanceof Uint8Array)) {
    throw refuse(`content of "${id}"`, `must be a string or bytes, not ${typeof content}`)
  }
  if (load !== undefined && typeof load !== 'function') throw refuse(`load of "${id}"`, 'must be a function')
  if ((content === undefined) === (load === undefined)) {
    throw refuse(`document "${id}"`, 'must have either content or load')
  }
  if (hash !== undefined && (typeof hash !== 'string' || hash === '' || Buffer.byteLength(hash) > MAX_HASH_BYTES)) {
    throw refuse(`hash of "${id}"`, `must be a string of 1 to ${MAX_HASH_BYTES} bytes`)
  }
  if (metadata !== undefined) copyValue(metadata, DEFAULT_LIMITS)
  return document as Document
}

/** Reads the content, unless it is there, and hashes it. */
export async function loadDocument({ id, content, load, hash, metadata = {} }: Document): Promise<LoadedDocument> {
  const read: unknown = content ?? (await load?.())
  if (typeof read !== 'string' && !(read instanceof Uint8Array)) {
    throw refuse(`load of "${id}"`, `must return a string or bytes, not ${read === null ? 'null' : typeof read}`)
  }
  return {
    id,
    content: read,
    hash: hash ?? digestOf('sha256', read),
    metadata,
    get text() {
      return typeof read === 'string' ? read : new TextDecoder().decode(read)
    },
  }
}

function refuse(field: string, problem: string): InvalidValueError {
  return new InvalidValueError(field, problem, 'Correct what the source of the pipeline yields.')
}
