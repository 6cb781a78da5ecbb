import { randomBytes } from 'node:crypto'
import { CorruptError, InvalidOptionError } from '../core/errors.js'
import type { TenantId } from '../core/ids.js'
import type { BlobWriter, Driver, Hash } from '../log/contract.js'
import { overlay } from '../log/overlay.js'
import { type ArchivePlace, placeName } from './place.js'

const MARK = '{"holdfast":"blob-at"'
const PAGE = 500

/**
 * Large values in a folder or bucket instead of the database, which keeps a short note of where each one is. When a
 * value was touched, whether it exists and who may remove it is decided by the notes, in the database; an object never
 * changes and its name is never reused, so that removing one can't hit a value that was just rewritten.
 */
export class BlobPlace {
  readonly #place: ArchivePlace
  readonly #threshold: number

  constructor(place: ArchivePlace, threshold: number) {
    if (!(Number.isSafeInteger(threshold) && threshold >= 1024))
      throw new InvalidOptionError(
        'blobs.threshold',
        `is ${String(threshold)}`,
        'Pass a number of bytes, 1024 or more.',
      )
    this.#place = place
    this.#threshold = threshold
  }

  wrap(driver: Driver): Driver {
    const overrides: Partial<Driver> = {
      putBlobs: async (tenant, blobs) => driver.putBlobs(tenant, await this.#moveOut(tenant, blobs)),
      getBlobs: async (tenant, hashes) => this.#bringBack(await driver.getBlobs(tenant, hashes)),
      removeBlob: async (tenant, hash, touchedAt) => {
        const note = (await driver.getBlobs(tenant, [hash])).get(hash)
        if (!(await driver.removeBlob(tenant, hash, touchedAt))) return false
        const name = note && nameIn(note)
        if (name !== undefined) await this.#place.remove(name)
        return true
      },
    }
    const { transact } = driver
    if (transact) {
      overrides.transact = (work, options) =>
        transact.call(driver, (sql, blobs) => work(sql, this.#writer(blobs)), options)
    }
    return overlay(driver, overrides)
  }

  /** Removes objects without a note that are older than the grace period: from writers that were killed in between. */
  async collect(driver: Driver, tenant: TenantId, graceMs: number, now: number): Promise<{ readonly removed: number }> {
    const noted = new Set<string>()
    const old: string[] = []
    // Objects first, notes second: one whose note comes in between is too young to be among the old.
    for await (const { name, at } of this.#place.list(folderOf(tenant))) if (at < now - graceMs) old.push(name)
    for (let after: Hash | undefined; old.length > 0; ) {
      const page = await driver.listBlobs(tenant, { limit: PAGE, ...(after === undefined ? {} : { after }) })
      const notes = await driver.getBlobs(
        tenant,
        page.filter(({ size }) => size < 1024).map(({ hash }) => hash),
      )
      for (const note of notes.values()) noted.add(nameIn(note) ?? '')
      if (page.length < PAGE) break
      after = page.at(-1)?.hash
    }
    const gone = old.filter((name) => !noted.has(name))
    for (const name of gone) await this.#place.remove(name)
    return { removed: gone.length }
  }

  #writer(blobs: BlobWriter): BlobWriter {
    return {
      touchBlobs: (tenant, hashes) => blobs.touchBlobs(tenant, hashes),
      putBlobs: async (tenant, given) => blobs.putBlobs(tenant, await this.#moveOut(tenant, given)),
    }
  }

  // The object first: a note is never there without what it names.
  async #moveOut(
    tenant: TenantId,
    blobs: readonly { readonly hash: Hash; readonly bytes: Uint8Array }[],
  ): Promise<readonly { readonly hash: Hash; readonly bytes: Uint8Array }[]> {
    return Promise.all(
      blobs.map(async ({ hash, bytes }) => {
        if (bytes.length < this.#threshold) return { hash, bytes }
        const name = `${folderOf(tenant)}${hash.slice(0, 2)}/${hash}-${randomBytes(6).toString('hex')}`
        await this.#place.put(name, bytes)
        return { hash, bytes: Buffer.from(`${MARK},"name":${JSON.stringify(name)},"size":${bytes.length}}\n`) }
      }),
    )
  }

  async #bringBack(found: ReadonlyMap<Hash, Uint8Array>): Promise<ReadonlyMap<Hash, Uint8Array>> {
    const whole = new Map<Hash, Uint8Array>()
    await Promise.all(
      [...found].map(async ([hash, bytes]) => {
        const name = nameIn(bytes)
        const object = name === undefined ? bytes : await this.#place.get(name)
        if (object === undefined)
          throw new CorruptError(`Blob ${hash} is missing in ${this.#place.description}.`, { blob: hash, name })
        whole.set(hash, object)
      }),
    )
    return whole
  }
}

function folderOf(tenant: TenantId): string {
  return `blobs/${placeName(tenant)}/`
}

/** Where a note says that the value lies; undefined for a value itself, which begins otherwise. */
function nameIn(bytes: Uint8Array): string | undefined {
  if (bytes.length > 1024 || Buffer.from(bytes.subarray(0, MARK.length)).toString() !== MARK) return undefined
  return (JSON.parse(Buffer.from(bytes).toString()) as { readonly name: string }).name
}
