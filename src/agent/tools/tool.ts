import { notAChoice } from '../../core/wording/choices.js'
import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import type { Value } from '../../codec/value.js'
import { InvalidOptionError } from '../../core/errors.js'
import type { Context, Effect, Reconciled, RetryPolicy } from '../../runtime/step/context.js'
import { checkDeclaredSchema } from '../../runtime/program/check-program.js'
import type { StandardSchema } from '../../store/standard-schema.js'
import type { TimeLimit } from '../../runtime/program/time-limit.js'
import type { GraphPlan } from '../../runtime/program/program.js'
import type { Message } from '../messages/message.js'
import type { ToolOutput } from '../messages/message-part.js'
import type { JsonObject } from '../model/model-types.js'
import { checkSchema, type SchemaOutput, type ToolSchema } from './schema.js'

/** What a running tool receives. The AI SDK's names exist alongside ours, so that its tools run unchanged. */
export interface ToolContext<RunContext = unknown> {
  readonly callId: string
  /** Stable across retries and crashes; pass it to the service that is called. */
  readonly idempotencyKey: string
  /** From 1. */
  readonly attempt: number
  /** Aborted by a timeout, a cancellation, or when another worker takes over. */
  readonly abortSignal: AbortSignal
  /** The conversation up to the call. */
  readonly messages: readonly Message[]
  /** What the caller of this run passed along: recorded with the run, except for what the agent declares transient. */
  readonly context: RunContext
  /** The agent's state when the tool was called. */
  readonly state: Readonly<Record<string, unknown>>
  /**
   * Changes the working memory and the agent's own state keys, together with the record of this call. Several updates
   * in one call are applied in order.
   */
  update(update: Readonly<Record<string, unknown>>): void
  /** Sends something to whoever reads the stream; not recorded. */
  emit(value: unknown): void
  readonly thread: string
  readonly branch: string
  readonly tenant: string
  /** The id of the run. */
  readonly runId: string
  /** Memory that outlives the thread. Writes are recorded with this call. */
  readonly store: Context['store']
  /**
   * Does a part of the tool's work once and records its result, like `ctx.step` in a flow: a recorded step does not run
   * again when the tool does. Declare a tool with several effects as 'read', and make each effect its own step.
   */
  readonly step: Context['step']
  /** Runs your own SQL in the same transaction as its record: exactly once. SQLite and Postgres only. */
  readonly transaction: Context['transaction']
  /**
   * Asks a person. The run ends as paused, and the tool runs again from its beginning when there is an answer. Not for
   * tools that are 'once' or 'reconcilable': nobody could tell what they had done before they asked. Use
   * `needsApproval`, or declare the tool 'read' and put the effect into a `step`.
   */
  readonly pause: Context['pause']
  /**
   * Runs another program on a thread of its own and returns what it gives back, as `ctx.run` of a flow does. The tool runs
   * again from its beginning when that has ended, so it is not for tools that are 'once' or 'reconcilable' either.
   */
  readonly run: Context['run']
  readonly toolCallId: string
  readonly experimental_context: unknown
}

type ApprovalContext<RunContext> = Pick<
  ToolContext<RunContext>,
  'callId' | 'toolCallId' | 'messages' | 'context' | 'experimental_context'
>

