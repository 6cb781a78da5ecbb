import { DEFAULT_LIMITS } from '../codec/limits.js'
import { copyValue } from '../codec/value.js'
import { InvalidValueError } from '../core/errors.js'
import type { Clock } from '../core/clock.js'
import type { Log } from '../log/log.js'
import { set } from '../log/ops.js'
import { PauseClosedError } from './errors.js'
import { checkAgainst } from './json-schema.js'
import type { AnswerRecord, PauseRecord, RunState } from './run-state.js'

/** What is recorded beside an answer. */
export interface AnswerOptions {
  /** Who answers, for the record. */
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
): Promise<void> {
  const by = checkBy(options.by)
  const stored = copyValue(value ?? null, DEFAULT_LIMITS)
  await log.refresh()
  const schema = findOpen(log.fold.state as RunState, id, clock.now()).schema
  if (schema !== undefined) await checkAgainst(schema, stored)
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
        index: { wakeAt: now, ...(open.length <= 1 && state.run?.waiting ? { status: 'active' } : {}) },
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

export function checkBy(by: unknown): string | undefined {
  if (by === undefined) return undefined
  if (typeof by === 'string' && by !== '' && by.length <= 256 && by.isWellFormed()) return by
  throw new InvalidValueError('by', 'must be 1 to 256 characters', 'Name who answers, for the record.')
}
