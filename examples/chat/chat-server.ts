// The server of the example: the agent's API and the pages, from one address.
import { randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import type { Holdfast } from 'holdfast'
import { createServer, listen, type Listening, type Principal, type ServerProgram } from 'holdfast/server'

const PAGES: Readonly<Record<string, string>> = { '/': 'use-chat', '/stream': 'use-stream' }

/** Serves programs with the pages of this folder. Who opens a page gets a session, and threads of their own. */
export async function startChat(hf: Holdfast, programs: readonly ServerProgram[], port: number): Promise<Listening> {
  const pages = await buildPages()
  const sessions = new Map<string, Principal>()
  const server = createServer(hf, {
    programs,
    auth: (request) => sessions.get(sessionOf(request) ?? ''),
  })
  const fetch = async (request: Request): Promise<Response> => {
    const page = pages.get(new URL(request.url).pathname)
    if (page === undefined || request.method !== 'GET') return server.fetch(request)
    const headers = new Headers({ 'content-type': 'text/html; charset=utf-8' })
    if (!sessions.has(sessionOf(request) ?? '')) {
      const session = randomBytes(24).toString('base64url')
      sessions.set(session, {
        tenant: `visitor-${sessions.size + 1}`,
        subject: 'visitor',
        roles: ['read', 'run', 'answer', 'fork'],
      })
      // Scripts can't read it, and other pages can't have it sent.
      headers.set('set-cookie', `session=${session}; HttpOnly; SameSite=Strict; Path=/`)
    }
    return new Response(page, { headers })
  }
  return listen({ ...server, fetch, close: () => server.close() }, { port })
}

function sessionOf(request: Request): string | undefined {
  return /(?:^|; )session=([\w-]+)/.exec(request.headers.get('cookie') ?? '')?.[1]
}

async function buildPages(): Promise<ReadonlyMap<string, string>> {
  const file = (name: string) => fileURLToPath(new URL(`pages/${name}.tsx`, import.meta.url))
  const { outputFiles } = await build({
    entryPoints: Object.values(PAGES).map(file),
    bundle: true,
    write: false,
    outdir: 'out',
    format: 'esm',
    target: 'es2022',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
    logLevel: 'silent',
  })
  return new Map(
    Object.entries(PAGES).map(([path, name]) => {
      const script = outputFiles.find((output) => output.path.endsWith(`${name}.js`))?.text ?? ''
      const safe = script.replaceAll('</script', '<\\/script')
      const html = `<!doctype html><meta charset="utf-8"><title>${name}</title><div id="root"></div><script type="module">${safe}</script>`
      return [path, html]
    }),
  )
}
