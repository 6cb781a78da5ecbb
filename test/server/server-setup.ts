import { Validator } from '@cfworker/json-schema'
import { append, flow, graph, Holdfast, last, openHoldfast, START } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { HoldfastClient } from 'holdfast/client'
import {
  createServer,
  type HoldfastServer,
  listen,
  type Listening,
  nativeOpenApi,
  type ServerOptions,
  type ServerToken,
} from 'holdfast/server'
import { afterEach } from 'vitest'

export const TOKENS = {
  ada: { token: 'token-of-ada-0000', tenant: 'acme', subject: 'ada@acme.example' },
  reader: { token: 'token-of-reader-0', tenant: 'acme', subject: 'reader', roles: ['read'] },
  answerer: { token: 'token-of-answerer', tenant: 'acme', subject: 'answerer', roles: ['read', 'answer'] },
  nobody: { token: 'token-of-nobody-0', tenant: 'acme', subject: 'nobody', roles: [] },
  other: { token: 'token-of-other-00', tenant: 'other', subject: 'eve@other.example' },
} as const satisfies Record<string, ServerToken>

/** A flow that asks, fails, waits and tells, as its input says. */
export const desk = flow({ name: 'desk', version: '1.0.0' }, async (ctx, input: Readonly<Record<string, unknown>>) => {
  const order = await ctx.step('find', async () => ({ id: String(input['order'] ?? 'A') }))
  if (input['tell']) {
    await ctx.step('tell', async (step) => {
      for (let i = 0; i < Number(input['tell']); i++) step.emit({ i, filler: 'x'.repeat(Number(input['size'] ?? 0)) })
    })
  }
  if (input['fail'])
    await ctx.step('fail', { retry: { attempts: 1 } }, () => Promise.reject(new Error('secret detail')))
  if (input['ask']) return { order, answer: await ctx.pause({ ask: 'Really?', order }) }
  if (input['wait']) return { order, got: await ctx.receive(String(input['wait'])) }
  return { order }
})

/** A graph, for what flows do not have: state, reducers. */
const counter = graph({
  name: 'counter',
  version: '1.0.0',
  state: { count: last<number>(undefined, { initial: 0 }), seen: append<string>() },
})
  .node('one', (state) => ({ count: state.count + 1, seen: ['one'] }))
  .edge(START, 'one')

/**
 * An eager server, or all of them with HOLDFAST_TEST_EAGER=1: every acknowledgement comes late and the worker looks without a
 * rest, so whatever can happen between two appends of a request has happened by then. It keeps no metrics.
 */
export const allEager = process.env['HOLDFAST_TEST_EAGER'] === '1'
const EAGER_MS = 25

async function openStore(url: string, isEager: boolean): Promise<Holdfast> {
  if (!isEager) return openHoldfast(url)
  const driver = await openDriver(url)
  const late = new Proxy(driver, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name !== 'append') return value.bind(target) as unknown
      return async (batch: Parameters<Driver['append']>[0]) => {
        const results = await target.append(batch)
        await new Promise((resolve) => setTimeout(resolve, EAGER_MS))
        return results
      }
    },
  })
  return new Holdfast(new LogStore(late))
}

interface TestOptions {
  readonly store?: string
  readonly hf?: Holdfast
  readonly eager?: boolean
  /** Programs that need the store. */
  readonly make?: (hf: Holdfast) => ServerOptions['programs']
}

/** Servers with clients on real sockets; all is closed after each test. */
export function setUpServers() {
  const open: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of open.splice(0).reverse()) await close()
  })

  async function serve(options: Partial<ServerOptions> & TestOptions = {}) {
    const { store = 'memory:', hf: given, eager: isEager = allEager, make, ...rest } = options
    const hf = given ?? (await openStore(store, isEager))
    const server = createServer(hf, {
      programs: [desk, counter],
      ...(rest.auth === undefined ? { tokens: Object.values(TOKENS) } : {}),
      onError: () => {},
      ...rest,
      ...(make === undefined ? {} : { programs: make(hf) }),
      ...(rest.worker === false ? {} : { worker: { pollMs: isEager ? 1 : 50, graceMs: 100, ...rest.worker } }),
    })
    const listening = await listen(server, { port: 0 })
    const close = once(async () => {
      await listening.close()
      if (given === undefined) await hf.close()
    })
    open.push(close)
    return new TestServer(hf, server, listening, close)
  }

  return { serve, onClose: (close: () => Promise<unknown>) => open.push(close) }
}

