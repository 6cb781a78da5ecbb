import { sentence, subject } from './wording/sentence.js'
import type { ErrorWithCode } from './error-data.js'

/**
 * Every failure Holdfast reports is a HoldfastError: a stable `code`, structured `data`, a `remedy` in plain words, and
 * whether trying again can help. Recognize one with `isHoldfastError`, which goes by a brand, so that it also works
 * across two copies of the package in one process.
 */
const brand = Symbol.for('holdfast.error')

/** What kind of failure it is. Codes are stable: they are never renamed or used for something else. */
export type ErrorCode =
  | 'conflict'
  | 'fenced'
  | 'held'
  | 'corrupt'
  | 'data-loss'
  | 'missing-dependency'
  | 'missing-key'
  | 'invalid-id'
  | 'invalid-value'
  | 'invalid-option'
  | 'not-found'
  | 'too-large'
  | 'closed'
  | 'schema-too-new'
  | 'storage'
  | 'unavailable'
  | 'claim-required'
  | 'invalid-program'
  | 'incompatible'
  | 'not-executed'
  | 'cancelled'
  | 'timeout'
  | 'step-failed'
  | 'effect-unknown'
  | 'pause-closed'
  | 'child-failed'
  | 'poisoned'
  | 'missing-context'
  | 'transaction'
  | 'model'

export interface ErrorOptions {
  readonly data?: Readonly<Record<string, unknown>>
  readonly remedy?: string
  readonly retryable?: boolean
  readonly cause?: unknown
}

/** The base of every failure that Holdfast reports. */
export class HoldfastError extends Error {
  readonly code: ErrorCode
  readonly data: Readonly<Record<string, unknown>>
  readonly remedy: string
  readonly retryable: boolean

