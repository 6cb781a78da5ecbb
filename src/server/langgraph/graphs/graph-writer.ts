import type { RunEvent } from '../../../index.js'
import { toJson } from '../../http/json.js'
import type { ServerSentEvent } from '../../http/sse.js'
import type { StartedRun } from '../../run/start-run.js'

interface Chunk {
  readonly mode: string
  readonly event: string
  readonly data: unknown
}

/** Hands on what a graph tells, as far as it was asked for. */
export class GraphWriter {
  readonly #started: StartedRun
  readonly #modes: ReadonlySet<string>
  readonly #valuesAt: (checkpoint: string) => Promise<unknown>
  #lastValues = ''

  constructor(started: StartedRun, modes: readonly string[], valuesAt: (checkpoint: string) => Promise<unknown>) {
    this.#started = started
    this.#modes = new Set(modes)
    this.#valuesAt = valuesAt
  }

  first(): ServerSentEvent {
    const { run, thread } = this.#started
    return { event: 'metadata', data: toJson({ run_id: run, thread_id: thread.id, attempt: 1 }) }
  }

  async write(event: RunEvent): Promise<ServerSentEvent[]> {
    if (event.type !== 'custom') return []
    const chunk = (event.value as { readonly langgraph?: Chunk } | null)?.langgraph
    if (chunk === undefined || !this.#modes.has(chunk.mode)) return []
    const data = toJson(chunk.data)
    if (chunk.event === 'values') this.#lastValues = data
    return [{ event: chunk.event, data }]
  }

  /** What the run came to. Sent also where what it said before was heard by nobody, such as in a process that died. */
  async values(checkpoint: string): Promise<ServerSentEvent[]> {
    if (!this.#modes.has('values')) return []
    const data = toJson(await this.#valuesAt(checkpoint))
    return data === this.#lastValues ? [] : [{ event: 'values', data }]
  }
}
