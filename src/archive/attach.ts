import type { Driver } from '../log/contract.js'
import { Archive } from './archive.js'
import { withArchive } from './archived-driver.js'
import { BlobPlace } from './blob-place.js'
import { openPlace, type S3Credentials } from './open-place.js'
import type { ArchivePlace } from './place.js'

/** Cheaper storage in addition to the database. */
export interface PlaceOptions {
  /**
   * Where threads and the older history of threads are archived: `file:folder`, `s3://bucket/prefix?endpoint=…`, or a
   * place of your own.
   */
  readonly archive?: string | ArchivePlace
  /** Where large values are kept instead of in the database, and from how many bytes on. Default 1 MB. */
  readonly blobs?: { readonly place: string | ArchivePlace; readonly threshold?: number }
  /** For URLs that begin with s3://. */
  readonly s3?: S3Credentials
}

/** A driver with its places. */
export interface Attached {
  readonly driver: Driver
  readonly archive?: Archive
  readonly blobPlace?: BlobPlace
}

const DEFAULT_THRESHOLD = 1024 * 1024

/** Checks the options and opens nothing: a place is reached when it is used. */
export function parsePlaces(options: PlaceOptions): (driver: Driver, now: () => number) => Attached {
  const { archive, blobs, s3 } = options
  const archivePlace = archive === undefined ? undefined : openPlace(archive, s3)
  const blobPlace = blobs && new BlobPlace(openPlace(blobs.place, s3), blobs.threshold ?? DEFAULT_THRESHOLD)
  return (driver, now) => {
    const whole = blobPlace ? blobPlace.wrap(driver) : driver
    const attached = { driver: whole, ...(blobPlace ? { blobPlace } : {}) }
    if (archivePlace === undefined) return attached
    const made = new Archive(whole, archivePlace, now)
    return { ...attached, driver: withArchive(whole, made), archive: made }
  }
}
