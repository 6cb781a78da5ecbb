import type { Value } from '../codec/value.js'
import type { Op } from '../log/ops.js'
import type { RecordedError } from './errors.js'

/** What a record says of itself. Kept in the entry, so that readers who come later see it too. */
export type RecordedEvent =
  | {
      readonly type: 'run'
      readonly run: string
      readonly status: 'started' | 'resumed' | 'completed' | 'paused' | 'failed' | 'cancelled' | 'incompatible'
      readonly error?: RecordedError
    }
  | {
      readonly type: 'step'
      readonly step: string
      readonly status: 'started' | 'completed' | 'failed' | 'unknown'
      readonly attempt?: number
      readonly ms?: number
      readonly error?: RecordedError
    }
  | { readonly type: 'pause'; readonly id: string; readonly kind: string; readonly question: Value }
  | { readonly type: 'answer'; readonly id: string; readonly by?: string; readonly expired?: true }
  | { readonly type: 'usage'; readonly step: string; readonly usage: Value }

/** What only those see who listen while it happens. */
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
    }
  | { readonly type: 'superseded'; readonly step: string; readonly attempt: number }

/** What an entry adds: which parts of the program's state it changed, and where one can go back to. */
export type DerivedEvent =
  | { readonly type: 'state'; readonly ops: readonly Op[] }
  | { readonly type: 'checkpoint'; readonly checkpoint: string; readonly seq: number }

/** An event with the id to reconnect after. Live events carry the id of the entry before them. */
export type RunEvent = (RecordedEvent | LiveEvent | DerivedEvent) & { readonly id: string }

/** All events of one entry, in order. The last names the checkpoint. */
export function entryEvents(
  entry: { readonly id: string; readonly seq: number },
  body: { readonly ops?: readonly Op[] | undefined; readonly data?: unknown },
): readonly RunEvent[] {
  const recorded = (body.data as { readonly events?: readonly RecordedEvent[] } | undefined)?.events ?? []
  const ops = (body.ops ?? []).filter(([, path]) => path[0] === 'state')
  const events: (RecordedEvent | DerivedEvent)[] = [...recorded]
  if (ops.length > 0) events.push({ type: 'state', ops })
  events.push({ type: 'checkpoint', checkpoint: entry.id, seq: entry.seq })
  return events.map((event) => ({ ...event, id: entry.id }))
}
