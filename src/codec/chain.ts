import { createHash, createHmac, hash, type KeyObject, timingSafeEqual } from 'node:crypto'

/** The parent of an entry that has none. */
export const NO_PARENT = '0'.repeat(64)

/** Copying a small entry into one buffer is cheaper than three calls into the hash; a large one is fed in parts. */
const ONE_SHOT = 64 * 1024

/**
 * The part of the header that names the log. Hashing it binds an entry to its place: a row copied into another
 * thread, branch or incarnation does not verify there.
 */
export function chainIdentity(tenant: string, thread: string, branch: string, incarnation: string): string {
  return `holdfast/1\n${JSON.stringify([tenant, thread, branch, incarnation])}\n`
}

/**
 * The hash of an entry: SHA-256, or HMAC-SHA-256 with a key, over identity, parent, header and stored body. Each
 * part but the last is one line, so no two entries share an input.
 */
export function chainHash(
  identity: string,
  parent: string,
  header: Uint8Array,
  body: Uint8Array,
  macKey?: KeyObject,
): string {
  const prefix = `${identity}${parent}\n`
  if (macKey === undefined && body.length < ONE_SHOT) {
    return hash('sha256', Buffer.concat([Buffer.from(prefix), header, NEWLINE, body]), 'hex')
  }
  const hasher = macKey === undefined ? createHash('sha256') : createHmac('sha256', macKey)
  return hasher.update(prefix).update(header).update(NEWLINE).update(body).digest('hex')
}

/** The name of a blob: the hash, or HMAC, of its stored bytes. */
export function blobHash(stored: Uint8Array, macKey?: KeyObject): string {
  if (macKey === undefined) return hash('sha256', stored, 'hex')
  return createHmac('sha256', macKey).update('holdfast/1 blob\n').update(stored).digest('hex')
}

/** Compares hashes without revealing to an attacker how far they agree. */
export function sameHash(a: string, b: string): boolean {
  const left = Buffer.from(a)
  const right = Buffer.from(b)
  // By bytes: damaged text with the same length in characters may have a different length in bytes, which would throw.
  return left.length === right.length && timingSafeEqual(left, right)
}

const NEWLINE = Buffer.from('\n')
