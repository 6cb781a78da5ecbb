import { DEFAULT_LIMITS } from '../../codec/limits.js'
import type { Redactor } from '../../codec/secret/redactor.js'
import { copyValue, type Value } from '../../codec/value.js'
import { type HoldfastError, InvalidOptionError, InvalidValueError, NotFoundError } from '../../core/errors.js'
import type { OptionNames } from '../../core/wording/option-names.js'
import type { Clock } from '../../core/time/clock.js'
import { DUE } from '../../log/contract.js'
import type { Draft } from '../../log/entry/draft.js'
import type { Log } from '../../log/log.js'
import { type Op, set } from '../../log/entry/ops.js'
import { PauseClosedError } from '../errors.js'
import { checkAgainst } from '../../json-schema/schema-checker.js'
import type { AnswerRecord, DeferralRecord, PauseRecord, RunState } from '../run/state/run-state.js'
import { describeGiven } from '../../core/wording/choices.js'
import { isOnlyWaiting, nextWake } from '../run/state/read-run-state.js'

/** What is recorded with an answer. */
export interface AnswerOptions {
  /**
   * Who answers, for the record: the caller's claim. On a server, set it from the logged-in user, never from the
   * request.
   */
  readonly by?: string
}

export const ANSWER_OPTIONS: OptionNames<AnswerOptions> = { by: true }

/** One of several answers: to which question, and what. */
export interface PauseAnswer {
  readonly pause: string
  readonly value: unknown
}

/** An answer that was refused, and why. */
export interface RefusedAnswer {
  /** Its position among those that were given. */
  readonly index: number
  readonly pause: string
  readonly error: unknown
}

/**
 * Answers open questions of one thread. Needs no program: each answer is checked against the JSON Schema that was
 * stored with its question. The first answer wins; any other is told who was first. Those that are accepted land in one
 * append: a worker that continues after the first of them would ask the others again. Returns those that are refused.
 */
export async function answerPauses(
  log: Log,
  clock: Clock,
  answers: readonly PauseAnswer[],
  options: AnswerOptions,
  redactor: Redactor | undefined,
): Promise<readonly RefusedAnswer[]> {
  const by = checkBy(options.by)
  await log.refresh()
  const refused: RefusedAnswer[] = []
  const given: { readonly index: number; readonly pause: string; readonly value: Value }[] = []
  for (const [index, { pause, value }] of answers.entries()) {
    try {
      const copied = copyValue(value ?? null, DEFAULT_LIMITS)
      const { schema } = findOpen(log.fold.state as RunState, pause, clock.now())
      if (schema !== undefined) await checkAgainst(schema, copied)
      given.push({ index, pause, value: redactor?.value(copied) ?? copied })
    } catch (error) {
      refused.push({ index, pause, error })
    }
  }
  let late: RefusedAnswer[] = []
  await log.update((fold) => {
    late = []
    let state = fold.state as RunState
    const now = clock.now()
    const drafts: Draft[] = []
    let open = Object.values(state.pauses ?? {}).filter((pause) => pause.answer === undefined).length
    for (const { index, pause, value } of given) {
      try {
        // The id contains the hash of what was asked, so the schema that was checked still belongs to this question.
        findOpen(state, pause, now)
      } catch (error) {
        late.push({ index, pause, error })
        continue
      }
      const answer: AnswerRecord = { value, at: now, ...(by === undefined ? {} : { by }) }
      drafts.push({
        kind: 'answer',
        ops: [set(['pauses', pause, 'answer'], answer)],
        index: { wakeAt: DUE, ...(open <= 1 && state.run?.waiting ? { status: 'active' } : {}) },
        data: { events: [{ type: 'answer', pause, ...(by === undefined ? {} : { by }) }] },
      })
      // If one question gets two answers, the first counts.
      const answered = { ...(state.pauses?.[pause] as PauseRecord), answer }
      state = { ...state, pauses: { ...state.pauses, [pause]: answered } }
      open--
    }
    return drafts.length === 0 ? undefined : drafts
  })
  return [...refused, ...late].sort((a, b) => a.index - b.index)
}

