import type { ProblemInfo } from './types.js'

/** Where the server is, and who calls. */
export interface ClientOptions {
  /** Such as `http://127.0.0.1:8787`. Omitted in a browser: where the page came from. */
  readonly baseUrl?: string
  readonly token?: string
  /** Default: the global `fetch`. */
  readonly fetch?: (input: string, init?: RequestInit) => Promise<Response>
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>
}

/** A refusal by the server. Decide by `code`. */
export class HoldfastClientError extends Error {
  readonly code: string
  readonly status: number
  readonly problem: ProblemInfo

  constructor(problem: ProblemInfo) {
    super(problem.remedy === undefined ? problem.detail : `${problem.detail} ${problem.remedy}`)
    this.name = 'HoldfastClientError'
    this.code = problem.code
    this.status = problem.status
    this.problem = problem
  }
}

export interface RequestOptions {
  readonly method?: string
  readonly query?: Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

/** Sends requests and reads responses. */
export class Transport {
  readonly #base: string
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    checkNames(options)
    this.#base = (options.baseUrl ?? '').replace(/\/+$/, '')
    this.#options = options
  }

  async json<Answer>(path: string, options: RequestOptions = {}): Promise<Answer> {
    const response = await this.send(path, options)
    const text = await response.text()
    return (text === '' ? undefined : JSON.parse(text)) as Answer
  }

  /** The response, if all went well. */
  async send(path: string, { method, query = {}, body, headers, signal }: RequestOptions = {}): Promise<Response> {
    const { token, fetch: send = globalThis.fetch, headers: always } = this.#options
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) {
      for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined) search.append(name, String(one))
    }
    const suffix = search.size > 0 ? `?${search}` : ''
    const response = await send(`${this.#base}${path}${suffix}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...always,
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    if (response.ok) return response
    throw new HoldfastClientError(await readProblem(response))
  }
}

const OPTIONS: { readonly [Name in keyof Required<ClientOptions>]: true } = {
  baseUrl: true,
  token: true,
  fetch: true,
  headers: true,
}

// Without it, a `baseURL` would be ignored and requests go to wherever the page came from.
function checkNames(options: ClientOptions): void {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(OPTIONS, name))
  if (unknown === undefined) return
  const known = Object.keys(OPTIONS)
  const meant = known.find((name) => name.toLowerCase() === unknown.toLowerCase())
  const remedy = `${meant === undefined ? '' : `Did you mean ${meant}? `}Use one of: ${known.join(', ')}.`
  throw new TypeError(`The option "${unknown}" is not recognized by HoldfastClient. ${remedy}`)
}

async function readProblem(response: Response): Promise<ProblemInfo> {
  const text = await response.text().catch(() => '')
  try {
    const problem = JSON.parse(text) as ProblemInfo
    if (typeof problem.code === 'string' && typeof problem.detail === 'string') return problem
  } catch {}
  const { status } = response
  const detail = `The server answered ${status}${text === '' ? '' : `: ${text.slice(0, 200)}`}.`
  return { type: 'about:blank', title: response.statusText, status, detail, code: 'http', retryable: status >= 500 }
}
