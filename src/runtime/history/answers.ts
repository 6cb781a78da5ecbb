import { cloneValue } from '../../codec/clone.js'
import type { Value } from '../../codec/value.js'
import type { Log } from '../../log/log.js'
import type { RecordedEvent } from '../events/events.js'
import type { PauseRecord, RunState } from '../run/state/run-state.js'

/** An answer that was given, and what it answered. */
export interface GivenAnswer {
  readonly pause: string
  readonly kind: PauseRecord['kind']
  /** The step that asked. */
  readonly step: string
  readonly question: Value
  readonly value: Value
  readonly by?: string
  readonly at: Date
  readonly askedAt: Date
  /** The checkpoint that the answer created. */
  readonly checkpoint: string
}

const PAGE = 1000

/** The answers that people gave on a branch, newest first. Only headers are read, and the entries that hold one. */
export async function listAnswers(log: Log, limit: number): Promise<readonly GivenAnswer[]> {
  const found: GivenAnswer[] = []
  for (let before: number | undefined; found.length < limit; ) {
    const page = await log.history({ limit: PAGE, ...(before === undefined ? {} : { before }) })
    for (const { id, header } of page) {
      if (header.kind !== 'answer' || found.length >= limit) continue
      for await (const { body, fold } of log.entries(header.seq, header.seq)) {
        const { events = [] } = (body.data ?? {}) as { readonly events?: readonly RecordedEvent[] }
        for (const event of events) {
          if (event.type !== 'answer') continue
          const asked = (fold.state as RunState).pauses?.[event.pause]
          if (asked?.answer !== undefined) found.push(describe(asked, asked.answer, id))
        }
      }
    }
    before = page.at(-1)?.header.seq
    if (before === undefined || page.length < PAGE) break
  }
  return found
}

function describe(asked: PauseRecord, answer: NonNullable<PauseRecord['answer']>, checkpoint: string): GivenAnswer {
  return {
    pause: asked.id,
    kind: asked.kind,
    step: asked.path,
    question: cloneValue(asked.question),
    value: cloneValue(answer.value),
    ...(answer.by === undefined ? {} : { by: answer.by }),
    at: new Date(answer.at),
    askedAt: new Date(asked.askedAt),
    checkpoint,
  }
}