/** The question, if it still accepts an answer; otherwise an error that says why not. */
function findOpen(state: RunState, id: string, now: number): PauseRecord {
  // An id is whatever someone sent: `constructor` must not find what every object has.
  const pause = Object.hasOwn(state.pauses ?? {}, id) ? state.pauses?.[id] : undefined
  if (pause === undefined) throw closed(state, id)
  const { answer, expiresAt } = pause
  if (answer !== undefined && !answer.expired) {
    const who = answer.by === undefined ? '' : ` by ${answer.by}`
    throw new PauseClosedError(
      `Question "${id}" was answered${who} at ${new Date(answer.at).toISOString()}.`,
      'The first answer counts; read the thread to see it.',
      { pause: id, reason: 'answered', by: answer.by ?? null, at: answer.at },
    )
  }
  if (answer?.expired || (expiresAt !== undefined && expiresAt <= now)) {
    throw new PauseClosedError(`Question "${id}" has expired.`, 'Run the thread: it continues with its default.', {
      pause: id,
      reason: 'expired',
      at: expiresAt ?? answer?.at ?? now,
    })
  }
  return pause
}

function closed(state: RunState, id: string): HoldfastError {
  const was = state.closed?.findLast((pause) => pause.id === id)
  // Not `pause-closed`: someone who mistyped an id must not be told that somebody else was first.
  if (was === undefined) {
    return new NotFoundError(
      `There is no question "${id}" on this thread.`,
      'List the open ones with thread.pauses().',
      {
        pause: id,
      },
    )
  }
  const who = was.by === undefined ? '' : ` by ${was.by}`
  return new PauseClosedError(
    `Question "${id}" was ${was.reason}${who} at ${new Date(was.at).toISOString()}.`,
    was.reason === 'superseded' ? 'The question changed; answer the new one.' : 'Nothing is left to answer.',
    { pause: id, reason: was.reason, by: was.by ?? null, at: was.at },
  )
}

const MAX_BY = 256
/** A name with a line break or an escape in it could forge a line in a log, or on a screen. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

/** Who it was, as the caller claims: its form is checked, not its truth. */
export function checkBy(by: unknown): string | undefined {
  if (by === undefined) return undefined
  const remedy = 'Say who it is, for the record: an account, an email address.'
  if (typeof by !== 'string' || by.trim() === '' || by.length > MAX_BY) {
    const given = typeof by === 'string' ? `${by.length} characters` : `a ${typeof by}`
    throw new InvalidValueError('by', `must be a name of 1 to ${MAX_BY} characters, not ${given}`, remedy)
  }
  const hidden = HIDDEN.exec(by)?.[0].codePointAt(0)
  if (hidden === undefined) return by
  const code = `U+${hidden.toString(16).toUpperCase().padStart(4, '0')}`
  throw new InvalidValueError('by', `holds ${code}, a control character or one that can't be seen`, remedy)
}

/** Until when a question is postponed. */
export interface DeferOptions {
  /** When to come back to the question. One that would expire earlier stays open until then. */
  readonly until: Date
  /** Who postpones it, for the record. */
  readonly by?: string
}

/** Postpones an open question: it stays as it is and accepts an answer at any time, and its expiry waits as long. */
export async function deferPause(log: Log, clock: Clock, id: string, options: DeferOptions): Promise<void> {
  const by = checkBy(options.by)
  const until = options.until instanceof Date ? options.until.getTime() : Number.NaN
  if (!(until > clock.now())) {
    throw new InvalidOptionError(
      'until',
      `must be a Date in the future, not ${options.until instanceof Date ? String(options.until) : describeGiven(options.until)}`,
      'Pass for example new Date(Date.now() + 3_600_000).',
    )
  }
  await log.refresh()
  await log.update((fold) => {
    const state = fold.state as RunState
    const now = clock.now()
    const pause = findOpen(state, id, now)
    const deferred: DeferralRecord = { until, at: now, ...(by === undefined ? {} : { by }) }
    const expiresLater = pause.expiresAt !== undefined && pause.expiresAt < until
    const ops: Op[] = [
      set(['pauses', id, 'deferred'], deferred),
      ...(expiresLater ? [set(['pauses', id, 'expiresAt'], until)] : []),
    ]
    const later = { ...state, pauses: { ...state.pauses, [id]: { ...pause, expiresAt: until } } }
    // While something else is due, it stays due.
    const moves = expiresLater && (state.run?.status !== 'running' || isOnlyWaiting(fold, now))
    return [
      {
        kind: 'answer',
        ops,
        ...(moves ? { index: { wakeAt: nextWake(later) } } : {}),
        data: { events: [{ type: 'defer', pause: id, until, ...(by === undefined ? {} : { by }) }] },
      },
    ]
  })
}
