import { InvalidOptionError, MissingDependencyError, UnavailableError } from '../core/errors.js'
import type { ArchivePlace, PlacedObject } from './place.js'

/** How a bucket is reached. */
export interface S3Options {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** The address of the server without the bucket: `https://s3.eu-central-1.amazonaws.com`. */
  readonly endpoint: string
  readonly bucket: string
  /** Default 'auto'. */
  readonly region?: string
  /** Before every name. */
  readonly prefix?: string
}

/** The part of `s3mini` that is used here. */
interface S3Like {
  putObject(
    key: string,
    data: Uint8Array,
    fileType?: string,
  ): Promise<{ readonly ok: boolean; readonly status: number }>
  getObjectArrayBuffer(key: string): Promise<ArrayBuffer | null>
  listObjectsPaged(
    delimiter: string,
    prefix: string,
    maxKeys: number,
    token?: string,
  ): Promise<
    { readonly objects: readonly ListedObject[] | null; readonly nextContinuationToken?: string } | null | undefined
  >
  deleteObject(key: string): Promise<unknown>
}

interface ListedObject {
  readonly Key: string
  readonly Size: number | string
  readonly LastModified: Date | string
}

const PAGE = 1000

/** A bucket of S3, or of any server that speaks its protocol, as a place. Needs the package `s3mini`. */
export function s3Place(options: S3Options): ArchivePlace {
  const { accessKeyId, secretAccessKey, endpoint, bucket, region = 'auto' } = options
  for (const [name, value] of Object.entries({ accessKeyId, secretAccessKey, endpoint, bucket })) {
    if (typeof value === 'string' && value !== '') continue
    throw new InvalidOptionError(
      `s3.${name}`,
      'is not given',
      'Pass endpoint, bucket, accessKeyId and secretAccessKey.',
    )
  }
  const prefix = options.prefix ? `${options.prefix.replace(/^\/|\/$/g, '')}/` : ''
  let client: Promise<S3Like> | undefined
  const open = (): Promise<S3Like> => {
    client ??= connect({ accessKeyId, secretAccessKey, endpoint: `${endpoint.replace(/\/$/, '')}/${bucket}`, region })
    return client
  }
  const call = async <Result>(work: (s3: S3Like) => Promise<Result>): Promise<Result> => {
    const s3 = await open()
    try {
      return await work(s3)
    } catch (cause) {
      throw new UnavailableError(`The bucket ${bucket} at ${endpoint} refused: ${(cause as Error).message}.`, {
        written: 'unknown',
        remedy: 'Check the endpoint, bucket, credentials and permissions. The call can be repeated.',
        cause,
      })
    }
  }
  return {
    description: `bucket ${bucket} at ${endpoint}`,
    async put(name, bytes) {
      await call(async (s3) => {
        const { ok, status } = await s3.putObject(prefix + name, bytes, 'application/octet-stream')
        if (!ok) throw new Error(`status ${status}`)
      })
    },
    async get(name) {
      const found = await call((s3) => s3.getObjectArrayBuffer(prefix + name))
      return found === null ? undefined : new Uint8Array(found)
    },
    async *list(start) {
      let token: string | undefined
      do {
        const page = await call((s3) => s3.listObjectsPaged('/', prefix + start, PAGE, token))
        for (const one of page?.objects ?? []) yield placed(one, prefix)
        token = page?.nextContinuationToken
      } while (token !== undefined && token !== '')
    },
    async remove(name) {
      await call((s3) => s3.deleteObject(prefix + name))
    },
  }
}

function placed({ Key, Size, LastModified }: ListedObject, prefix: string): PlacedObject {
  return { name: Key.slice(prefix.length), size: Number(Size), at: new Date(LastModified).getTime() }
}

async function connect(config: object): Promise<S3Like> {
  try {
    const { S3mini } = (await import('s3mini')) as unknown as { readonly S3mini: new (config: object) => S3Like }
    return new S3mini(config)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw cause
    throw new MissingDependencyError('s3mini', 'npm install s3mini', { cause })
  }
}
