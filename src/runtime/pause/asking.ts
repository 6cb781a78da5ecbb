import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { showValue } from '../../codec/clone.js'
import { copyValue, type Value } from '../../codec/value.js'
import { InvalidOptionError, isHoldfastError } from '../../core/errors.js'
import { type Op, push, remove, set, splice } from '../../log/entry/ops.js'
import { validate } from '../../store/standard-schema.js'
import type { PauseOptions } from '../step/context.js'
import type { Asked } from '../program/program.js'
import { PauseClosedError } from '../errors.js'
import { hashValue } from '../step/record/hash-value.js'
import { jsonSchemaOf, refuseSchema } from '../../json-schema/schema-checker.js'
import type { AnswerRecord, ClosedPause, PauseRecord, RefusalRecord, RunState } from '../run/state/run-state.js'
import type { Run } from '../run/run.js'
import { TimeLimit } from '../program/time-limit.js'

const MAX_CLOSED = 100
const MAX_REASON = 4000

/** For the questions that the engine asks itself. */
export interface AskOptions extends PauseOptions {
  /** Why an answer can't be accepted although it matches the JSON Schema. */
  readonly refuse?: (answer: unknown) => string | undefined | Promise<string | undefined>
  /** It has no key, and may be asked by one of several branches. */
  readonly beside?: boolean
  /** For a question without a key: what the code that asks passed last. */
  readonly past?: string
  /** Since when something after it may have been begun without a record. */
  readonly since?: number | undefined
}

/** The questions of one activation: asks each once, and finds its answer when the activation is called again. */
export class Asking {
  readonly #run: Run
  readonly #used = new Set<string>()

  constructor(run: Run) {
    this.#run = run
  }

