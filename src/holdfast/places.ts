import { SweptToArchive } from '../archive/swept-archive.js'
import type { ArchiveParts } from '../archive/thread-archive.js'
import { InvalidOptionError } from '../core/errors.js'
import type { TenantId } from '../core/ids.js'
import type { Holdfast } from './holdfast.js'

/** Additional storage next to the backend, as `openHoldfast` sets it up. */
export interface HoldfastPlaces {
  readonly archive?: ArchiveParts<Holdfast>
  /** Removes objects that nothing in the database names. */
  readonly collectObjects?: (tenant: TenantId, graceMs: number) => Promise<unknown>
  /** Workers report in the store that they are there. */
  readonly listsWorkers?: boolean
}

/** Where sweeps archive what they remove. */
export function sweptArchive({ archive }: HoldfastPlaces): SweptToArchive | undefined {
  return archive && new SweptToArchive(archive.archive, archive.driver)
}

export function missingArchive(field: string): InvalidOptionError {
  const remedy = "Open the store with { archive: 'file:archive' } or { archive: 's3://bucket/prefix?endpoint=…', s3 }."
  return new InvalidOptionError(field, field === 'archive' ? 'is not given' : 'needs an archive', remedy)
}
