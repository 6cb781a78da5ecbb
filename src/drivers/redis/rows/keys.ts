import type { TenantId, ThreadId } from '../../../core/ids.js'
import type { Hash, LogKey } from '../../../log/contract.js'

const SLOTS = 16_384
const HEX = '0123456789abcdef'

/**
 * Names of keys. Every key but the store's own is in one of a fixed number of buckets, and a bucket is one hash slot of
 * a cluster. A thread's keys share its bucket with its index rows, so an append and its index row are one atomic step
 * even on a cluster; so do the items of a space. Ids contain no control characters, so a zero byte between them is
 * safe.
 */
export interface Keys {
  readonly buckets: readonly string[]
  readonly store: string
  bucketOf(tenant: TenantId, thread: ThreadId): number
  bucketOfBlob(hash: Hash): number
  log(log: LogKey): string
  /** The key of a log and of its bucket's index. */
  logAndIndex(log: LogKey): [string, string]
  thread(tenant: TenantId, thread: ThreadId): string
  index(bucket: number): string
  blob(tenant: TenantId, hash: Hash): string
  blobList(tenant: TenantId, bucket: number): string
  blobClock(bucket: number): string
  /** A space of the store: its items, their keys in order, and the index of its bucket. */
  space(tenant: TenantId, space: string): [string, string, string]
}

export function createKeys(prefix: string, count: number): Keys {
  const tags = bucketTags(count)
  const buckets = tags.map((tag) => `${prefix}:{${tag}}:`)
  const start = (bucket: number): string => buckets[bucket] as string

  function bucketOf(tenant: TenantId, thread: ThreadId): number {
    return hashText(`${tenant}\0${thread}`) % count
  }

  // By the first digits, so that the order of buckets is the order of hashes and a listing walks them one by one.
  function bucketOfBlob(hash: Hash): number {
    return Math.floor((hashStart(hash) * count) / 0x1_0000)
  }

  return {
    buckets,
    store: `${prefix}:store`,
    bucketOf,
    bucketOfBlob,
    log: ({ tenant, thread, branch }) => `${start(bucketOf(tenant, thread))}log:${tenant}\0${thread}\0${branch}`,
    logAndIndex({ tenant, thread, branch }) {
      const bucket = start(bucketOf(tenant, thread))
      return [`${bucket}log:${tenant}\0${thread}\0${branch}`, `${bucket}index`]
    },
    thread: (tenant, thread) => `${start(bucketOf(tenant, thread))}thread:${tenant}\0${thread}`,
    index: (bucket) => `${start(bucket)}index`,
    blob: (tenant, hash) => `${start(bucketOfBlob(hash))}blob:${tenant}\0${hash}`,
    blobList: (tenant, bucket) => `${start(bucket)}blobs:${tenant}`,
    blobClock: (bucket) => `${start(bucket)}blob-clock`,
    space(tenant, space) {
      const bucket = start(hashText(`${tenant}\0${space}`) % count)
      return [`${bucket}items:${tenant}\0${space}`, `${bucket}keys:${tenant}\0${space}`, `${bucket}index`]
    },
  }
}

/** The first four digits as a number. Never falls from one text to a later one, also where they are no hex digits. */
function hashStart(hash: string): number {
  let start = 0
  for (let i = 0; i < 4; i += 1) {
    const char = hash[i] ?? ''
    const value = HEX.indexOf(char)
    if (char === '' || value < 0) {
      const smaller = [...HEX].filter((digit) => digit < char).length
      const rest = 16 ** (4 - i)
      return smaller === 0 ? start * rest : start * rest + (smaller * rest) / 16 - 1
    }
    start = start * 16 + value
  }
  return start
}

// FNV-1a with a final mix. Part of the layout: a store's threads are found again only by the same function.
function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return (hash ^ (hash >>> 13)) >>> 0
}

/**
 * Hash tags whose slots are spread evenly over a cluster: the first number whose slot falls into each bucket's share of
 * the slots. Consecutive numbers would leave one node of three with half as many buckets as another.
 */
function bucketTags(count: number): string[] {
  const tags: string[] = Array.from({ length: count }, () => '')
  for (let number = 0, missing = count; missing > 0; number += 1) {
    const bucket = Math.floor((slotOf(String(number)) * count) / SLOTS)
    if (tags[bucket] !== '') continue
    tags[bucket] = String(number)
    missing -= 1
  }
  return tags
}

/** The slot of a hash tag: CRC-16 (XMODEM) as Redis Cluster defines it. */
function slotOf(tag: string): number {
  let crc = 0
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? ((crc << 1) ^ 0x1021) & 0xffff : (crc << 1) & 0xffff
  }
  return crc % SLOTS
}

export function slotOfKey(key: string): number {
  return slotOf(/\{([^}]+)\}/.exec(key)?.[1] ?? key)
}