export class TestServer {
  readonly hf: Holdfast
  readonly server: HoldfastServer
  readonly url: string
  readonly port: number
  readonly close: () => Promise<void>
  /** The operations that were called, by method and path of the document. */
  readonly called = new Set<string>()

  constructor(hf: Holdfast, server: HoldfastServer, listening: Listening, close: () => Promise<void>) {
    this.hf = hf
    this.server = server
    this.url = listening.url
    this.port = listening.port
    this.close = close
  }

  client(who: keyof typeof TOKENS = 'ada'): HoldfastClient {
    return new HoldfastClient({ baseUrl: this.url, token: TOKENS[who].token, fetch: this.checkedFetch })
  }

  fetch(path: string, init: RequestInit & { readonly token?: string | null } = {}): Promise<Response> {
    const { token = TOKENS.ada.token, headers, ...rest } = init
    return this.checkedFetch(`${this.url}${path}`, {
      ...rest,
      headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...headers },
    })
  }

  post(path: string, body: unknown, init: RequestInit & { readonly token?: string | null } = {}): Promise<Response> {
    return this.fetch(path, {
      method: 'POST',
      body: JSON.stringify(body),
      ...init,
      headers: { 'content-type': 'application/json', ...init.headers },
    })
  }

  /** Holds every answer against the document. */
  checkedFetch = async (input: string, init: RequestInit = {}): Promise<Response> => {
    const response = await fetch(input, init)
    const type = response.headers.get('content-type') ?? ''
    const operation = findOperation(init.method ?? 'GET', new URL(input).pathname)
    if (operation !== undefined) this.called.add(operation.name)
    if (!/[/+]json/.test(type) || operation === undefined) return response
    const body: unknown = await response.clone().json()
    const answer = operation.responses[response.status] ?? operation.responses['default']
    const schema = answer?.content?.[type.split(';')[0] as string]?.schema
    if (schema === undefined)
      throw new Error(`${operation.name} answers ${response.status} ${type}, which is not documented`)
    const { valid, errors } = new Validator(
      { ...schema, components: DOCUMENT.components } as never,
      '2020-12',
      false,
    ).validate(body)
    if (!valid) throw new Error(`${operation.name}: ${JSON.stringify(errors.at(-1))} in ${JSON.stringify(body)}`)
    return response
  }
}

interface Operation {
  readonly operationId: string
  readonly 'x-role'?: string
  readonly requestBody?: { readonly required: boolean }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: object }>> }>
  >
}

const DOCUMENT = nativeOpenApi() as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: object }
}

/** All operations of the document. */
export const OPERATIONS = Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), ...operation })),
)

function findOperation(method: string, pathname: string) {
  const fitting = OPERATIONS.filter((operation) => {
    const pattern = new RegExp(`^${operation.path.replace(/\{\w+\}/g, '[^/]+')}$`)
    return operation.method === method && pattern.test(pathname)
  })
  // A fixed path before one with a parameter in its place.
  const [found] = fitting.sort((a, b) => a.path.split('{').length - b.path.split('{').length)
  return found && { ...found, name: found.operationId }
}

function once(close: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined
  return () => (closing ??= close())
}

export interface Received {
  readonly id: string | undefined
  readonly event: string
  readonly data: Readonly<Record<string, unknown>>
}

/** Reads server-sent events from an answer, as many as are wanted. */
export async function* events(response: Response): AsyncGenerator<Received> {
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true })
    const blocks = text.split('\n\n')
    text = blocks.pop() as string
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
      const data = field('data')
      if (data !== undefined) yield { id: field('id'), event: field('event') ?? 'message', data: JSON.parse(data) }
    }
  }
}
