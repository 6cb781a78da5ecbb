import { inspect } from 'node:util'
import { Hono } from 'hono'
import type { Holdfast } from '../index.js'
import { InvalidOptionError } from '../errors.js'
import { parseTenantId } from '../core/ids.js'
import { SchemaChecker } from '../json-schema/schema-checker.js'
import { Gate } from './access/gate.js'
import { mayDo, type Principal } from './access/principal.js'
import { Sessions } from './access/session.js'
import { type Authenticate, authenticateByToken, checkPrincipal, tokenOf } from './access/tokens.js'
import { chatRoutes } from './ai-sdk/chat-routes.js'
import { ServerCore } from './core.js'
import { jsonResponse, readJson } from './http/json.js'
import { HttpProblem, problemResponse } from './http/problem.js'
import { readQuery } from './http/query.js'
import type { Call, Route } from './http/route.js'
import { langGraphRoutes } from './langgraph/routes.js'
import { componentsOf } from './native/components.js'
import { nativeRoutes } from './native/routes.js'
import { StudioPages } from './studio/studio-pages.js'
import { checkServerOptions, readLimits, type ServerOptions } from './options.js'

/** Agents over HTTP: a single handler of web-standard requests, which any host can call. */
export interface HoldfastServer {
  /** Answers one request. */
  readonly fetch: (request: Request) => Promise<Response>
  /** How many streams are open. */
  readonly openStreams: number
  /** Ends all streams with an event that tells clients to reconnect, and stops the worker. The store stays open. */
  close(): Promise<void>
}

/** Creates a server for an open store and programs. Its worker starts immediately. */
export function createServer(hf: Holdfast, options: ServerOptions): HoldfastServer {
  checkServerOptions(options)
  const authenticate = readAuth(options)
  const gate = new Gate(options)
  const core = new ServerCore(hf, options, readLimits(options.limits))
  const report = options.onError ?? ((error: unknown) => void process.stderr.write(`${inspect(error)}\n`))
  const app = new Hono()
  const base = (options.basePath ?? '').replace(/\/+$/, '')
  const sessions = options.studio ? new Sessions(options.tokens) : undefined
  // Only the native API accepts the cookie: the others are called by pages that bring a token themselves.
  const byCookie: Authenticate = (request) => authenticate(sessions?.restore(request) ?? request)
  const methods = new Map<string, Set<string>>()
  for (const route of [...nativeRoutes, ...chatRoutes, ...langGraphRoutes]) {
    const answer = handler(route, core, nativeRoutes.includes(route) ? byCookie : authenticate)
    app.on(route.method, base + route.path, (context) => answer(context.req.raw, context.req.param()))
    methods.set(route.path, (methods.get(route.path) ?? new Set()).add(route.method))
  }
  if (sessions) serveStudio(app, base, sessions, authenticate)
  // After all of them: a path that exists with another method.
  for (const [path, allowed] of methods) app.all(base + path, () => Promise.reject(wrongMethod([...allowed])))
  app.notFound(() =>
    Promise.reject(
      new HttpProblem(404, 'not-found', 'There is nothing at this path.', { remedy: 'See /v1/openapi.json.' }),
    ),
  )
  app.onError((error, context) => problemResponse(error, (cause) => report(cause, context.req.raw)))

  const fetch = async (request: Request): Promise<Response> => {
    let response: Response
    try {
      gate.check(request)
      if (core.stopping.aborted) throw stopped()
      response = gate.preflight(request) ?? (await app.fetch(request))
    } catch (error) {
      response = problemResponse(error, (cause) => report(cause, request))
    }
    gate.mark(request, response.headers)
    response.headers.set('x-content-type-options', 'nosniff')
    return response
  }
  core.startWorker()
  return {
    fetch,
    get openStreams() {
      return core.slots.size
    },
    close: () => core.stop(),
  }
}

