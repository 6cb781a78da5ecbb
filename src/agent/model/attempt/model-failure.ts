import type { ModelFailureKind } from '../../../core/errors.js'
import { redactSecrets } from './redact.js'
import { readRetryAfter } from './retry-after.js'

/** What is known about a failed call. Plain data without secrets: it goes into events and errors. */
export interface ModelFailure {
  readonly kind: ModelFailureKind
  readonly retryable: boolean
  /** What the provider or the network said. */
  readonly message: string
  readonly status?: number
  /** The provider's own code, such as `context_length_exceeded`. */
  readonly providerCode?: string
  readonly requestId?: string
  /** How long the provider asked to wait. */
  readonly retryAfterMs?: number
}

/** Thrown inside an attempt for what the provider did not itself report as an error. */
export class AttemptFailure extends Error {
  readonly kind: 'timeout' | 'broken-reply'
  constructor(kind: 'timeout' | 'broken-reply', message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'AttemptFailure'
    this.kind = kind
  }
}

type Bag = Readonly<Record<string, unknown>>

const MAX_CHAIN = 10

const NETWORK_CODES =
  /^(ECONN(RESET|REFUSED|ABORTED)|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENETDOWN|EAI_AGAIN|ENOTFOUND|UND_ERR_(SOCKET|CLOSED|DESTROYED|INFO|CONNECT_TIMEOUT|HEADERS_TIMEOUT|BODY_TIMEOUT|RES_CONTENT_LENGTH_MISMATCH)|ERR_STREAM_PREMATURE_CLOSE|HPE_INVALID_\w+|ConnectionRefused|ConnectionClosed|FailedToOpenSocket)$/
const NETWORK_WORDS = /^(terminated|fetch failed|failed to fetch|network error|socket hang up|other side closed)$/i

const CONTEXT_CODES =
  /^(context_length_exceeded|context_window_exceeded|request_too_large|model_context_window_exceeded)$/
const CONTEXT_WORDS = [
  /maximum context length/i,
  /context[ _-](length|window|size)( \S+){0,4} (exceed|limit|too)/i,
  /exceed(s|ed|ing)?( \S+){0,6} context[ _-](length|window|size|limit)/i,
  /(prompt|input|messages?|request)( \S+){0,3} (is|are) too (long|large)/i,
  /(prompt|input)( \S+){0,3} too (long|large)/i,
  /too many (input |prompt )?tokens/i,
  /input token count( \S+){0,3} exceeds/i,
  /input (length|tokens?)( \S+){0,12} (exceed|greater than|larger than|longer than)/i,
  /(prompt|input)( \S+){0,8} tokens?( \S+){0,8} (exceed|greater than|larger than|longer than|more than)/i,
  /reduce the length of the (messages|prompt|input)/i,
]
/** A limit on the reply, not on the prompt. */
const OUTPUT_WORDS = /max_(completion_|output_)?tokens (is|are|must)|at most \d+ (completion|output) tokens/i

