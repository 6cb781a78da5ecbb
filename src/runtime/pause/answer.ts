import { DEFAULT_LIMITS } from '../../codec/limits.js'
import type { Redactor } from '../../codec/redactor.js'
import { copyValue } from '../../codec/value.js'
import { InvalidValueError } from '../../core/errors.js'
import type { Clock } from '../../core/clock.js'
import { DUE } from '../../log/contract.js'
import type { Log } from '../../log/log.js'
import { set } from '../../log/entry/ops.js'
import { PauseClosedError } from '../errors.js'
import { checkAgainst } from '../json-schema/json-schema.js'
import type { AnswerRecord, PauseRecord, RunState } from '../run/run-state.js'

/** What is recorded beside an answer. */
export interface AnswerOptions {
  /** Who answers, for the record: the caller's claim. A server sets it from who is logged in, never from the request. */
  readonly by?: string
}

/**
 * Answers an open question. Needs no program: the answer is checked against the JSON Schema that was stored with the
 * question. The first answer wins; every other hears who was first.
 */
export async function answerPause(
  log: Log,
  clock: Clock,
  id: string,
  value: unknown,
  options: AnswerOptions,
  redactor: Redactor | undefined,
): Promise<void> {
  const by = checkBy(options.by)
  const given = copyValue(value ?? null, DEFAULT_LIMITS)
  await log.refresh()
  const schema = findOpen(log.fold.state as RunState, id, clock.now()).schema
  if (schema !== undefined) await checkAgainst(schema, given)
  const stored = redactor?.value(given) ?? given
  await log.update((fold) => {
    const state = fold.state as RunState
    const now = clock.now()
    // The id holds the hash of what was asked, so the schema that was checked is still this question's.
    findOpen(state, id, now)
    const answer: AnswerRecord = { value: stored, at: now, ...(by === undefined ? {} : { by }) }
    const open = Object.values(state.pauses ?? {}).filter((pause) => pause.answer === undefined)
    return [
      {
        kind: 'answer',
        ops: [set(['pauses', id, 'answer'], answer)],
        index: { wakeAt: DUE, ...(open.length <= 1 && state.run?.waiting ? { status: 'active' } : {}) },
        data: { events: [{ type: 'answer', pause: id, ...(by === undefined ? {} : { by }) }] },
      },
    ]
  })
}

/** The question, if it still takes an answer; otherwise an error that says why not. */
export function findOpen(state: RunState, id: string, now: number): PauseRecord {
  // An id is whatever someone sent: `constructor` must not find what every object has.
  const pause = Object.hasOwn(state.pauses ?? {}, id) ? state.pauses?.[id] : undefined
  if (pause === undefined) throw closed(state, id)
  const { answer, expiresAt } = pause
  if (answer !== undefined && !answer.expired) {
    const who = answer.by === undefined ? '' : ` by ${answer.by}`
    throw new PauseClosedError(
      `Question "${id}" was answered${who} at ${new Date(answer.at).toISOString()}.`,
      'The first answer holds; read the thread to see it.',
      { pause: id, reason: 'answered', by: answer.by ?? null, at: answer.at },
    )
  }
  if (answer?.expired || (expiresAt !== undefined && expiresAt <= now)) {
    throw new PauseClosedError(`Question "${id}" has expired.`, 'Run the thread: it goes on by its default.', {
      pause: id,
      reason: 'expired',
      at: expiresAt ?? answer?.at ?? now,
    })
  }
  return pause
}

function closed(state: RunState, id: string): PauseClosedError {
  const was = state.closed?.findLast((pause) => pause.id === id)
  if (was === undefined) {
    return new PauseClosedError(
      `There is no question "${id}" on this thread.`,
      'List the open ones with hf.pauses().',
      {
        pause: id,
        reason: 'unknown',
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
/** A name with a line break or an escape in it could forge a line of a log, or of a screen. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

/** Who it was, as the caller claims: checked for its form and not for its truth. */
export function checkBy(by: unknown): string | undefined {
  if (by === undefined) return undefined
  const remedy = 'Name who it is, for the record: an account, a mail address.'
  if (typeof by !== 'string' || by.trim() === '' || by.length > MAX_BY) {
    const given = typeof by === 'string' ? `${by.length} characters` : `a ${typeof by}`
    throw new InvalidValueError('by', `must be a name of 1 to ${MAX_BY} characters, not ${given}`, remedy)
  }
  const hidden = HIDDEN.exec(by)?.[0].codePointAt(0)
  if (hidden === undefined) return by
  const code = `U+${hidden.toString(16).toUpperCase().padStart(4, '0')}`
  throw new InvalidValueError('by', `holds ${code}, a control character or one that can't be seen`, remedy)
}
