import type { OptionNames } from '../../core/wording/option-names.js'
import { formatCheckpointId, parseCheckpointId } from '../../log/entry/checkpoint-id.js'
import type { Log } from '../../log/log.js'
import type { LogStore } from '../../log/log-store.js'
import type { State } from '../../log/entry/ops.js'
import { entryEvents, readEventId, type RunEvent } from './events.js'
import { follow } from './follow.js'
import { FamilyRest } from '../child/family-rest.js'
import { nameLog } from '../../core/log-name.js'
import type { LogKey } from '../../log/contract.js'

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

const LIVE: ReadonlySet<unknown> = new Set(['retry', 'custom', 'token', 'tool-call', 'tool-result', 'superseded'])
const MOST_WAITING = 10_000

/** Calls back with what happens in runs of a log while it happens, and says whether another process runs it. */
export function listenLive(
  logs: LogStore,
  log: LogKey | string,
  heard: (event: RunEvent, isElsewhere: boolean) => void,
): () => void {
  const name = typeof log === 'string' ? log : nameLog(log)
  return logs.news.live.listen(name, (event, isElsewhere) => {
    if (isLiveEvent(event)) heard(event, isElsewhere)
  })
}

// It may come from anywhere.
function isLiveEvent(event: unknown): event is RunEvent {
  if (typeof event !== 'object' || event === null) return false
  const { type, id, step } = event as { type?: unknown; id?: unknown; step?: unknown }
  return LIVE.has(type) && typeof id === 'string' && typeof step === 'string'
}

/** Live events that wait until all records before them were reported. */
class LiveWaiting {
  readonly #events: { readonly event: RunEvent; readonly seq: number }[] = []
  readonly #end: () => void

  constructor(logs: LogStore, log: LogKey, wake: () => void) {
    this.#end = listenLive(logs, log, (event) => {
      // A slow reader gets the records.
      if (this.#events.length >= MOST_WAITING) return
      this.#events.push({ event, seq: seqOf(event.id) })
      wake()
    })
  }

  /** Whether an event can be reported to somebody who has all records up to `seq`. */
  isReady(seq: number): boolean {
    const [first] = this.#events
    return first !== undefined && first.seq <= seq
  }

  *take(seq: number): Generator<RunEvent> {
    while (this.isReady(seq)) yield (this.#events.shift() as { readonly event: RunEvent }).event
  }

  close(): void {
    this.#end()
  }
}

function seqOf(id: string): number {
  try {
    return id === '' ? -1 : parseCheckpointId(readEventId(id).checkpoint).seq
  } catch {
    return -1
  }
}
