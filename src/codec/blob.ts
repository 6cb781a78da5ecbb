import { CorruptError } from '../core/errors.js'
import { blobHash, sameHash } from './chain.js'
import { pack, unpack } from './pack/compress.js'
import { contentNonce, type DataKey, decrypt, encrypt } from './secret/data-key.js'
import { parseJson } from './decode/decode.js'
import { isKeyId } from './header.js'

/** A blob as it is stored, under the hash (or HMAC) of exactly these bytes. */
export interface StoredBlob {
  readonly hash: string
  readonly bytes: Uint8Array
}

/**
 * Blob bytes are one line of JSON that says how the rest is packed, then the content. The same content gives the
 * same bytes under the same key, so it is stored once.
 */
export async function encodeBlob(content: Uint8Array, key: DataKey | null, encrypted: boolean): Promise<StoredBlob> {
  const packed = await pack(content)
  const about = {
    v: 1,
    size: content.length,
    packing: packed.packing,
    ...(key ? { key: key.id } : {}),
    ...(key && encrypted ? { encrypted: true } : {}),
  }
  const line = Buffer.from(JSON.stringify(about))
  const payload =
    key && encrypted ? encrypt(key.blobKey, packed.bytes, line, contentNonce(key, line, packed.bytes)) : packed.bytes
  const bytes = Buffer.concat([line, NEWLINE, payload])
  return { hash: blobHash(bytes, key?.macKey), bytes }
}

/**
 * The content of a blob of at most `maxBytes`, and of what is `left` for this read, after checking it against its name.
 * One without a key is checked by SHA-256, which is enough even where keys are in use: its name is in an entry that was
 * verified, and no other bytes have that name.
 */
export async function decodeBlob(
  name: string,
  stored: Uint8Array,
  { maxBytes, left }: { readonly maxBytes: number; readonly left: number },
  findKey: (id: string) => Promise<DataKey>,
): Promise<Uint8Array> {
  const end = stored.indexOf(0x0a)
  if (end < 0 || end > 4096) throw corruptBlob(name, 'has no description')
  const line = stored.subarray(0, end)
  // The key's name must be read before the MAC can be checked; a false one only makes the check fail.
  const about = parseJson(line) as Partial<Record<'v' | 'size' | 'packing' | 'key' | 'encrypted', unknown>> | null
  const keyId = about?.key
  if (keyId !== undefined && !isKeyId(keyId)) throw corruptBlob(name, 'names a malformed key')
  const key = keyId === undefined ? null : await findKey(keyId)
  if (!sameHash(blobHash(stored, key?.macKey), name)) throw corruptBlob(name, 'does not match its name')
  if (about === null || about.v !== 1 || !Number.isSafeInteger(about.size))
    throw corruptBlob(name, 'has a bad description')
  const size = about.size as number
  if (size > maxBytes) throw corruptBlob(name, `is over the limit of ${maxBytes} bytes`)
  if (size > left) {
    const remedy = 'If it is yours, raise limits.maxReadBytes. If it is not, somebody else wrote it.'
    throw new CorruptError(
      `Blob ${name} takes this read over its limit.`,
      { blob: name, overBudget: true },
      undefined,
      remedy,
    )
  }
  if (about.packing !== 'plain' && about.packing !== 'br') throw corruptBlob(name, 'names an unknown packing')
  const payload = stored.subarray(end + 1)
  const { encrypted = false } = about
  if (typeof encrypted !== 'boolean' || (encrypted && key === null))
    throw corruptBlob(name, 'is encrypted without a key')
  const packed = encrypted && key ? decrypt(key.blobKey, payload, line) : payload
  return unpack(about.packing, packed, size)
}

const NEWLINE = Buffer.from('\n')

function corruptBlob(name: string, problem: string): CorruptError {
  return new CorruptError(`Blob ${name} ${problem}.`, { blob: name })
}
