import { sentence } from '../../core/wording/sentence.js'
import { type ErrorCode, type HoldfastError, isHoldfastError } from '../../index.js'

/** An error as RFC 9457 has it, with our code and what to do about it. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string
  readonly remedy?: string
  readonly retryable: boolean
  readonly [field: string]: unknown
}

/** A failure that is an answer: its status, its code, and words for whoever asked. */
export class HttpProblem extends Error {
  readonly status: number
  readonly code: string
  readonly remedy: string | undefined
  readonly fields: Readonly<Record<string, unknown>>
  readonly headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    code: string,
    detail: string,
    options: {
      readonly remedy?: string
      readonly fields?: Readonly<Record<string, unknown>>
      readonly headers?: Readonly<Record<string, string>>
    } = {},
  ) {
    super(sentence(detail))
    this.name = 'HttpProblem'
    this.status = status
    this.code = code
    this.remedy = options.remedy
    this.fields = options.fields ?? {}
    this.headers = options.headers ?? {}
  }
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad request',
  401: 'Not authenticated',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Method not allowed',
  408: 'Too slow',
  409: 'Conflict',
  413: 'Too large',
  415: 'Wrong content type',
  421: 'Wrong host',
  422: 'Does not fit',
  429: 'Too many',
  500: 'Failed',
  501: 'Not offered',
  503: 'Not available',
  504: 'Timeout',
}

/** By code of ours; what is not listed is nothing that a caller could do something about. */
const STATUS: Partial<Readonly<Record<ErrorCode, number>>> = {
  'invalid-id': 400,
  'invalid-option': 400,
  'invalid-value': 422,
  'not-found': 404,
  conflict: 409,
  held: 409,
  fenced: 409,
  'pause-closed': 409,
  incompatible: 409,
  'too-large': 413,
  timeout: 504,
  closed: 503,
  unavailable: 503,
}

/** What `data` of an error may tell a stranger. Never names of tables, files or processes. */
const TOLD = ['field', 'path', 'pause', 'reason', 'by', 'at', 'limit', 'actual', 'checkpoint', 'branch', 'errors']

/** Any failure as a problem. What went wrong inside is not told; `report` hears of it. */
function toProblem(error: unknown, report: (error: unknown) => void): Problem & { readonly headers: object } {
  if (error instanceof HttpProblem) {
    const { status, code, message, remedy, fields, headers } = error
    return { ...describe(status, code, message, remedy, status === 503 || status === 429), ...fields, headers }
  }
  const status = isHoldfastError(error) ? STATUS[error.code] : undefined
  if (status !== undefined && status < 500) return { ...describeOurs(error as HoldfastError, status), headers: {} }
  report(error)
  if (status !== undefined && isHoldfastError(error)) {
    const detail = error.code === 'timeout' ? withoutRemedy(error) : 'The store is not available now.'
    return { ...describe(status, error.code, detail, 'Try again later.', true), headers: { 'retry-after': '1' } }
  }
  const code = isHoldfastError(error) ? error.code : 'internal'
  const detail = 'Something failed in the server. Its log says what.'
  return { ...describe(500, code, detail, undefined, isHoldfastError(error) && error.retryable), headers: {} }
}

/** The answer that tells a problem. */
export function problemResponse(error: unknown, report: (error: unknown) => void): Response {
  const { headers, ...problem } = toProblem(error, report)
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { ...headers, 'content-type': 'application/problem+json' },
  })
}

function describeOurs(error: HoldfastError, status: number): Problem {
  const told = TOLD.flatMap((name) => (name in error.data ? [[name, error.data[name]]] : []))
  return {
    ...describe(status, error.code, withoutRemedy(error), error.remedy, error.retryable),
    ...Object.fromEntries(told),
  }
}

function withoutRemedy({ message, remedy }: HoldfastError): string {
  return remedy !== '' && message.endsWith(remedy) ? message.slice(0, -remedy.length).trim() : message
}

function describe(
  status: number,
  code: string,
  detail: string,
  remedy: string | undefined,
  retryable: boolean,
): Problem {
  return {
    type: `urn:holdfast:problem:${code}`,
    title: TITLES[status] ?? 'Failed',
    status,
    detail,
    code,
    ...(remedy === undefined || remedy === '' ? {} : { remedy }),
    retryable,
  }
}