/** Reads any provider's error by its shape, even if it is wrapped in others. */
export function readFailure(error: unknown, now: number): ModelFailure {
  const chain = unwrap(error)
  const own = chain.find((link) => link instanceof AttemptFailure) as AttemptFailure | undefined
  const api = chain.find((link) => statusOf(link) !== undefined)
  const status = api === undefined ? undefined : statusOf(api)
  const details = providerDetails(chain)
  const headers = headersOf(api)
  const retryAfterMs = readRetryAfter(headers, now)
  const requestId = headers['x-request-id'] ?? headers['request-id']
  const message = redactSecrets(details.message ?? messageOf(chain))
  const judged = judge({ chain, own, status, code: details.code, message, headers })
  return {
    ...judged,
    message,
    ...(status === undefined ? {} : { status }),
    ...(details.code === undefined ? {} : { providerCode: redactSecrets(details.code) }),
    ...(requestId === undefined ? {} : { requestId }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  }
}

function judge(known: {
  readonly chain: readonly Bag[]
  readonly own: AttemptFailure | undefined
  readonly status: number | undefined
  readonly code: string | undefined
  readonly message: string
  readonly headers: Readonly<Record<string, string>>
}): Pick<ModelFailure, 'kind' | 'retryable'> {
  const { chain, own, status, code = '', message, headers } = known
  if (own?.kind === 'timeout' || chain.some((link) => link['name'] === 'TimeoutError')) {
    return { kind: 'timeout', retryable: true }
  }
  if (isContextTooLong(status, code, message)) return { kind: 'context-too-long', retryable: false }
  const network = chain.some(isNetworkError)
  if (status === undefined || status < 400) return judgeWithoutStatus(chain, own, code, network, status)
  const refused = headers['x-should-retry'] === 'false'
  if (status === 402 || /insufficient_quota|billing|credit_balance/i.test(code))
    return { kind: 'quota', retryable: false }
  if (status === 429) return { kind: 'rate-limit', retryable: !refused }
  if (status >= 500 || status === 408 || status === 409) return { kind: 'server', retryable: !refused }
  if (status === 401 || status === 403) return { kind: 'auth', retryable: false }
  if (status === 404) return { kind: 'not-found', retryable: false }
  return { kind: 'invalid-request', retryable: false }
}

/** Not an HTTP error: the network, an error inside a stream that began well, or something in this process. */
function judgeWithoutStatus(
  chain: readonly Bag[],
  own: AttemptFailure | undefined,
  code: string,
  network: boolean,
  status: number | undefined,
): Pick<ModelFailure, 'kind' | 'retryable'> {
  if (network) return { kind: 'connection', retryable: true }
  if (/insufficient_quota|billing/i.test(code)) return { kind: 'quota', retryable: false }
  if (/rate_?limit|too_many_requests/i.test(code)) return { kind: 'rate-limit', retryable: true }
  if (/authentication|permission|invalid_api_key/i.test(code)) return { kind: 'auth', retryable: false }
  if (/not_found/i.test(code)) return { kind: 'not-found', retryable: false }
  if (/invalid_request|invalid_prompt/i.test(code)) return { kind: 'invalid-request', retryable: false }
  if (/overloaded|server_error|api_error|unavailable|timeout/i.test(code)) return { kind: 'server', retryable: true }
  // A 2xx reply that can't be read, or one that broke off, may be complete the next time.
  if (own !== undefined || status !== undefined) return { kind: 'broken-reply', retryable: true }
  if (chain.some((link) => link['isRetryable'] === true)) return { kind: 'connection', retryable: true }
  return { kind: 'unknown', retryable: false }
}

function isContextTooLong(status: number | undefined, code: string, message: string): boolean {
  if (status !== undefined && status !== 400 && status !== 413 && status !== 422 && status >= 300) return false
  if (CONTEXT_CODES.test(code) || status === 413) return true
  return !OUTPUT_WORDS.test(message) && CONTEXT_WORDS.some((words) => words.test(message))
}

/** The error and what it wraps, outermost first. */
function unwrap(error: unknown): Bag[] {
  const chain: Bag[] = []
  const open: unknown[] = [error]
  while (open.length > 0 && chain.length < MAX_CHAIN) {
    const link = open.shift()
    if (typeof link === 'string' && link !== '') chain.push({ message: link })
    if (typeof link !== 'object' || link === null || chain.includes(link as Bag)) continue
    const bag = link as Bag
    chain.push(bag)
    const inner: unknown = bag['lastError'] ?? bag['error']
    open.push(bag['cause'], inner, ...(Array.isArray(bag['errors']) ? bag['errors'].slice(-1) : []))
  }
  return chain
}

function statusOf(link: Bag): number | undefined {
  const response = link['response'] as Bag | null | undefined
  for (const value of [link['statusCode'], link['status'], response?.['status']]) {
    if (typeof value === 'number' && value >= 100 && value < 600) return value
  }
  // Inside a stream, some servers give the HTTP status as the error code.
  const code = Number(link['code'])
  return Number.isInteger(code) && code >= 400 && code < 600 ? code : undefined
}

function headersOf(link: Bag | undefined): Readonly<Record<string, string>> {
  const response = link?.['response'] as Bag | null | undefined
  const raw = link?.['responseHeaders'] ?? link?.['headers'] ?? response?.['headers']
  const headers: Record<string, string> = {}
  if (raw instanceof Headers) raw.forEach((value, name) => (headers[name] = value))
  else if (typeof raw === 'object' && raw !== null) {
    for (const [name, value] of Object.entries(raw)) headers[name.toLowerCase()] = String(value)
  }
  return headers
}

/** What the provider's body says: `{ error: { message, code, type } }` in most dialects. */
function providerDetails(chain: readonly Bag[]): { readonly message?: string; readonly code?: string } {
  for (const link of chain) {
    const bodies = [link['data'], parseBody(link['responseBody']), link]
    for (const body of bodies) {
      if (typeof body !== 'object' || body === null) continue
      const inner = (body as Bag)['error']
      const error = (typeof inner === 'object' && inner !== null ? inner : body) as Bag
      const code = [error['code'], error['type'], error['status']].find((value) => isProviderCode(value))
      if (code === undefined) continue
      const message = error['message']
      return { code: String(code), ...(typeof message === 'string' ? { message } : {}) }
    }
  }
  return {}
}

// Codes of the network and of Node are not the provider's.
function isProviderCode(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && value !== 'error' && !/^(E[A-Z]|ERR_|UND_ERR)/.test(value)
}

function parseBody(body: unknown): unknown {
  if (typeof body !== 'string' || body.length > 100_000) return undefined
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

function isNetworkError(link: Bag): boolean {
  const { code, message } = link
  if (typeof code === 'string' && NETWORK_CODES.test(code)) return true
  return typeof message === 'string' && NETWORK_WORDS.test(message)
}

function messageOf(chain: readonly Bag[]): string {
  for (const link of chain) {
    if (typeof link['message'] === 'string' && link['message'] !== '') return link['message']
  }
  return 'No reason was given.'
}
