import type { WorkerOptions } from '../index.js'
import { InvalidOptionError } from '../errors.js'
import type { GateOptions } from './access/gate.js'
import type { Authenticate, ServerToken } from './access/tokens.js'

/** What a server runs: an agent, a graph or a flow. */
export type ServerProgram = WorkerOptions['programs'][number]

/** What one caller, or one request, may take. */
export interface ServerLimits {
  /** Default 4 MiB. */
  readonly maxBodyBytes: number
  /** How long a body may take to arrive. Default 10,000 ms. */
  readonly bodyTimeoutMs: number
  /** Streams that one principal may have open at once. Default 100. */
  readonly streamsPerPrincipal: number
  /** How long a reader may take nothing while there is something, before it is cut off. Default 30,000 ms. */
  readonly stallMs: number
  /** How often a stream with no news shows that it is alive. Default 15,000 ms. */
  readonly heartbeatMs: number
}

/** The chat for the AI SDK. */
export interface ChatOptions {
  /** The agent that new chats talk to. Default: the first one of `programs`. */
  readonly program?: string
  /**
   * What effects may do when a message is edited or answered again, which makes a branch. Default 'ask': a person decides
   * about each, since it may have happened on the branch before.
   */
  readonly effects?: 'ask' | 'allow' | 'deny'
}

/** What a server runs, who may call it, and its limits. */
export interface ServerOptions extends GateOptions {
  /** The programs whose threads are run. May be empty: then threads can only be looked at and answered. */
  readonly programs: readonly ServerProgram[]
  /** Tokens that are accepted. One of `tokens` and `auth` is needed. */
  readonly tokens?: readonly ServerToken[]
  /** Who makes a request, by your own rules: a session, a JWT. Nobody (`undefined`) is answered with 401. */
  readonly auth?: Authenticate
  /** Settings of the worker inside; false for none, where workers run elsewhere. */
  readonly worker?: Omit<WorkerOptions, 'programs' | 'handleSignals'> | false
  /** How `useChat` of the AI SDK talks to agents here. */
  readonly chat?: ChatOptions
  /** Serves the studio at `/studio`: a page over all threads of the store, for people. */
  readonly studio?: boolean
  /** Where the server is mounted, such as `/api/agents`. Default: at the root. */
  readonly basePath?: string
  readonly limits?: Partial<ServerLimits>
  /** Hears of failures that callers are told nothing about. Default: prints them to standard error. */
  readonly onError?: (error: unknown, request: Request) => void
}

const DEFAULTS: ServerLimits = {
  maxBodyBytes: 4 * 1024 * 1024,
  bodyTimeoutMs: 10_000,
  streamsPerPrincipal: 100,
  stallMs: 30_000,
  heartbeatMs: 15_000,
}
const LARGEST = 2 ** 31 - 1

export function readLimits(given: Partial<ServerLimits> = {}): ServerLimits {
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(DEFAULTS, name)) {
      throw new InvalidOptionError(
        `limits.${name}`,
        'is not a limit',
        `Use any of: ${Object.keys(DEFAULTS).join(', ')}.`,
      )
    }
    if (value !== undefined && !(Number.isSafeInteger(value) && value >= 1 && value <= LARGEST)) {
      throw new InvalidOptionError(
        `limits.${name}`,
        `must be 1 to ${LARGEST}, not ${String(value)}`,
        'Pass a whole number.',
      )
    }
  }
  return { ...DEFAULTS, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) }
}
