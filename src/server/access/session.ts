import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import type { ServerToken } from './tokens.js'

const IV_BYTES = 12
const TAG_BYTES = 16
const LIFE_MS = 12 * 60 * 60 * 1000

/**
 * Keeps a page's token in a cookie that its scripts can't read. The cookie holds the token encrypted: whoever sees it,
 * such as another server on this machine (cookies do not distinguish ports), can't use the token elsewhere or for long.
 */
export class Sessions {
  readonly #key: Uint8Array

  /** The same tokens give the same key: a session survives a restart, and works with every server of a fleet. */
  constructor(tokens: readonly ServerToken[] | undefined) {
    const secret = tokens === undefined ? randomBytes(32) : tokens.map(({ token }) => token).join('\n')
    this.#key = new Uint8Array(hkdfSync('sha256', secret, '', 'holdfast session', 32))
  }

  /** The header that gives a browser its session. */
  begin(request: Request, token: string, path: string): string {
    return cookie(request, this.#seal(token, Date.now() + LIFE_MS), path, LIFE_MS / 1000)
  }

  /** The header that takes it away. */
  end(request: Request, path: string): string {
    return cookie(request, '', path, 0)
  }

  /**
   * The request as if it had brought its token itself; undefined if it has no session. The browser sends a cookie along
   * whichever page makes it call: it counts only if the browser says that the page is ours.
   */
  restore(request: Request): Request | undefined {
    const { headers, method } = request
    if (headers.has('authorization') || headers.has('x-api-key') || !isOwnPage(request)) return undefined
    const name = nameOf(request)
    const sealed = (headers.get('cookie') ?? '')
      .split(/; */)
      .find((one) => one.startsWith(`${name}=`))
      ?.slice(name.length + 1)
    const token = sealed === undefined ? undefined : this.#open(sealed, Date.now())
    if (token === undefined) return undefined
    const restored = new Headers(headers)
    restored.set('authorization', `Bearer ${token}`)
    return new Request(request.url, { method, headers: restored })
  }

  #seal(token: string, until: number): string {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv)
    const sealed = Buffer.concat([cipher.update(JSON.stringify([token, until]), 'utf8'), cipher.final()])
    return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  #open(text: string, now: number): string | undefined {
    const bytes = Buffer.from(text, 'base64url')
    if (bytes.length <= IV_BYTES + TAG_BYTES) return undefined
    try {
      const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, IV_BYTES))
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES))
      const opened = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()])
      const [token, until] = JSON.parse(opened.toString('utf8')) as [string, number]
      return until > now ? token : undefined
    } catch {
      return undefined
    }
  }
}

function isOwnPage(request: Request): boolean {
  const { headers, method } = request
  const site = headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin') return false
  const origin = headers.get('origin')
  // Browsers name the origin with every request that changes something. Without it, only reads that Fetch Metadata
  // vouches for are allowed.
  if (origin === null) return method === 'GET' && site === 'same-origin'
  try {
    return new URL(origin).host === hostOf(request).toLowerCase()
  } catch {
    return false
  }
}

// By port: servers on one machine share the browser's cookies.
function nameOf(request: Request): string {
  return `holdfast_${/:(\d+)$/.exec(hostOf(request))?.[1] ?? 'session'}`
}

function hostOf(request: Request): string {
  return request.headers.get('host') ?? new URL(request.url).host
}

function cookie(request: Request, value: string, path: string, seconds: number): string {
  const isSecure = new URL(request.url).protocol === 'https:' || request.headers.get('origin')?.startsWith('https:')
  const secure = isSecure ? '; Secure' : ''
  return `${nameOf(request)}=${value}; Path=${path}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`
}
