import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { checkOptionNames } from '../../core/wording/option-names.js'
import type { Holdfast } from '../../index.js'
import type { QueueAge, WorkerStatus } from '../../types.js'
import { writeMetrics } from './prometheus.js'

/** Where a worker answers health probes. */
export interface HealthOptions {
  /** Default: all addresses of this machine, because orchestrators probe from outside. */
  readonly host?: string
  /** Default 8080; 0 takes any free port. */
  readonly port?: number
}

/** A health server that is listening. */
export interface Health {
  readonly port: number
  close(): Promise<void>
}

/** The part of a worker that probes look at. */
interface Watched {
  readonly status: WorkerStatus
}

interface Answer {
  readonly status: number
  readonly body: object | string
}

/** Orchestrators give a probe one second by default: an early "no" is better than no answer. */
const STORE_PATIENCE_MS = 900
/** However often probes come, the store is asked at most this often. */
const STORE_KNOWN_MS = 1000
const QUEUE_KNOWN_MS = 5000

/**
 * Answers an orchestrator's probes of a worker, without a token, and without revealing anything that threads hold:
 * `/live` (the event loop is running and the worker is not stuck; if not, restart it), `/ready` (the store answers and
 * the worker is not draining), `/queue` (how much is waiting for its programs, and for how long: for autoscaling) and
 * `/metrics` (for Prometheus).
 */
export async function serveHealth(hf: Holdfast, worker: Watched, options: HealthOptions = {}): Promise<Health> {
  checkOptionNames('serveHealth()', options, { host: true, port: true })
  const programs = worker.status.programs.map(({ name }) => name)
  const store = remember(STORE_KNOWN_MS, () => answersInTime(hf))
  const queue = remember(QUEUE_KNOWN_MS, () => hf.queueAge({ programs }))
  const answers: Readonly<Record<string, () => Promise<Answer>>> = {
    '/live': async () => {
      const { status } = worker
      return { status: status.state === 'stuck' ? 503 : 200, body: { live: status.state !== 'stuck', ...status } }
    },
    '/ready': async () => {
      const reachable = await store()
      // Read afterwards: it may have been told to stop in the meantime.
      const { status } = worker
      const ready = reachable && status.state === 'running'
      return { status: ready ? 200 : 503, body: { ready, store: reachable ? 'ok' : 'unavailable', ...status } }
    },
    '/queue': async () => ({ status: 200, body: inSeconds(await queue()) }),
    '/metrics': async () => {
      // The metrics of the process are reported even while the store is down: that is when they matter most.
      const age = await queue().catch(() => undefined)
      return { status: 200, body: writeMetrics(hf.counted, worker.status, age) }
    },
  }
  const server = createServer((request, response) => void respond(answers, request, response))
  const port = await listen(server, options)
  return {
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

async function respond(
  answers: Readonly<Record<string, () => Promise<Answer>>>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const path = (request.url ?? '').split('?', 1)[0] as string
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  const answer = Object.hasOwn(answers, path) ? answers[path] : undefined
  const { status, body } = !isRead
    ? { status: 405, body: { error: 'Use GET.' } }
    : answer === undefined
      ? { status: 404, body: { error: `There is nothing at this path. There is ${Object.keys(answers).join(', ')}.` } }
      : await answer().catch(() => ({ status: 503, body: { error: 'The store does not answer.' } }))
  const text = typeof body === 'string' ? body : `${JSON.stringify(body)}\n`
  const type = typeof body === 'string' ? 'text/plain; version=0.0.4; charset=utf-8' : 'application/json'
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' })
  response.end(request.method === 'HEAD' ? undefined : text)
}

function listen(server: Server, { host, port = 8080 }: HealthOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, ...(host === undefined ? {} : { host }) }, () => {
      server.off('error', reject)
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

async function answersInTime(hf: Holdfast): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), STORE_PATIENCE_MS)
  })
  const asked = hf.threads({ limit: 1 }).then(
    () => true,
    () => false,
  )
  const answers = await Promise.race([asked, late])
  clearTimeout(timer)
  return answers
}

/** Asks once for everyone who asks at about the same time. */
function remember<Result>(ms: number, ask: () => Promise<Result>): () => Promise<Result> {
  let known: { readonly until: number; readonly result: Promise<Result> } | undefined
  return () => {
    if (known === undefined || performance.now() >= known.until) {
      known = { until: Number.POSITIVE_INFINITY, result: ask() }
      const mine = known
      const settle = (): void => {
        if (known === mine) known = { until: performance.now() + ms, result: mine.result }
      }
      mine.result.then(settle, settle)
    }
    return known.result
  }
}

function inSeconds({ due, more, oldestMs }: QueueAge) {
  return { due, more, oldestSeconds: oldestMs / 1000 }
}
