import type { WorkerOptions } from '../index.js'
import { checkOptionNames, type OptionNames, suggestName } from '../core/wording/option-names.js'
import { InvalidOptionError } from '../errors.js'
import type { GateOptions } from './access/gate.js'
import type { Authenticate, ServerToken } from './access/tokens.js'

/** What a server runs: an agent, a graph or a flow. */
export type ServerProgram = WorkerOptions['programs'][number]

/** Limits for one caller, or one request. */
export interface ServerLimits {
  /** Default 4 MiB. */
  readonly maxBodyBytes: number
  /** How long a body may take to arrive. Default 10,000 ms. */
  readonly bodyTimeoutMs: number
  /** Streams that one principal may have open at once. Default 100. */
  readonly streamsPerPrincipal: number
  /** How long a reader may take nothing while there is something to read, before it is cut off. Default 30,000 ms. */
  readonly stallMs: number
  /** How often an idle stream shows that it is alive. Default 15,000 ms. */
  readonly heartbeatMs: number
}

/** The chat for the AI SDK. */
export interface ChatOptions {
  /** The agent that new chats talk to. Default: the first one of `programs`. */
  readonly program?: string
  /**
   * What effects may do when a message is edited or regenerated, which creates a branch. Default 'ask': a person
   * decides about each, because it may have happened on the earlier branch.
   */
  readonly effects?: 'ask' | 'allow' | 'deny'
}

/** What a server runs, who may call it, and its limits. */
export interface ServerOptions extends GateOptions {
  /** The programs whose threads are run. May be empty: then threads can only be inspected and answered. */
  readonly programs: readonly ServerProgram[]
  /** Tokens to accept. Either `tokens` or `auth` is required. */
  readonly tokens?: readonly ServerToken[]
  /** Who makes a request, by your own rules: a session, a JWT. Nobody (`undefined`) is answered with 401. */
  readonly auth?: Authenticate
  /** Settings of the built-in worker; false for none, if workers run elsewhere. */
  readonly worker?: Omit<WorkerOptions, 'programs' | 'handleSignals'> | false
  /** How the AI SDK's `useChat` talks to agents here. */
  readonly chat?: ChatOptions
  /** Serves the studio at `/studio`: a page for people, with all threads of the store. */
  readonly studio?: boolean
  /** Where the server is mounted, such as `/api/agents`. Default: at the root. */
  readonly basePath?: string
  readonly limits?: Partial<ServerLimits>
  /** Called with failures that callers are not told about. Default: prints them to standard error. */
  readonly onError?: (error: unknown, request: Request) => void
}

const OPTIONS: OptionNames<ServerOptions> = {
  programs: true,
  tokens: true,
  auth: true,
  worker: true,
  chat: true,
  studio: true,
  basePath: true,
  limits: true,
  onError: true,
  origins: true,
  hosts: true,
}
const CHAT_OPTIONS: OptionNames<ChatOptions> = { program: true, effects: true }

/** Refuses misspelled names before anything starts. */
export function checkServerOptions(options: ServerOptions): void {
  checkOptionNames('createServer()', options, OPTIONS)
  checkOptionNames('createServer({ chat })', options.chat, CHAT_OPTIONS)
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
      throw new InvalidOptionError(`limits.${name}`, 'is not a limit', suggestName(name, Object.keys(DEFAULTS)))
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
