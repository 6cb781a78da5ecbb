import { InvalidOptionError } from '../core/errors.js'
import { type ArchivePlace, folderPlace } from './place.js'
import { type S3Options, s3Place } from './s3-place.js'

/** Who may write to a bucket. */
export type S3Credentials = Pick<S3Options, 'accessKeyId' | 'secretAccessKey'>

/**
 * A place by its URL: `file:folder`, or `s3://bucket/prefix?endpoint=https://…&region=…`. The URL may be
 * printed, so credentials are passed separately.
 */
export function openPlace(place: string | ArchivePlace, credentials?: S3Credentials): ArchivePlace {
  if (typeof place === 'object' && place !== null) return place
  if (typeof place === 'string' && place.startsWith('s3://')) {
    const url = new URL(place)
    const endpoint = url.searchParams.get('endpoint')
    const region = url.searchParams.get('region') ?? undefined
    if (url.username !== '' || url.password !== '')
      throw new InvalidOptionError('archive', 'has credentials in its URL', 'Pass them as `s3`.')
    const { accessKeyId = '', secretAccessKey = '' } = credentials ?? {}
    return s3Place({
      endpoint: endpoint ?? `https://s3.${region ?? 'us-east-1'}.amazonaws.com`,
      bucket: url.hostname,
      prefix: decodeURIComponent(url.pathname.slice(1)),
      accessKeyId,
      secretAccessKey,
      ...(region === undefined ? {} : { region }),
    })
  }
  if (typeof place === 'string' && place.startsWith('file:'))
    return folderPlace(place.replace(/^file:(\/\/(?!\/))?/, ''))
  throw new InvalidOptionError(
    'archive',
    `is ${JSON.stringify(place)}`,
    'Use file:folder or s3://bucket/prefix?endpoint=… instead.',
  )
}
