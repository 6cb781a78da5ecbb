import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { CorruptError } from '../../core/errors.js'

/** What every secret has, whether a tenant's or an operator's. */
export const SECRET_BYTES = 32

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const NONCES = 256

/**
 * A key of one tenant that authenticates entries and, if requested, encrypts them. Held as key objects, which print as
 * nothing: a key that ends up in a log message or a variable dump reveals no secret.
 */
export interface DataKey {
  readonly id: string
  readonly macKey: KeyObject
  readonly encryptionKey: KeyObject
  /** Separate from the one for entries: their nonces are random, those of blobs are derived from the content. */
  readonly blobKey: KeyObject
}

/** Separate keys for separate purposes, from one secret of 32 bytes. */
export function deriveDataKey(id: string, secret: Uint8Array): DataKey {
  return {
    id,
    macKey: deriveKey(secret, 'mac'),
    encryptionKey: deriveKey(secret, 'encrypt'),
    blobKey: deriveKey(secret, 'encrypt blob'),
  }
}

export function deriveKey(secret: Uint8Array, purpose: string): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', secret, '', `holdfast/1 ${purpose}`, SECRET_BYTES)))
}

/** AES-256-GCM: nonce, ciphertext, tag. `context` is authenticated with it but not stored. */
export function encrypt(
  key: KeyObject,
  plain: Uint8Array,
  context: Uint8Array,
  nonce: Uint8Array = newNonce(),
): Buffer {
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(context)
  const body = cipher.update(plain)
  // In this mode nothing is left for the end.
  cipher.final()
  return Buffer.concat([nonce, body, cipher.getAuthTag()], NONCE_BYTES + body.length + TAG_BYTES)
}

let nonces = Buffer.alloc(0)
let nextNonce = 0

/** Twelve random bytes that were never given out before. Drawn many at a time: asking the system costs more than the rest. */
function newNonce(): Buffer {
  if (nextNonce === nonces.length) {
    nonces = randomBytes(NONCE_BYTES * NONCES)
    nextNonce = 0
  }
  nextNonce += NONCE_BYTES
  return nonces.subarray(nextNonce - NONCE_BYTES, nextNonce)
}

export function decrypt(key: KeyObject, stored: Uint8Array, context: Uint8Array): Buffer {
  if (stored.length < NONCE_BYTES + TAG_BYTES) throw new CorruptError('Encrypted data is too short.', {})
  const end = stored.length - TAG_BYTES
  const decipher = createDecipheriv(CIPHER, key, stored.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAAD(context)
  decipher.setAuthTag(stored.subarray(end))
  try {
    return Buffer.concat([decipher.update(stored.subarray(NONCE_BYTES, end)), decipher.final()])
  } catch (cause) {
    throw new CorruptError('Encrypted data does not decrypt under its key.', {}, cause)
  }
}

/** Binds an encrypted body to its log and its header, as the chain does: it can be decrypted only in its own place. */
export function bodyContext(identity: string, header: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(identity), header])
}

/**
 * The nonce of a blob is derived from its content, so that the same content encrypts to the same bytes and is stored
 * once. The description is part of it: a nonce used again with the same content under another description would reveal
 * the key that GCM authenticates with.
 */
export function contentNonce(key: DataKey, description: Uint8Array, plain: Uint8Array): Buffer {
  const hmac = createHmac('sha256', key.macKey).update('holdfast/1 nonce\n').update(description).update('\n')
  return hmac.update(plain).digest().subarray(0, NONCE_BYTES)
}
