import { HttpProblem } from '../http/problem.js'

/** Which hosts and origins may reach the server. */
export interface GateOptions {
  /**
   * Names to accept in `Host` besides IP addresses and `localhost`. `*` accepts all: only if something in front of the
   * server checks it.
   */
  readonly hosts?: readonly string[]
  /**
   * Origins of pages that may call from a browser, such as `https://app.example.com`. Default: only the server's own.
   */
  readonly origins?: readonly string[]
}

/** What clients may send, and see of a response. */
const ALLOWED_HEADERS = 'authorization, content-type, last-event-id, x-api-key, x-holdfast-tenant, x-request-id'
const EXPOSED_HEADERS =
  'content-location, location, x-vercel-ai-ui-message-stream, x-pagination-total, x-pagination-next'
const PREFLIGHT_SECONDS = '600'

/**
 * Runs before everything else. A stranger's page can make a browser send requests here: through a host name that it
 * points to 127.0.0.1 (`Host` reveals it), or across origins (`Origin` reveals it).
 */
export class Gate {
  readonly #hosts: ReadonlySet<string>
  readonly #origins: ReadonlySet<string>

  constructor({ hosts = [], origins = [] }: GateOptions) {
    this.#hosts = new Set(hosts.map((host) => host.toLowerCase()))
    this.#origins = new Set(origins.map((origin) => origin.toLowerCase().replace(/\/$/, '')))
  }

  /** Throws when the request is not meant for this server. */
  check(request: Request): void {
    const host = hostOf(request)
    if (!this.#isKnown(host)) {
      throw new HttpProblem(421, 'unknown-host', `This server does not answer to the host "${printable(host)}".`, {
        remedy: 'Use its IP address or localhost, or name the host in the option `hosts` (--allow-host).',
      })
    }
    const origin = request.headers.get('origin')
    if (origin !== null && !this.#mayCall(request, origin)) {
      throw new HttpProblem(403, 'unknown-origin', `Pages of "${printable(origin)}" may not call this server.`, {
        remedy: 'Name the origin in the option `origins` (--allow-origin).',
      })
    }
  }

  /** The response to a browser's preflight request; undefined for any other request. */
  preflight(request: Request): Response | undefined {
    if (request.method !== 'OPTIONS' || !request.headers.has('access-control-request-method')) return undefined
    const headers = new Headers({
      'access-control-allow-methods': 'GET, POST, PUT, PATCH, DELETE',
      'access-control-allow-headers': ALLOWED_HEADERS,
      'access-control-max-age': PREFLIGHT_SECONDS,
    })
    this.mark(request, headers)
    return new Response(null, { status: 204, headers })
  }

  /** Tells the browser of an allowed page that it may read the response. */
  mark(request: Request, headers: Headers): void {
    headers.append('vary', 'Origin')
    const origin = request.headers.get('origin')
    if (origin === null || !this.#origins.has(origin.toLowerCase())) return
    headers.set('access-control-allow-origin', origin)
    headers.set('access-control-expose-headers', EXPOSED_HEADERS)
  }

  #isKnown(host: string): boolean {
    const name = host.replace(/:\d+$/, '').toLowerCase()
    // No name server is asked for an address, so nobody can point it elsewhere.
    if (/^\d{1,3}(\.\d{1,3}){3}$/.test(name) || /^\[[\da-f:.]+\]$/.test(name)) return true
    return name === 'localhost' || name.endsWith('.localhost') || this.#hosts.has(name) || this.#hosts.has('*')
  }

  #mayCall(request: Request, origin: string): boolean {
    if (this.#origins.has(origin.toLowerCase())) return true
    // Its own pages. `Host` was checked before: a name that was made to point here does not get this far.
    try {
      return new URL(origin).host === hostOf(request).toLowerCase()
    } catch {
      return false
    }
  }
}

function hostOf(request: Request): string {
  return request.headers.get('host') ?? new URL(request.url).host
}

function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, '?').slice(0, 200)
}
