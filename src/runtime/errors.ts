import type { Value } from '../codec/value.js'
import { HoldfastError, IncompatibleError, isHoldfastError, type ModelFailureKind } from '../core/errors.js'
import type { ThreadIdInput } from '../core/ids.js'
import type { Path } from '../log/entry/ops.js'

/** An error as it is kept in the log: what it said, not what it was. */
export interface RecordedError {
  readonly name: string
  readonly message: string
  /** The stable code of a HoldfastError, or one that the thrown error carried. */
  readonly code?: string
  /** The step it came from. */
  readonly step?: string
  /** For a failed model call: what kind of failure it was. */
  readonly kind?: ModelFailureKind
  /** For a failed model call: how long the provider asks to wait, if that was too long to wait for. */
  readonly retryAfterMs?: number
}

const MAX_MESSAGE = 4000

/** What is kept of an error. Its stack, cause and other fields are dropped: they may hold secrets. */
export function recordError(error: unknown, step?: string): RecordedError {
  const { name, message, code } = describeError(error)
  const cut = message.length > MAX_MESSAGE ? `${message.slice(0, MAX_MESSAGE)}…` : message
  const at = step ?? (isHoldfastError(error) && typeof error.data['step'] === 'string' ? error.data['step'] : undefined)
  return {
    name: name.toWellFormed().slice(0, 200),
    message: cut.toWellFormed(),
    ...(code === undefined ? {} : { code: code.toWellFormed().slice(0, 200) }),
    ...(at === undefined ? {} : { step: at }),
    ...failureOf(error),
  }
}

/** The details of a failed model call, including one that failed a step. */
function failureOf(error: unknown): Pick<RecordedError, 'kind' | 'retryAfterMs'> {
  if (error instanceof StepFailedError) {
    const { kind, retryAfterMs } = error.recorded
    return { ...(kind === undefined ? {} : { kind }), ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
  }
  if (!isHoldfastError(error, 'model')) return {}
  const { kind, retryAfterMs } = error.data
  return { kind, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
}

/** For anything that may be thrown. */
export function describeError(error: unknown): { name: string; message: string; code?: string } {
  if (!(error instanceof Error)) return { name: 'Error', message: safeText(error) }
  const code = (error as { code?: unknown }).code
  return { name: error.name, message: error.message, ...(typeof code === 'string' ? { code } : {}) }
}

function safeText(value: unknown): string {
  try {
    return typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value))
  } catch {
    return 'something that has no text'
  }
}

const STORE_FAILURES: ReadonlySet<string> = new Set([
  'fenced',
  'unavailable',
  'storage',
  'corrupt',
  'data-loss',
  'closed',
  'conflict',
])

/** Whether the error came from the store, or the claim is lost: either says nothing about the program or its values. */
export function isStoreFailure(error: unknown): boolean {
  return isHoldfastError(error) && STORE_FAILURES.has(error.code)
}

/**
 * A step failed for good: its retries are used up, or it is known to have failed. Thrown to the code that awaits it.
 */
export class StepFailedError extends HoldfastError {
  readonly recorded: RecordedError

  constructor(step: string, at: Path, recorded: RecordedError, cause?: unknown) {
    super('step-failed', `Step "${step}" failed: ${recorded.message}`, {
      data: { step, at, error: recorded },
      cause,
      remedy: 'Fix the cause and run the thread again: it resumes at this step.',
    })
    this.recorded = recorded
  }
}

/** A thread that this one started and awaits did not complete. Thrown to the code that awaits it. */
export class ChildFailedError extends HoldfastError {
  /** @param message as it was recorded; absent when it happens. */
  constructor(step: string, at: Path, thread: ThreadIdInput, end: FailedChild, message?: string) {
    const { status, run, reason, done } = end
    const name = typeof thread === 'string' ? thread : JSON.stringify(thread)
    super('child-failed', message ?? `Thread ${name} ${CHILD_ENDS[status]}${reason ? `: ${reason}` : '.'}`, {
      data: {
        step,
        at,
        thread,
        run,
        status,
        ...(reason === undefined ? {} : { reason }),
        ...(done === undefined ? {} : { done }),
      },
      ...(message === undefined ? { remedy: CHILD_REMEDIES[status] } : {}),
    })
  }
}

/** How a child that did not complete ended. */
export interface FailedChild {
  readonly status: 'failed' | 'cancelled' | 'limited' | 'incompatible' | 'busy' | 'gone'
  /** The id of its run; empty if there is none. */
  readonly run: string
  /** Why: what it threw, who cancelled it, which limit. */
  readonly reason?: string
  /** Of an agent that a limit ended: what its tools had done by then. */
  readonly done?: Value
}

const CHILD_ENDS: Readonly<Record<FailedChild['status'], string>> = {
  failed: 'failed',
  cancelled: 'was cancelled',
  limited: 'was ended by a limit',
  incompatible: 'does not fit its program',
  busy: 'has other work, and was not begun',
  gone: 'ended, and its outcome is no longer kept',
}

