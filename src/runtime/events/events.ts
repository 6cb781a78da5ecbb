import { cloneValue } from '../../codec/clone.js'
import type { Redactor } from '../../codec/secret/redactor.js'
import type { Value } from '../../codec/value.js'
import { applyOp, type Op, type Path, type State, valueAt } from '../../log/entry/ops.js'
import { resultIn } from '../engine/closings.js'
import type { RecordedError } from '../errors.js'

/** What one model call used, and what it cost (`null` if no price is known). */
export type UsageOfCall = {
  readonly input: number
  readonly cachedInput: number
  readonly cacheWrite: number
  readonly output: number
  readonly reasoning: number
  readonly total: number
  readonly basis: 'provider' | 'estimate' | 'mixed'
  readonly cost: number | null
  readonly model: { readonly provider: string; readonly id: string; readonly actual?: string | undefined }
  readonly attempts: number
}

/** What a record says about itself. Kept in the entry, so that later readers see it too. */
export type RecordedEvent =
  | {
      readonly type: 'run'
      readonly run: string
      /** 'interrupted': its worker could not continue because the store failed. The next process to come resumes it. */
      readonly status:
        | 'started'
        | 'resumed'
        | 'interrupted'
        | 'completed'
        /** A limit of the program ended it: `limit` says which, `reason` explains it in words. */
        | 'limited'
        | 'paused'
        | 'failed'
        | 'cancelled'
        | 'incompatible'
      readonly error?: RecordedError
      readonly limit?: string
      readonly reason?: string
    }
  | {
      readonly type: 'step'
      readonly step: string
      readonly status: 'started' | 'completed' | 'failed' | 'unknown'
      readonly attempt?: number
      readonly ms?: number
      readonly error?: RecordedError
    }
  /** Nothing picks up the thread by itself anymore. */
  | { readonly type: 'parked'; readonly error: RecordedError }
  /**
   * A result of a run that was ended could not be brought into the state. It is kept until a program comes that can.
   */
  | { readonly type: 'kept'; readonly step: string; readonly key?: string; readonly error: RecordedError }
  | {
      readonly type: 'pause'
      readonly pause: string
      readonly kind: string
      readonly question: Value
      /** Why its previous answer was not accepted: it is open again. */
      readonly refused?: string
    }
  | {
      readonly type: 'answer'
      readonly pause: string
      /** What was answered. Not kept in the event, which would store it twice: readers get it from the record. */
      readonly value?: Value
      readonly by?: string
      readonly expired?: true
    }
  | { readonly type: 'defer'; readonly pause: string; readonly until: number; readonly by?: string }
  | { readonly type: 'usage'; readonly step: string; readonly usage: UsageOfCall }

/**
 * As it is kept: what the reply that is recorded with it says is not stored twice, readers get it from there. A step
 * without a status was completed, by its first attempt.
 */
export type NotedEvent =
  | RecordedEvent
  | { readonly type: 'step'; readonly step: string; readonly status?: undefined; readonly ms: number }
  | {
      readonly type: 'usage'
      readonly step: string
      readonly usage: Pick<UsageOfCall, 'cost' | 'attempts'> & { readonly model?: undefined }
    }

/** Events that only those see who listen while they happen. */
export type LiveEvent =
  | {
      readonly type: 'retry'
      readonly step: string
      readonly attempt: number
      readonly inMs: number
      readonly error: RecordedError
    }
  | { readonly type: 'custom'; readonly step: string; readonly value: unknown }
  | {
      readonly type: 'token'
      readonly step: string
      readonly attempt: number
      /** 'text', 'reasoning' or 'tool-input'. */
      readonly kind: string
      readonly text: string
      /** For 'tool-input': which call it belongs to. */
      readonly callId?: string
      /** For the first piece of 'tool-input'. */
      readonly tool?: string
      /** The id of the message that it will be part of. */
      readonly message?: string
    }
  /** The model asks for a tool to be run; already recorded. `message` is the id of the message that holds the call. */
  | {
      readonly type: 'tool-call'
      readonly step: string
      readonly message: string
      readonly callId: string
      readonly tool: string
      readonly input: Value
    }
  /** The result of a call; already recorded. `message` is the id of the message that holds the result. */
  | {
      readonly type: 'tool-result'
      readonly step: string
      readonly message: string
      readonly callId: string
      readonly tool: string
      readonly output: Value
    }
  | { readonly type: 'superseded'; readonly step: string; readonly attempt: number }

/** What an entry adds: which parts of the program's state it changed, and the checkpoint one can go back to. */
export type DerivedEvent =
  /** What changed in the program's state, as operations with paths inside it. */
  | { readonly type: 'state'; readonly ops: readonly Op[] }
  | { readonly type: 'checkpoint'; readonly checkpoint: string; readonly seq: number }

/**
 * An event with the id to reconnect after. The last event of an entry has the id of its checkpoint, earlier ones also
 * say which of the entry they are, and live events carry the id of the entry before them.
 */
export type RunEvent = (RecordedEvent | LiveEvent | DerivedEvent) & { readonly id: string }