  restart(): void {
    if (this.#used.size > 0) this.#used.clear()
  }

  /** The answer, or undefined while there is none. */
  async ask(
    kind: PauseRecord['kind'],
    place: string,
    shown: unknown,
    options: AskOptions,
  ): Promise<{ readonly value: unknown } | undefined> {
    const { log, clock, isOvertaken } = this.#run
    // Since it was requested, another process has taken the thread: what is recorded now may belong to another run.
    if (isOvertaken) return undefined
    if (!log.durable) {
      throw new InvalidOptionError('frequency', "is 'none', which can't keep a question", "Use 'step' or 'boundary'.")
    }
    // What is approved is shown as it will run: it was derived from what is kept, and none of it may be hidden.
    const question = kind === 'approval' ? copyValue(shown ?? null, DEFAULT_LIMITS) : this.#run.keep(shown ?? null)
    const id = pauseId(this.#run.state.run?.id ?? '', place, kind, question)
    this.#used.add(id)
    const found = this.#find(id)
    if (found === undefined) {
      const asked = await this.#open(id, kind, place, question, options)
      if (kind === 'unknown-effect') this.#run.watch.count('holdfast.effects.unknown')
      log.add({ kind: 'pause', ops: asked.ops, data: { events: [asked.event] } })
      return undefined
    }
    const answer = found.answer ?? (await this.#expired(found))
    if (answer === undefined) return undefined
    if (answer.expired && found.onExpire === 'fail') {
      throw new PauseClosedError(`Question "${id}" expired without an answer.`, 'Run the thread again to ask again.', {
        pause: id,
        reason: 'expired',
        at: clock.now(),
      })
    }
    const taken = await take(answer, options)
    if ('refused' in taken) {
      // Nobody could answer anymore, and every resume would fail the same way.
      this.#reopen(found, answer, taken.refused)
      return undefined
    }
    this.#read(id)
    return taken
  }

  // News that nobody marks as read would keep the run awake forever.
  #read(id: string): void {
    const { log } = this.#run
    this.#used.add(id)
    if (!this.#find(id)?.used) log.add({ kind: 'step', ops: [set(['pauses', id, 'used'], true)] })
  }

  #reopen({ id, kind, question }: PauseRecord, { by }: AnswerRecord, reason: string): void {
    const { log, clock } = this.#run
    const refused: RefusalRecord = { reason, at: clock.now(), ...(by === undefined ? {} : { by }) }
    log.add({
      kind: 'pause',
      // The next answer is news again.
      ops: [remove(['pauses', id, 'answer']), remove(['pauses', id, 'used']), set(['pauses', id, 'refused'], refused)],
      data: { events: [{ type: 'pause', pause: id, kind, question, refused: reason }] },
    })
  }

  /** What a place asks, or asked and got an answer to, on behalf of this activation. */
  askedAt(place: string): Asked | undefined {
    const { log, state } = this.#run
    const own = askedAt(state, place)
    if (own === undefined) return undefined
    const { question, answer, exact } = log.acknowledged.pauses?.[own.id] ?? own
    if (answer !== undefined) this.#read(own.id)
    return {
      question,
      ...(answer === undefined || answer.expired ? {} : { answer: answer.value }),
      ...(exact === undefined ? {} : { exact }),
    }
  }

  /**
   * Takes back what a place asked: it found out by itself, and an answer that nobody reads would keep the run awake.
   */
  drop(place: string): void {
    const { log, clock } = this.#run
    const ops = closePauses(log.acknowledged, (pause) => pause.path === place, clock.now(), 'superseded')
    if (ops.length > 0) log.add({ kind: 'pause', ops })
  }

  /**
   * What to write when the activation has ended: its questions accept no more answers. That includes those that another
   * version of the program asked: an answer that nobody reads would keep the run awake forever.
   * @param activation where the activation is in the thread.
   */
  closing(activation: string): readonly Op[] {
    const { pauses } = this.#run.state
    if (pauses === undefined) return []
    const isOwn = ({ id, path }: PauseRecord) =>
      this.#used.has(id) || path.startsWith(`${activation} `) || path.startsWith(`${activation}/`)
    return closePauses(this.#run.state, isOwn, this.#run.clock.now())
  }

  // Guests' answers are in the newest fold, questions not yet written in our own view.
  #find(id: string): PauseRecord | undefined {
    return this.#run.log.acknowledged.pauses?.[id] ?? this.#run.state.pauses?.[id]
  }

  // Decided on the newest state: an answer that came in time counts, even if we had not read it yet.
  async #expired(pause: PauseRecord): Promise<AnswerRecord | undefined> {
    const { log, clock } = this.#run
    const now = clock.now()
    if (pause.expiresAt === undefined || pause.expiresAt > now) return undefined
    const value = typeof pause.onExpire === 'object' ? pause.onExpire.answer : null
    const answer: AnswerRecord = { value, at: now, expired: true }
    await log.decide((fold) => {
      const current = (fold.state as RunState).pauses?.[pause.id]
      if (current === undefined || current.answer !== undefined || (current.expiresAt ?? Infinity) > now)
        return undefined
      return {
        kind: 'pause',
        ops: [set(['pauses', pause.id, 'answer'], answer)],
        data: { events: [{ type: 'answer', pause: pause.id, expired: true }] },
      }
    })
    return this.#find(pause.id)?.answer
  }

  async #open(
    id: string,
    kind: PauseRecord['kind'],
    place: string,
    question: Value,
    options: AskOptions,
  ): Promise<{ readonly ops: readonly Op[]; readonly event: unknown }> {
    const { clock } = this.#run
    const jump = clock.catchUp()
    if (jump) await jump
    const now = clock.now()
    const { expiresInMs, onExpire = 'fail' } = options
    if (expiresInMs !== undefined && !(Number.isSafeInteger(expiresInMs) && expiresInMs > 0)) {
      throw new InvalidOptionError(
        'expiresInMs',
        `must be a whole number of milliseconds above 0, not ${String(expiresInMs)}`,
        'Pass for example 3_600_000 for an hour.',
      )
    }
    const schema = options.jsonSchema ?? (options.schema ? await jsonSchemaOf(options.schema) : undefined)
    const refusal = schema === undefined ? undefined : refuseSchema(schema)
    if (refusal !== undefined) {
      const field = options.jsonSchema === undefined ? 'schema' : 'jsonSchema'
      throw new InvalidOptionError(field, refusal, 'Fix the schema: no answer can be checked against it.')
    }
    const record: PauseRecord = {
      id,
      path: place,
      kind,
      question,
      askedAt: now,
      ...(kind === 'approval' ? { exact: true as const } : {}),
      ...(options.beside ? { beside: true as const } : {}),
      ...(options.past === undefined ? {} : { past: options.past }),
      ...(options.since === undefined ? {} : { since: options.since }),
      ...(schema === undefined ? {} : { schema }),
      ...(expiresInMs === undefined
        ? {}
        : { expiresAt: now + expiresInMs, onExpire: onExpire as PauseRecord['onExpire'] & {} }),
    }
    // The same place asks something else now: an answer to the old question would answer what is no longer asked.
    const superseded = closePauses(this.#run.state, (pause) => pause.path === place, now, 'superseded')
    return {
      ops: [...superseded, set(['pauses', id], record)],
      event: { type: 'pause', pause: id, kind, question },
    }
  }
}

/** The question of a place, as it is recorded. */
export function askedAt({ pauses }: RunState, place: string): PauseRecord | undefined {
  return pauses && Object.values(pauses).find(({ path }) => path === place)
}

/** What the program makes of an answer, or why it can't be accepted. */
async function take(
  answer: AnswerRecord,
  { schema, refuse }: AskOptions,
): Promise<{ readonly value: unknown } | { readonly refused: string }> {
  const value = showValue(answer.value)
  const refused = await refuse?.(value)
  if (refused !== undefined) return { refused: shorten(refused) }
  if (schema === undefined) return { value }
  try {
    return { value: await new TimeLimit().run(value, () => validate(schema, value)) }
  } catch (error) {
    const isRefused = isHoldfastError(error, 'invalid-value') || isHoldfastError(error, 'timeout')
    // The program's own answer for a question that expired would only expire again.
    if (answer.expired || !isRefused) throw error
    return { refused: shorten(error.message) }
  }
}

function shorten(reason: string): string {
  return (reason.length > MAX_REASON ? `${reason.slice(0, MAX_REASON)}…` : reason).toWellFormed()
}

/** Ops that remove questions and remember their outcome, so that a late answer is told why. */
export function closePauses(
  state: RunState,
  which: (pause: PauseRecord) => boolean,
  at: number,
  otherwise: ClosedPause['reason'] = 'cancelled',
): readonly Op[] {
  const closing = Object.values(state.pauses ?? {}).filter(which)
  if (closing.length === 0) return []
  const closed = closing.map(({ id, answer }): ClosedPause => {
    const reason = answer === undefined ? otherwise : answer.expired ? 'expired' : 'answered'
    return { id, reason, at: answer?.at ?? at, ...(answer?.by === undefined ? {} : { by: answer.by }) }
  })
  const surplus = (state.closed?.length ?? 0) + closed.length - MAX_CLOSED
  return [
    ...closing.map(({ id }) => remove(['pauses', id])),
    push('closed', ...closed),
    ...(surplus > 0 ? [splice('closed', 0, surplus)] : []),
  ]
}

/** Includes the hash of what is shown: a changed question is a different one. */
export function pauseId(run: string, place: string, kind: string, question: Value): string {
  return `p-${hashValue([run, place, kind, question]).slice(0, 20)}`
}
