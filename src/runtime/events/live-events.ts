import { parseCheckpointId } from '../../log/entry/checkpoint-id.js'
import type { LogStore } from '../../log/log-store.js'
import { nameLog } from '../../core/log-name.js'
import type { LogKey } from '../../log/contract.js'
import { readEventId, type RunEvent } from './events.js'

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
export class LiveWaiting {
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
