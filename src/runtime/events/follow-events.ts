import type { OptionNames } from '../../core/wording/option-names.js'
import { formatCheckpointId } from '../../log/entry/checkpoint-id.js'
import type { Log } from '../../log/log.js'
import type { LogStore } from '../../log/log-store.js'
import type { State } from '../../log/entry/ops.js'
import { entryEvents, readEventId, type RunEvent } from './events.js'
import { follow } from './follow.js'
import { FamilyRest } from '../child/family-rest.js'
import { LiveWaiting } from './live-events.js'

/** Where to start reading recorded events, and when to stop. */
export interface EventsOptions {
  /** The id of the last event that was seen: what came after it follows. Default: from the oldest kept entry. */
  readonly after?: string
  /** Ends when the thread is at rest. Default true; false continues until the signal is aborted. */
  readonly untilRest?: boolean
  readonly signal?: AbortSignal
  /**
   * Also yields live events, such as tokens, from whichever process runs the thread: those that happen while somebody
   * listens, some of which may be missed. Not across processes if the store has keys, or on SQLite and files.
   */
  readonly live?: boolean
}

export const EVENTS_OPTIONS: OptionNames<EventsOptions> = { after: true, untilRest: true, signal: true, live: true }

/**
 * What is recorded on a log, as events, from any process: first what has happened since, then what happens. With
 * `live`, tokens and other live events come between the records.
 */
export async function* followEvents(logs: LogStore, log: Log, options: EventsOptions): AsyncGenerator<RunEvent> {
  const { clock } = logs
  const { after, untilRest = true, signal } = options
  let seen = -1
  let before: State = {}
  /** Events of the next entry that were seen already. */
  let skip = 0
  if (after !== undefined) {
    const { checkpoint, seen: some } = readEventId(after)
    // By id and not by number alone: an event of a different history must not be taken for one of this.
    const fold = await log.at(checkpoint)
    seen = some === undefined ? fold.seq : fold.seq - 1
    skip = some ?? 0
    before = some === undefined ? fold.state : await stateBefore(log, fold.seq)
  } else {
    seen = (await log.firstKept()) - 1
  }
  let wake = () => {}
  const live = options.live ? new LiveWaiting(logs, log.key, () => wake()) : undefined
  const family = new FamilyRest(logs)
  const extra = {
    attach(call: () => void) {
      wake = call
      family.attach(call)
    },
    get isReady() {
      return family.isReady || (live?.isReady(seen) ?? false)
    },
  }
  try {
    for await (const _ of follow(log, clock, signal, undefined, extra)) {
      if (log.fold.seq > seen) {
        for await (const { body, fold, header, hash } of log.entries(seen + 1, log.fold.seq)) {
          const entry = { id: formatCheckpointId(log.key.branch, header.seq, hash), seq: header.seq }
          yield* entryEvents(entry, body, before).slice(skip)
          skip = 0
          before = fold.state
          seen = header.seq
        }
      }
      if (live) yield* live.take(seen)
      if (untilRest && (await family.isAtRest(log))) return
    }
  } finally {
    family.close()
    live?.close()
  }
}

// Only needed to say what an entry copied from a record; where the entry before is pruned, it is the first one kept.
async function stateBefore(log: Log, seq: number): Promise<State> {
  if (seq <= (await log.firstKept())) return {}
  return (await log.at(seq - 1)).state
}
