import type { Message, RunEvent } from '../../../index.js'
import { messagesIn } from '../../ai-sdk/state-messages.js'
import { toJson } from '../../http/json.js'
import { HttpProblem } from '../../http/problem.js'
import type { ServerSentEvent } from '../../http/sse.js'
import type { StartedRun } from '../../run/start-run.js'
import type { HostedGraph } from '../graphs/hosted-graph.js'
import { toChain } from '../messages.js'
import { nodeOf, toInterrupt, toValues } from '../threads/thread-state.js'

/** What a client may ask to be sent. */
const MODES = ['values', 'updates', 'messages-tuple', 'custom'] as const
export type Mode = (typeof MODES)[number] | (typeof GRAPH_MODES)[number]
/** What graphs of LangGraph tell besides, as they make it. */
const GRAPH_MODES = ['messages', 'tasks', 'checkpoints', 'debug'] as const

/** All that can be asked for of a program. */
export function modesOf(hosted: HostedGraph | undefined): readonly Mode[] {
  return hosted === undefined ? MODES : [...MODES, ...GRAPH_MODES]
}

/** The modes of a request; values by default. */
export function readModes(given: unknown, hosted: HostedGraph | undefined): readonly Mode[] {
  const all = modesOf(hosted)
  const asked: readonly unknown[] =
    given === undefined || given === null ? ['values'] : Array.isArray(given) ? given : [given]
  const unknown = asked.find((mode) => !all.includes(mode as Mode))
  if (unknown === undefined) return asked as readonly Mode[]
  throw new HttpProblem(501, 'not-offered', `The stream mode "${String(unknown).slice(0, 50)}" is not offered.`, {
    remedy: `Use any of: ${all.join(', ')}.`,
    fields: { field: 'stream_mode' },
  })
}

/** Turns what happens in a run into the events that were asked for. */
export class StreamWriter {
  readonly #started: StartedRun
  readonly #modes: ReadonlySet<Mode>
  readonly #streamed = new Set<string>()
  readonly #calls = new Map<string, number>()
  #hasChanged = false
  #step = ''

  constructor(started: StartedRun, modes: readonly Mode[]) {
    this.#started = started
    this.#modes = new Set(modes)
  }

  first(): ServerSentEvent {
    return {
      event: 'metadata',
      data: toJson({ run_id: this.#started.run, thread_id: this.#started.thread.id, attempt: 1 }),
    }
  }

  /** The events that one of ours makes, without their ids. */
  async write(event: RunEvent): Promise<ServerSentEvent[]> {
    switch (event.type) {
      case 'token':
        return this.#token(event)
      case 'custom':
        return this.#of('custom', 'custom', event.value)
      case 'step':
        if (event.status === 'completed') this.#step = nodeOf(event.step)
        return []
      case 'state':
        this.#hasChanged = true
        return [...this.#updates(event.ops), ...this.#messages(messagesIn(event.ops))]
      case 'checkpoint':
        return this.#hasChanged ? this.values(event.checkpoint) : []
      default:
        return []
    }
  }

  /** The state at a checkpoint, with what it asks. */
  async values(checkpoint: string): Promise<ServerSentEvent[]> {
    this.#hasChanged = false
    if (!this.#modes.has('values')) return []
    return [{ event: 'values', data: toJson(await valuesAt(this.#started, checkpoint)) }]
  }

  #of(mode: Mode, event: string, data: unknown): ServerSentEvent[] {
    return this.#modes.has(mode) ? [{ event, data: toJson(data) }] : []
  }

  #updates(ops: readonly unknown[]): ServerSentEvent[] {
    const update: Record<string, unknown> = {}
    for (const op of ops) {
      const [kind, path, value] = op as [string, readonly string[], unknown]
      const [key] = path
      if (key === undefined || key === 'loop') continue
      const messages = key === 'messages' ? messagesIn([op as never]).map(toChain) : []
      if (kind === 'push') update[key] = messages.length > 0 ? messages : value
      else if (kind === 'set' && path.length === 1) update[key] = messages.length > 0 ? messages : value
    }
    return Object.keys(update).length === 0
      ? []
      : this.#of('updates', 'updates', { [this.#step || this.#started.program.plan.name]: update })
  }

  #token({ message, step, kind, text, callId, tool }: Extract<RunEvent, { type: 'token' }>): ServerSentEvent[] {
    if (message === undefined || (kind !== 'text' && kind !== 'tool-input')) return []
    this.#streamed.add(message)
    const index = callId === undefined ? 0 : (this.#calls.get(callId) ?? this.#calls.size)
    if (callId !== undefined) this.#calls.set(callId, index)
    const isFirst = tool !== undefined
    const chunks =
      kind === 'tool-input'
        ? [{ type: 'tool_call_chunk', index, args: text, ...(isFirst ? { id: callId, name: tool } : {}) }]
        : []
    // By the id that the message has in the state: without it clients drop the chunk.
    const chunk = {
      type: 'AIMessageChunk',
      id: message,
      content: kind === 'text' ? text : '',
      tool_call_chunks: chunks,
    }
    return this.#of('messages-tuple', 'messages', [chunk, this.#about(nodeOf(step))])
  }

  #messages(messages: readonly Message[]): ServerSentEvent[] {
    return messages.flatMap((message) => {
      if (message.role === 'user' || this.#streamed.has(message.id)) return []
      return this.#of('messages-tuple', 'messages', [toChain(message), this.#about(this.#step)])
    })
  }

  #about(node: string) {
    const { run, thread, program } = this.#started
    return { langgraph_node: node, run_id: run, thread_id: thread.id, graph_id: program.plan.name }
  }
}

/** The values at a checkpoint, with what the thread asks there. */
export async function valuesAt({ thread, program }: StartedRun, checkpoint: string): Promise<Record<string, unknown>> {
  const facts = await thread.look(checkpoint).facts()
  const interrupts = facts.pauses.map(toInterrupt)
  const values = toValues(facts, program.plan.kind === 'flow')
  return interrupts.length > 0 ? { ...values, __interrupt__: interrupts } : values
}