  constructor(code: ErrorCode, message: string, options: ErrorOptions = {}) {
    const remedy = options.remedy ?? ''
    const said = sentence(message)
    super(remedy ? `${said} ${remedy}` : said, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.code = code
    this.data = options.data ?? {}
    this.remedy = remedy
    this.retryable = options.retryable ?? false
    Object.defineProperty(this, brand, { value: true })
  }
}

/** True for an error made by any copy of Holdfast, optionally with this code; TypeScript then knows its `data`. */
export function isHoldfastError(error: unknown): error is HoldfastError
export function isHoldfastError<Code extends ErrorCode>(error: unknown, code: Code): error is ErrorWithCode<Code>
export function isHoldfastError(error: unknown, code?: ErrorCode): error is HoldfastError {
  if (typeof error !== 'object' || error === null || !(brand in error)) return false
  return code === undefined || (error as unknown as HoldfastError).code === code
}

/** Another writer was first. Read again and decide again. */
export class ConflictError extends HoldfastError {
  constructor(message: string, data: Readonly<Record<string, unknown>>, remedy?: string) {
    super('conflict', message, {
      data,
      retryable: true,
      remedy: remedy ?? 'Read the thread again and decide on what it holds now.',
    })
  }
}

/** Another worker took over this log: the epoch moved on, and this claim can never write again. */
export class FencedError extends HoldfastError {
  constructor(data: { readonly log: string; readonly epoch: number; readonly current: number }) {
    super(
      'fenced',
      `This claim on ${data.log} holds epoch ${data.epoch}, but the log is at epoch ${data.current}: another worker took over.`,
      { data, remedy: 'Stop working on this thread; the new owner continues it.' },
    )
  }
}

/** The log is claimed by another owner whose lease has not run out. */
export class HeldError extends HoldfastError {
  constructor(data: { readonly log: string; readonly owner: string; readonly remainingMs: number }) {
    super('held', `${data.log} is claimed by "${data.owner}" for another ${Math.ceil(data.remainingMs)} ms.`, {
      data,
      retryable: true,
      remedy: 'Wait until the lease is released or runs out, or claim with { force: true } to take over.',
    })
  }
}

/** Stored bytes do not verify. `data.lastGood` is the newest checkpoint id that does, if there is one. */
export class CorruptError extends HoldfastError {
  constructor(
    message: string,
    data: Readonly<Record<string, unknown>> & { readonly lastGood?: string | undefined },
    cause?: unknown,
    remedy?: string,
  ) {
    super('corrupt', message, {
      data,
      cause,
      remedy:
        remedy ??
        (data.lastGood
          ? `The newest checkpoint that verifies is ${data.lastGood}: fork from it (hf.fork), or restore a backup.`
          : 'No earlier checkpoint verifies: restore a backup.'),
    })
  }
}

/** The backend holds less than it once acknowledged (it came back with an older state, or empty). */
export class DataLossError extends HoldfastError {
  constructor(message: string, data: Readonly<Record<string, unknown>>, remedy?: string) {
    super('data-loss', message, {
      data,
      remedy: remedy ?? 'Restore the backend, or open the thread again to continue from what it still holds.',
    })
  }
}

/** An optional package is required but not installed. `data.install` is the command to install it. */
export class MissingDependencyError extends HoldfastError {
  constructor(
    packageName: string,
    install: string,
    options: { readonly what?: string; readonly cause?: unknown } = {},
  ) {
    const what = options.what ?? 'This backend'
    super('missing-dependency', `${what} needs the package "${packageName}", which is not installed.`, {
      data: { package: packageName, install },
      remedy: `Run: ${install}`,
      cause: options.cause,
    })
  }
}

/** Something was written under a key that this process does not have. */
export class MissingKeyError extends HoldfastError {
  constructor(message: string, data: Readonly<Record<string, unknown>>, remedy?: string) {
    super('missing-key', message, {
      data,
      remedy:
        remedy ??
        'Open the store with the option keys: { current, masters }, with the master keys that it was written with.',
    })
  }
}

/** An invalid tenant, thread or branch id. `data.field` names it. */
export class InvalidIdError extends HoldfastError {
  constructor(field: string, problem: string, remedy: string, data: Readonly<Record<string, unknown>> = {}) {
    super('invalid-id', `${subject(field)} ${problem}.`, { data: { field, ...data }, remedy })
  }
}

/** A value that can't be stored exactly. `data.path` is its path. */
export class InvalidValueError extends HoldfastError {
  constructor(
    path: string,
    problem: string,
    remedy: string,
    data: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
  ) {
    super('invalid-value', `The value at ${path} ${problem}.`, { data: { field: path, path, ...data }, remedy, cause })
  }
}

/** An option that can't work. `data.field` names it; nothing was opened or written. */
export class InvalidOptionError extends HoldfastError {
  constructor(field: string, problem: string, remedy: string, data: Readonly<Record<string, unknown>> = {}) {
    super('invalid-option', `The option ${field} ${problem}.`, { data: { field, ...data }, remedy })
  }
}

/**
 * A run was started with a context that is not recorded, and this process did not pass it again. Nothing was changed.
 */
export class MissingContextError extends HoldfastError {
  constructor(thread: string, missing: readonly string[]) {
    const what = missing.map((name) => (name === 'context' ? name : `context.${name}`)).join(', ')
    super('missing-context', `The run of thread ${thread} needs ${what}, which was not recorded with it.`, {
      data: { thread, missing },
      remedy:
        'Resume that run with it, without other input: thread.run({ context: { … } }). ' +
        'Or let a worker bring it: hf.worker({ context: ({ thread }) => … }).',
    })
  }
}

/** A thread, branch or checkpoint was requested by name but doesn't exist (or was pruned). */
export class NotFoundError extends HoldfastError {
  constructor(message: string, remedy: string, data: Readonly<Record<string, unknown>> = {}) {
    super('not-found', message, { data, remedy })
  }
}

/** A value, an id or a queue is over a limit. `data` has the field, the limit and the size. */
export class TooLargeError extends HoldfastError {
  constructor(
    field: string,
    what: string,
    limit: number,
    actual: number | undefined,
    remedy: string,
    data: { readonly written?: 'nothing' | 'unknown' } = {},
  ) {
    const seen = actual === undefined ? '' : ` (it has ${actual})`
    super('too-large', `${subject(field)} is over the limit of ${limit} ${what}${seen}.`, {
      data: { field, what, limit, actual, ...data },
      remedy,
    })
  }
}

/** Something was used after `close()`, or was closed while it was waiting. */
export class ClosedError extends HoldfastError {
  constructor(what: string) {
    super('closed', `${what} is closed.`, {
      data: { what },
      remedy: what === 'This run' ? 'Run the thread again.' : 'Open a new one with openHoldfast().',
    })
  }
}

/** The store was written by a newer version whose schema this one would misread. */
export class SchemaTooNewError extends HoldfastError {
  constructor(what: string, data: { readonly found: number; readonly supported: number }) {
    super(
      'schema-too-new',
      `${what} was written by a newer Holdfast (schema ${data.found}; this version understands up to ${data.supported}).`,
      { data: { what, ...data }, remedy: 'Upgrade holdfast in this process.' },
    )
  }
}

/** A write that needs a claim was made without one. */
export class ClaimRequiredError extends HoldfastError {
  constructor(log: string, kind: string) {
    super('claim-required', `An entry of kind "${kind}" on ${log} needs a claim: this log is run by claims.`, {
      data: { log, kind },
      remedy:
        'Claim the log first; without a claim only inputs, answers, cancellations, signals and tags may be appended.',
    })
  }
}

/** A program that can't be run as declared. `data.field` names the part that is wrong. */
export class InvalidProgramError extends HoldfastError {
  constructor(
    message: string,
    field: string,
    remedy: string,
    data: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
  ) {
    super('invalid-program', message, { data: { field, ...data }, remedy, cause })
  }
}

/** What is recorded is not compatible with the program that should continue it. Nothing was changed. */
export class IncompatibleError extends HoldfastError {
  constructor(
    message: string,
    reason: string,
    remedy: string,
    data: Readonly<Record<string, unknown>> = {},
    cause?: unknown,
  ) {
    super('incompatible', message, { data: { ...data, reason, canResume: false }, remedy, cause })
  }
}

/**
 * The storage refused (disk full, read-only, not a database, …). `written` says what is known about the write that
 * failed: 'nothing' is definite, 'unknown' makes the writer look for its own appendId before it repeats.
 */
export class StorageError extends HoldfastError {
  constructor(
    message: string,
    remedy: string,
    options: {
      readonly reason: string
      readonly written: 'nothing' | 'unknown'
      readonly retryable?: boolean
      readonly data?: Readonly<Record<string, unknown>>
      readonly cause?: unknown
    },
  ) {
    super('storage', message, {
      data: { reason: options.reason, written: options.written, ...options.data },
      remedy,
      retryable: options.retryable ?? false,
      cause: options.cause,
    })
  }
}

/** The backend did not answer in time or the connection broke. */
export class UnavailableError extends HoldfastError {
  constructor(
    message: string,
    options: {
      readonly written: 'nothing' | 'unknown'
      readonly remedy?: string
      readonly data?: Readonly<Record<string, unknown>>
      readonly cause?: unknown
    },
  ) {
    super('unavailable', message, {
      data: { written: options.written, ...options.data },
      remedy: options.remedy ?? 'Check that the backend is reachable and try again.',
      retryable: true,
      cause: options.cause,
    })
  }
}

/**
 * A transaction with the user's own SQL did not happen, and none of it is kept. `data.reason`: 'timeout', 'statement'
 * (the database refused one), 'forbidden' (Holdfast refused one), 'ended' (it was already over).
 */
export class TransactionError extends HoldfastError {
  constructor(
    reason: 'timeout' | 'statement' | 'forbidden' | 'ended',
    message: string,
    remedy: string,
    options: { readonly data?: Readonly<Record<string, unknown>>; readonly cause?: unknown } = {},
  ) {
    super('transaction', message, {
      data: { reason, written: 'nothing', ...options.data },
      retryable: reason === 'timeout',
      remedy,
      cause: options.cause,
    })
  }
}

/**
 * Thrown by a tool or a step to say that nothing happened outside: the call was refused before it took effect. After
 * any other failure of something that reaches the outside world, the outcome is unknown.
 */
export class NotExecutedError extends HoldfastError {
  constructor(
    message: string,
    options: {
      readonly remedy?: string
      readonly retryable?: boolean
      readonly data?: Readonly<Record<string, unknown>>
      readonly cause?: unknown
    } = {},
  ) {
    super('not-executed', message, {
      ...options,
      remedy: options.remedy ?? 'Nothing was done: correct the cause and call it again.',
    })
  }
}

/** What went wrong with a model call; each kind calls for a different remedy. */
export type ModelFailureKind =
  /** 429: too many requests or tokens for now. */
  | 'rate-limit'
  /** The account has no credit left; waiting does not help. */
  | 'quota'
  /** 5xx, 408, 409: a problem on the provider's side. */
  | 'server'
  /** The connection was refused, reset or cut. */
  | 'connection'
  /** No answer within the time limit. */
  | 'timeout'
  /** The reply broke off or could not be read. */
  | 'broken-reply'
  /** The prompt is longer than the model's window. */
  | 'context-too-long'
  /** 401, 403. */
  | 'auth'
  /** 404: no such model or path. */
  | 'not-found'
  /** 400, 422 and other refusals of this request. */
  | 'invalid-request'
  | 'unknown'

/**
 * A model call that failed for good. Contains no header, key or prompt: what the provider said is shortened and
 * cleaned.
 */
export class ModelError extends HoldfastError {
  constructor(
    message: string,
    options: {
      readonly kind: ModelFailureKind
      readonly remedy: string
      readonly retryable: boolean
      readonly data?: Readonly<Record<string, unknown>>
      readonly cause?: unknown
    },
  ) {
    super('model', message, { ...options, data: { kind: options.kind, ...options.data } })
  }

  get kind(): ModelFailureKind {
    return this.data['kind'] as ModelFailureKind
  }
}