/** All events of one entry, in order. The last names the checkpoint. */
export function entryEvents(
  entry: { readonly id: string; readonly seq: number },
  body: { readonly ops?: readonly Op[] | undefined; readonly data?: unknown },
  before: State,
): readonly RunEvent[] {
  const ops = stateOps(before, body.ops ?? [])
  const events: (RecordedEvent | DerivedEvent)[] = [...recordedEvents(body)]
  if (ops.length > 0) events.push({ type: 'state', ops })
  events.push({ type: 'checkpoint', checkpoint: entry.id, seq: entry.seq })
  const last = events.length - 1
  // Each separately: a reader that got the first event of an entry and then lost the connection gets the others.
  return events.map((event, i) => ({ ...event, id: i === last || entry.id === '' ? entry.id : `${entry.id}#${i}` }))
}

/**
 * What an entry says about itself, as copies. What was answered is taken from the answers that the entry records, and
 * what a call used from its reply.
 */
export function recordedEvents(body: {
  readonly ops?: readonly Op[] | undefined
  readonly data?: unknown
}): readonly RecordedEvent[] {
  const { events = [] } = (body.data ?? {}) as { readonly events?: readonly NotedEvent[] }
  return events.map((event) => cloneValue(completeEvent(event, body.ops ?? []) as Value) as RecordedEvent)
}

function completeEvent(event: NotedEvent, ops: readonly Op[]): unknown {
  if (event.type === 'answer') {
    const value = answeredIn(ops, event.pause)
    return value === undefined ? event : { ...event, value }
  }
  if (event.type === 'step' && event.status === undefined) {
    const { step, ms } = event
    return { type: 'step', step, status: 'completed', attempt: 1, ms }
  }
  if (event.type !== 'usage' || event.usage.model !== undefined) return event
  const { cost, attempts } = event.usage
  const messages = (resultIn(ops, event.step)?.['messages'] ?? []) as unknown as readonly Partial<UsageOfReply>[]
  const { usage, model } = messages.find((message) => message.usage !== undefined) ?? UNKNOWN_USAGE
  return { ...event, usage: { ...usage, cost, model: model ?? UNKNOWN_USAGE.model, attempts } }
}

/** What a message says about the call that made it. */
interface UsageOfReply {
  readonly usage: Omit<UsageOfCall, 'cost' | 'model' | 'attempts'>
  readonly model: UsageOfCall['model']
}

const UNKNOWN_USAGE: UsageOfReply = {
  usage: { input: 0, cachedInput: 0, cacheWrite: 0, output: 0, reasoning: 0, total: 0, basis: 'estimate' },
  model: { provider: '', id: '' },
}

function answeredIn(ops: readonly Op[], pause: string): Value | undefined {
  for (const [kind, path, record] of ops) {
    if (kind !== 'set' || path[0] !== 'pauses' || path[1] !== pause || path[2] !== 'answer') continue
    return (record as { readonly value?: Value }).value
  }
  return undefined
}

/** The entry of an event's id, and how many of its events came up to that one; undefined for all of them. */
export function readEventId(id: string): { readonly checkpoint: string; readonly seen: number | undefined } {
  const [, checkpoint = id, place] = /^(.*)#(\d+)$/.exec(id) ?? []
  return { checkpoint, seen: place === undefined ? undefined : Number(place) + 1 }
}

/** The operations on the program's state, with values in place of references to records, which readers do not have. */
function stateOps(before: State, ops: readonly Op[]): readonly Op[] {
  const found: Op[] = []
  let state = before
  let applied = 0
  for (const [i, op] of ops.entries()) {
    const [kind, path] = op
    if (path[0] !== 'state') continue
    // Only a reference needs what came before it: applying all of them would copy every list that grows.
    if (kind === 'copy' || kind === 'concat') for (; applied < i; applied++) state = applyOp(state, ops[applied] as Op)
    // The listener's own copy: the run continues from what the log has.
    found.push(cloneValue(withinState(state, op) as unknown as Value) as unknown as Op)
  }
  return found
}

function withinState(state: State, op: Op): Op {
  const path = op[1].slice(1) as unknown as Path
  switch (op[0]) {
    case 'copy':
      return ['set', path, valueAt(state, op[2]) as Value]
    case 'concat':
      return ['push', path, (valueAt(state, op[2]) ?? []) as readonly Value[]]
    default:
      return [op[0], path, ...op.slice(2)] as unknown as Op
  }
}

/**
 * A live event without what must not be kept. Pieces of text are checked one by one: a secret may be split across two.
 */
export function redactEvent(redactor: Redactor | undefined, event: LiveEvent): LiveEvent {
  if (redactor === undefined) return event
  switch (event.type) {
    case 'custom':
      return isPlain(event.value) ? { ...event, value: redactor.value(event.value) } : event
    case 'token':
      return { ...event, text: redactor.text(event.text) }
    case 'tool-call':
      return { ...event, input: redactor.value(event.input) }
    case 'tool-result':
      return { ...event, output: redactor.value(event.output) }
    case 'retry':
      return { ...event, error: { ...event.error, message: redactor.text(event.error.message) } }
    default:
      return event
  }
}

/** What a program emits is handed on as it is; only plain data can be looked into. */
function isPlain(value: unknown): value is Value {
  if (typeof value !== 'object' || value === null) return value !== undefined && typeof value !== 'function'
  const prototype: unknown = Object.getPrototypeOf(value)
  return Array.isArray(value) || prototype === Object.prototype || prototype === null
}