/** Options for `tool()`. Only `inputSchema` is required. */
export interface ToolOptions<Schema extends ToolSchema = ToolSchema, Output = unknown, RunContext = unknown> {
  readonly description?: string
  /** Any Standard Schema, or the AI SDK's `jsonSchema()`. */
  readonly inputSchema: Schema
  /** What the model is shown, for schema libraries that can't generate a JSON Schema. */
  readonly jsonSchema?: JsonObject
  /** What the tool needs from the run's context; types `context` of `execute`. Checked when a run begins. */
  readonly context?: StandardSchema<unknown, RunContext>
  /** Without it, the call is handed to the caller of the run, who answers it. */
  readonly execute?: (input: SchemaOutput<Schema>, context: ToolContext<RunContext>) => Output | PromiseLike<Output>
  /** Whether a person must agree first. Default: no. */
  readonly needsApproval?:
    | boolean
    | ((input: SchemaOutput<Schema>, context: ApprovalContext<RunContext>) => boolean | PromiseLike<boolean>)
  /** How long the question of `needsApproval` stays open, in milliseconds. Default: forever. */
  readonly approvalExpiresInMs?: number
  /** What happens then. Default 'deny': the call is not made, and the model is told that nobody answered in time. */
  readonly onApprovalExpire?: 'deny' | 'fail'
  /** Default 'once': nothing is repeated unless it says that it may be. */
  readonly effect?: Effect
  /** Recorded with every call, so that a pending call of an older version is recognized. */
  readonly version?: string
  /** How long one attempt may take, in milliseconds. Default: no limit. */
  readonly timeoutMs?: number
  /** Default: 'idempotent' tools 3 attempts, others 1. */
  readonly retry?: RetryPolicy
  /** What to do when nobody can tell whether a call took effect. Default 'pause': a person is asked. */
  readonly onUnknown?: 'pause' | 'fail'
  /** For 'idempotent': how long the service remembers a key. Default 24 hours. */
  readonly keyTtlMs?: number
  /**
   * For 'reconcilable' and 'once': how long a call that timed out may take to end before anyone is asked about its
   * outcome. Default 10,000 ms.
   */
  readonly settleMs?: number
  /** Your own key instead of the derived one. Equal inputs must give equal keys. */
  readonly idempotencyKey?: (input: SchemaOutput<Schema>) => string
  /** For 'reconcilable': asks the service about the outcome of the call with this key. */
  readonly reconcile?: (
    key: string,
    input: SchemaOutput<Schema>,
  ) => Reconciled<Output> | PromiseLike<Reconciled<Output>>
  /** Arguments for this version from those of a pending call of an older one. */
  readonly migrate?: (input: Value, fromVersion: string | undefined) => Value | PromiseLike<Value>
  /** What the model is shown of a result. Default: text as text, anything else as JSON. */
  readonly toModelOutput?: (
    result: Output,
    call: { readonly callId: string; readonly input: unknown },
  ) => ToolOutput | PromiseLike<ToolOutput>
  /** Asks the provider to make the model follow the schema. */
  readonly strict?: boolean
  readonly providerOptions?: { readonly [provider: string]: JsonObject }
}

const brand = Symbol.for('holdfast.tool')

/** Keeps argument checks from blocking everything; one for all tools of an agent. */
export const LIMIT: unique symbol = Symbol('holdfast.limit')

/** If the tool is another agent: that agent. */
export const AGENT: unique symbol = Symbol('holdfast.agent')

export interface Delegate {
  readonly plan: GraphPlan
  /** The agent's input for these arguments. */
  readonly ask: (args: unknown) => unknown
  /** It runs on a thread of its own. */
  readonly isChild: boolean
}

/** A checked tool; what `tool()` returns. */
export interface Tool<Schema extends ToolSchema = ToolSchema, Output = unknown> extends ToolOptions<Schema, Output> {
  readonly effect: Effect
  readonly [brand]: true
  readonly [LIMIT]?: TimeLimit
  readonly [AGENT]?: Delegate
}

/** A tool for agents. Everything that can be wrong with its definition is refused here, not when a model calls it. */
export function tool<Schema extends ToolSchema, Output = unknown, RunContext = unknown>(
  options: ToolOptions<Schema, Output, RunContext>,
): Tool<Schema, Output> {
  checkOptionNames('tool()', options, OPTIONS)
  // What is no object at all is refused by makeTool.
  checkDeclaredSchema(options?.context, 'context of a tool', 'tool.context')
  // The type of its context is dropped here: a run whose context does not match never begins.
  return makeTool(options as unknown as ToolOptions<Schema, Output>)
}