const CHILD_REMEDIES: Readonly<Record<FailedChild['status'], string>> = {
  failed: 'Fix the cause and run the parent again: it resumes the child.',
  cancelled: 'Run the parent again to start the child over, or cancel the parent too.',
  limited: 'Raise the limit, or catch this and continue with what the child has done.',
  incompatible: 'Run the child with the version of the program that began it, then run the parent again.',
  busy: "Wait for its turn with { busy: 'queue' }, or leave `thread` out for a thread of its own.",
  gone: 'Keep entries for as long as a parent may come back to them, or start the child over by running the parent again.',
}

/** One attempt took longer than its time limit. What it did before is unknown. */
export class StepTimeoutError extends HoldfastError {
  constructor(step: string, timeoutMs: number) {
    super('timeout', `Step "${step}" took longer than ${timeoutMs} ms.`, {
      data: { step, timeoutMs },
      retryable: true,
      remedy: 'Raise timeoutMs, or make the step shorter.',
    })
  }
}

/** It is impossible to tell whether an effect happened, and its policy says to fail rather than to ask. */
export class EffectUnknownError extends HoldfastError {
  constructor(step: string, at: Path, data: Readonly<Record<string, unknown>>, cause?: unknown) {
    super('effect-unknown', `Whether step "${step}" took effect is unknown.`, {
      data: { step, at, ...data },
      cause,
      remedy:
        "Find out at the service that was called. Then run the thread again with onUnknown: 'pause' and answer, or cancel the run.",
    })
  }
}

/**
 * An effect was held back, and what it was waiting for has not happened. Nothing was started, and the run can be
 * resumed.
 */
export class EffectHeldError extends HoldfastError {
  constructor(step: string, missing: string, minutes: number) {
    super(
      'timeout',
      `Step "${step}", an effect, has waited ${minutes} minutes for step "${missing}", which is recorded, and the program has not come back to it. Nothing was started.`,
      {
        data: { step, missing },
        retryable: true,
        remedy:
          'If steps were renamed or removed, run the thread with the version of the program that began it, or cancel the run. If code between steps takes that long, put it into a step, or call ctx.heartbeat() in the meantime.',
      },
    )
  }
}

/** The run was asked to stop. */
export class CancelledError extends HoldfastError {
  constructor(reason: string, data: Readonly<Record<string, unknown>> = {}) {
    super('cancelled', `The run was cancelled: ${reason.replace(/[.!?]?$/, (end) => end || '.')}`, {
      data,
      remedy: 'Run the thread with new input.',
    })
  }
}

/** The program took a different path than the recorded one. Ends a run as `incompatible`, never as a silent repeat. */
export function nondeterministic(message: string, step: string): IncompatibleError {
  return new IncompatibleError(
    message,
    'nondeterministic',
    'Run the thread with the version of the program that began it, or cancel the run and start over.',
    { step },
  )
}

/**
 * A wait without a key was requested again with a different time limit, alongside others: what is recorded there may
 * belong to another.
 */
export function otherWait(path: string, recorded: string | undefined, asked: string | undefined): IncompatibleError {
  return new IncompatibleError(
    `Wait "${path}" was recorded as "${recorded}" and is "${asked ?? 'without a limit'}" now, beside other waits: the record may be another branch's.`,
    'nondeterministic',
    'Give each of the parallel waits a key. This run can continue with the version of the program that started it.',
    { step: path },
  )
}

/**
 * An effect was begun, its outcome is unknown, and the program has ended without reaching it again. Its run must not
 * end as if nothing were open.
 */
export function leftBegun(step: string, cause?: unknown): IncompatibleError {
  const ended = cause === undefined ? 'ended' : `failed (${recordError(cause).message})`
  return new IncompatibleError(
    `Step "${step}" was begun, and its outcome is unknown, but the program ${ended} without coming back to it.`,
    'nondeterministic',
    'Find out at the service what happened. Then run the thread with the version of the program that began it, or cancel the run and start over.',
    { step },
    cause,
  )
}

export function isNondeterministic(error: unknown): boolean {
  return isHoldfastError(error, 'incompatible') && error.data['reason'] === 'nondeterministic'
}

/** A replay reached a step that is not recorded. */
export class ReplayGapError extends Error {
  readonly step: string

  constructor(step: string) {
    super(`Step "${step}" is not recorded.`)
    this.step = step
  }
}

/** A replay reached a step too early: the record has another one before it. */
export class ReplayOrderError extends Error {
  readonly step: string

  constructor(recorded: string, step: string) {
    super(`The record has step "${recorded}" next, but the current program waits for "${step}" first.`)
    this.step = step
  }
}

/** A question that no longer accepts an answer: it was answered, expired, superseded or cancelled, as `data.reason` says. */
export class PauseClosedError extends HoldfastError {
  constructor(message: string, remedy: string, data: Readonly<Record<string, unknown>>) {
    super('pause-closed', message, { data, remedy })
  }
}
