import type { TenantId } from '../core/ids.js'
import type { Driver, Head, LogKey } from '../log/contract.js'
import type { BeforeRemoval } from '../log/log.js'
import type { Archive } from './archive.js'
import type { ArchivedFile } from './archived-file.js'

const AT_ONCE = 20

/** Writes what a cut of a branch is about to remove. */
export function pastWriter(
  archive: Archive,
  driver: Driver,
  log: LogKey,
  onWritten?: (files: readonly ArchivedFile[]) => void,
): BeforeRemoval {
  return async (at, isReplaced) => {
    const head = await driver.head(log)
    if (head === undefined || at <= head.base.seq) return
    // With the entry that is replaced by a keyframe: restored, the whole branch joins at it again.
    const files = await archive.write(head, 'past', isReplaced ? at + 1 : at)
    onWritten?.(files)
  }
}

/** An archive as the place where sweeps put what they remove. */
export class SweptToArchive {
  readonly #archive: Archive
  readonly #driver: Driver

  constructor(archive: Archive, driver: Driver) {
    this.#archive = archive
    this.#driver = driver
  }

  async writeThread(heads: readonly Head[]): Promise<() => Promise<void>> {
    const files: ArchivedFile[] = []
    for (const head of heads) files.push(...(await this.#archive.write(head, 'thread')))
    return async () => {
      for (const { name } of files) await this.#archive.removeFile(name)
    }
  }

  writePast(log: LogKey): BeforeRemoval {
    return pastWriter(this.#archive, this.#driver, log)
  }

  async *removeOlder(tenant: TenantId, before: number): AsyncGenerator<number> {
    const old = (await this.#archive.list(tenant)).filter(({ archivedAt }) => archivedAt < before)
    for (let i = 0; i < old.length; i += AT_ONCE) {
      const some = old.slice(i, i + AT_ONCE)
      for (const { name } of some) await this.#archive.removeFile(name)
      yield some.length
    }
  }
}