/** The page, its files, and how it gets its session. */
function serveStudio(app: Hono, base: string, sessions: Sessions, authenticate: Authenticate): void {
  const pages = new StudioPages(base)
  const home = `${base}/studio`
  const api = `${base}/v1`
  app.get(home, ({ req }) => pages.answer(req.raw, ''))
  app.get(`${home}/*`, ({ req }) => pages.answer(req.raw, new URL(req.url).pathname.slice(home.length + 1)))
  app.post(`${home}/session`, async ({ req }) => {
    await identify(authenticate, req.raw)
    const token = tokenOf(req.raw)
    // A caller known by other means, such as a session of the host's own, doesn't need one of ours.
    const headers = token === undefined ? {} : { 'set-cookie': sessions.begin(req.raw, token, api) }
    return new Response(null, { status: 204, headers })
  })
  app.delete(`${home}/session`, ({ req }) => {
    return new Response(null, { status: 204, headers: { 'set-cookie': sessions.end(req.raw, api) } })
  })
}

function readAuth({ tokens, auth }: ServerOptions): Authenticate {
  if (tokens !== undefined && auth !== undefined) {
    throw new InvalidOptionError('auth', 'is given together with `tokens`', 'Pass one of them.')
  }
  if (auth !== undefined) return auth
  if (tokens !== undefined && tokens.length > 0) return authenticateByToken(tokens)
  throw new InvalidOptionError('tokens', 'is missing, and so is `auth`', 'Say who may call: pass one of them.')
}

function handler(route: Route, core: ServerCore, authenticate: Authenticate) {
  const components = componentsOf()
  // The whole document surrounds the schema, so that references resolve.
  const checker = route.body && SchemaChecker.of({ ...route.body, ...components } as never)
  const querySchema = { type: 'object', properties: route.query ?? {}, ...components }
  const queryChecker = SchemaChecker.of(querySchema as never)
  return async (request: Request, params: Readonly<Record<string, string>>): Promise<Response> => {
    const principal = route.role === 'none' ? NOBODY : await identify(authenticate, request)
    if (route.role !== 'none' && !mayDo(principal, route.role)) throw forbidden(route.role)
    const query = route.anyQuery ? {} : readQuery(new URL(request.url).searchParams, route.query ?? {})
    ;(await queryChecker).check(query as never)
    const body = route.method === 'GET' ? undefined : await readJson(request, core.limits)
    if (checker && !(body === undefined && route.optionalBody)) (await checker).check((body ?? null) as never)
    const call: Call = { request, principal, hf: core.hf.tenant(principal.tenant), core, params, query, body }
    const answer = await route.handle(call)
    if (answer instanceof Response) return answer
    if (answer === undefined) return new Response(null, { status: route.answer.status ?? 204 })
    return jsonResponse(answer, { status: route.answer.status ?? 200 })
  }
}

const NOBODY: Principal = { tenant: 'default', subject: 'nobody', roles: [] }

async function identify(authenticate: Authenticate, request: Request): Promise<Principal> {
  const principal = await authenticate(request)
  if (principal) return actingFor(checkPrincipal(principal, 'principal'), request)
  throw new HttpProblem(401, 'not-authenticated', 'The request has no token, or an unknown one.', {
    remedy: 'Send the header Authorization: Bearer <token>, or x-api-key: <token>.',
    headers: { 'www-authenticate': 'Bearer realm="holdfast"' },
  })
}

/** The same caller, for the tenant that the request names, if allowed. */
function actingFor(principal: Principal, request: Request): Principal {
  const wanted = request.headers.get('x-holdfast-tenant')
  if (wanted === null || wanted === principal.tenant) return principal
  const { tenants = [] } = principal
  if (tenants === '*' || tenants.includes(wanted)) return { ...principal, tenant: parseTenantId(wanted) }
  throw new HttpProblem(403, 'not-allowed', 'The token may not act for the tenant that the request names.', {
    remedy: 'Leave out the header x-holdfast-tenant, or use a token with that tenant in `tenants`.',
  })
}

function forbidden(role: string): HttpProblem {
  return new HttpProblem(403, 'not-allowed', `This needs the role "${role}", which the token does not have.`, {
    fields: { role },
  })
}

function wrongMethod(allowed: readonly string[]): HttpProblem {
  return new HttpProblem(405, 'method', `This path takes ${allowed.join(', ')}.`, {
    headers: { allow: allowed.join(', ') },
  })
}

function stopped(): HttpProblem {
  return new HttpProblem(503, 'stopping', 'This server is about to stop.', {
    remedy: 'Try again: another one may answer.',
    headers: { 'retry-after': '1' },
  })
}
