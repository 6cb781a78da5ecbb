import { HttpProblem } from './problem.js'

/** Stored values as JSON: dates as ISO text, bigints as digits, bytes as base64, errors by name and message. */
export function toJson(value: unknown): string {
  return JSON.stringify(value, plain) ?? 'null'
}

function plain(this: Record<string, unknown>, key: string, value: unknown): unknown {
  // As it was before `toJSON` was called: a Buffer would be a list of numbers.
  const given = this[key]
  if (typeof value === 'bigint') return value.toString()
  if (given instanceof Uint8Array) return Buffer.from(given).toString('base64')
  if (typeof value === 'number' && !Number.isFinite(value)) return String(value)
  return given instanceof Error ? { name: given.name, message: given.message } : value
}

/** An answer of JSON that no cache keeps: it is one caller's. */
export function jsonResponse(
  value: unknown,
  init: { readonly status?: number; readonly headers?: object } = {},
): Response {
  return new Response(toJson(value), {
    status: init.status ?? 200,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...init.headers },
  })
}

/** How large a body may be, and how long it may take to arrive. */
export interface BodyLimits {
  readonly maxBodyBytes: number
  readonly bodyTimeoutMs: number
}

/**
 * The JSON of a request; undefined when it has no body. A body must say that it is JSON: what a form, or a script of
 * another page, can send without being asked is `text/plain`, `multipart/form-data` or `application/x-www-form-urlencoded`.
 */
export async function readJson(request: Request, limits: BodyLimits): Promise<unknown> {
  const type = request.headers.get('content-type')
  if (type !== null && !/^application\/json *(;|$)/i.test(type)) throw wrongType(type)
  const bytes = await readBody(request, limits)
  if (bytes.length === 0) return undefined
  if (type === null) throw wrongType(type)
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as unknown
  } catch {
    throw new HttpProblem(400, 'not-json', 'The body is not valid JSON.', { remedy: 'Send JSON in UTF-8.' })
  }
}

function wrongType(type: string | null): HttpProblem {
  const given = type === null ? 'none' : `"${type.replace(/[^\x20-\x7e]/g, '?').slice(0, 100)}"`
  return new HttpProblem(415, 'content-type', `The content type must be application/json, not ${given}.`, {
    remedy: 'Send JSON, with the header Content-Type: application/json.',
  })
}

async function readBody(request: Request, { maxBodyBytes, bodyTimeoutMs }: BodyLimits): Promise<Buffer> {
  const declared = Number(request.headers.get('content-length') ?? 0)
  if (declared > maxBodyBytes) throw tooLarge(maxBodyBytes)
  if (request.body === null) return Buffer.alloc(0)
  const reader = (request.body as ReadableStream<Uint8Array>).getReader()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(tooSlow(bodyTimeoutMs)), bodyTimeoutMs)
  })
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), late])
      if (done) return Buffer.concat(chunks)
      size += value.length
      if (size > maxBodyBytes) throw tooLarge(maxBodyBytes)
      chunks.push(value)
    }
  } catch (error) {
    void reader.cancel().catch(() => {})
    throw error
  } finally {
    clearTimeout(timer)
  }
}

function tooLarge(limit: number): HttpProblem {
  return new HttpProblem(413, 'too-large', `The body is over the limit of ${limit} bytes.`, {
    remedy: 'Send less, or raise `limits.maxBodyBytes`.',
    fields: { limit },
    headers: { connection: 'close' },
  })
}

function tooSlow(limitMs: number): HttpProblem {
  return new HttpProblem(408, 'too-slow', `The body did not arrive within ${limitMs} ms.`, {
    remedy: 'Send it again.',
    headers: { connection: 'close' },
  })
}
