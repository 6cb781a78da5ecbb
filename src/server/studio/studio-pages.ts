import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { InvalidOptionError } from '../../errors.js'

const TYPES: Readonly<Record<string, string>> = {
  'studio.js': 'text/javascript; charset=utf-8',
  'studio.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
  'licenses.txt': 'text/plain; charset=utf-8',
}

/** The page may load what this server has and nothing else, run no script but its own file, and be framed by nobody. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const HEADERS = {
  'content-security-policy': POLICY,
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-cache',
}

/** The files of the studio, as the build left them next to this module. */
export class StudioPages {
  readonly #files = new Map<string, { readonly body: string; readonly tag: string; readonly type: string }>()

  /** @param base where the server is mounted, without a slash at its end. */
  constructor(base: string) {
    const page = read('index.html').replaceAll('{{base}}', base.replace(/[&<>"']/g, ''))
    this.#add('', page, 'text/html; charset=utf-8')
    for (const [name, type] of Object.entries(TYPES)) this.#add(name, read(name), type)
  }

  /** A file, or the page itself for every other path: it finds out by itself what the address means. */
  answer(request: Request, path: string): Response {
    const file = this.#files.get(path) ?? this.#files.get('')
    if (file === undefined) return new Response(null, { status: 404 })
    const headers = { ...HEADERS, 'content-type': file.type, etag: file.tag }
    if (request.headers.get('if-none-match') === file.tag) return new Response(null, { status: 304, headers })
    return new Response(file.body, { headers })
  }

  #add(name: string, body: string, type: string): void {
    const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`
    this.#files.set(name, { body, tag, type })
  }
}

function read(name: string): string {
  try {
    return readFileSync(new URL(`../../studio/${name}`, import.meta.url), 'utf8')
  } catch {
    throw new InvalidOptionError('studio', `is on, and its file ${name} is not there`, 'Install the package again.')
  }
}
