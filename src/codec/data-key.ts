import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { CorruptError } from '../core/errors.js'

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** A key of one tenant that authenticates entries and, if asked, encrypts them. Its secrets never leave memory. */
export interface DataKey {
  readonly id: string
  readonly macKey: Uint8Array
  readonly encryptionKey: Uint8Array
}

/** Separate keys for separate purposes, from one secret of 32 bytes. */
export function deriveDataKey(id: string, secret: Uint8Array): DataKey {
  const derive = (purpose: string) => new Uint8Array(hkdfSync('sha256', secret, '', `holdfast/1 ${purpose}`, 32))
  return { id, macKey: derive('mac'), encryptionKey: derive('encrypt') }
}

/** AES-256-GCM: nonce, ciphertext, tag. `context` is authenticated with it but not stored. */
export function encrypt(key: Uint8Array, plain: Uint8Array, context: string, nonce: Buffer = randomBytes(NONCE_BYTES)): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce)
  cipher.setAAD(Buffer.from(context))
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
}

export function decrypt(key: Uint8Array, stored: Uint8Array, context: string): Buffer {
  if (stored.length < NONCE_BYTES + TAG_BYTES) throw new CorruptError('An encrypted body is too short.', {})
  const end = stored.length - TAG_BYTES
  const decipher = createDecipheriv('aes-256-gcm', key, stored.subarray(0, NONCE_BYTES))
  decipher.setAAD(Buffer.from(context))
  decipher.setAuthTag(stored.subarray(end))
  try {
    return Buffer.concat([decipher.update(stored.subarray(NONCE_BYTES, end)), decipher.final()])
  } catch (cause) {
    throw new CorruptError('An encrypted body does not decrypt under its key.', {}, cause)
  }
}

/**
 * The nonce of a blob follows from its content, so that the same content encrypts to the same bytes and is stored
 * once. It tells who can read the store that two blobs of one tenant are equal, and nothing else.
 */
export function contentNonce(key: DataKey, plain: Uint8Array): Buffer {
  return createHmac('sha256', key.macKey).update('holdfast/1 nonce\n').update(plain).digest().subarray(0, NONCE_BYTES)
}