/** Like `tool`, for a definition that may have unknown fields, as those of the AI SDK do. */
export function makeTool<Schema extends ToolSchema, Output = unknown>(
  options: ToolOptions<Schema, Output>,
): Tool<Schema, Output> {
  checkToolOptions(options, 'tool')
  return { ...options, effect: options.effect ?? 'once', [brand]: true }
}

const OPTIONS: OptionNames<ToolOptions> = {
  description: true,
  inputSchema: true,
  jsonSchema: true,
  execute: true,
  needsApproval: true,
  approvalExpiresInMs: true,
  onApprovalExpire: true,
  effect: true,
  version: true,
  timeoutMs: true,
  retry: true,
  onUnknown: true,
  keyTtlMs: true,
  settleMs: true,
  idempotencyKey: true,
  reconcile: true,
  migrate: true,
  toModelOutput: true,
  strict: true,
  providerOptions: true,
  context: true,
}

export function isTool(candidate: unknown): candidate is Tool {
  return typeof candidate === 'object' && candidate !== null && brand in candidate
}

const EFFECTS: readonly string[] = ['read', 'idempotent', 'reconcilable', 'once']
const FUNCTIONS = ['execute', 'idempotencyKey', 'reconcile', 'migrate', 'toModelOutput'] as const

export function checkToolOptions(options: unknown, field: string): asserts options is ToolOptions {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidOptionError(field, 'must be an object', 'Pass { description, inputSchema, execute }.')
  }
  const given = options as ToolOptions
  checkSchema(given.inputSchema, given.jsonSchema, field)
  for (const name of FUNCTIONS) {
    if (given[name] === undefined || typeof given[name] === 'function') continue
    throw new InvalidOptionError(`${field}.${name}`, 'must be a function', 'Pass a function, or leave it out.')
  }
  const { effect, reconcile, timeoutMs, version, description, needsApproval, retry } = given
  if (effect !== undefined && !EFFECTS.includes(effect)) {
    throw new InvalidOptionError(
      `${field}.effect`,
      `is ${JSON.stringify(effect)}`,
      `Use one of: ${EFFECTS.join(', ')}.`,
    )
  }
  if ((effect === 'reconcilable') !== (reconcile !== undefined)) {
    const problem =
      reconcile === undefined ? "is 'reconcilable' without reconcile" : "is not 'reconcilable', yet reconcile is given"
    throw new InvalidOptionError(
      `${field}.effect`,
      problem,
      "Pass both effect: 'reconcilable' and reconcile(key, input).",
    )
  }
  if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs > 0)) {
    throw new InvalidOptionError(`${field}.timeoutMs`, `is ${String(timeoutMs)}`, 'Pass milliseconds above 0.')
  }
  if (retry?.attempts !== undefined && !(Number.isInteger(retry.attempts) && retry.attempts >= 1)) {
    throw new InvalidOptionError(
      `${field}.retry.attempts`,
      `is ${String(retry.attempts)}`,
      'Pass a whole number from 1.',
    )
  }
  for (const [name, value] of [
    ['version', version],
    ['description', description],
  ] as const) {
    if (value === undefined || typeof value === 'string') continue
    throw new InvalidOptionError(`${field}.${name}`, 'must be text', 'Pass a string, or leave it out.')
  }
  const { approvalExpiresInMs: expires, onApprovalExpire } = given
  if (expires !== undefined && !(Number.isSafeInteger(expires) && expires > 0)) {
    const problem = `must be a whole number of milliseconds above 0, not ${String(expires)}`
    throw new InvalidOptionError(`${field}.approvalExpiresInMs`, problem, 'Pass for example 3_600_000 for an hour.')
  }
  if (onApprovalExpire !== undefined && onApprovalExpire !== 'deny' && onApprovalExpire !== 'fail') {
    throw notAChoice(`${field}.onApprovalExpire`, onApprovalExpire, ['deny', 'fail'])
  }
  if (needsApproval !== undefined && typeof needsApproval !== 'boolean' && typeof needsApproval !== 'function') {
    throw new InvalidOptionError(
      `${field}.needsApproval`,
      'must be a boolean or a function',
      'Pass true or a function.',
    )
  }
}
