import type { RunEvent } from '../../index.js'

const LIVE = ['retry', 'custom', 'token', 'tool-call', 'tool-result', 'superseded'] as const

/** What only those see who listen while it happens. */
export type LiveEvent = Extract<RunEvent, { readonly type: (typeof LIVE)[number] }>

export function isLive(event: RunEvent): event is LiveEvent {
  return (LIVE as readonly string[]).includes(event.type)
}

/** The number of the newest entry of which all events were seen up to the one of this id; -1 for none. */
export function seqOf(id: string | undefined): number {
  const [, seq, place] = /~(\d{1,15})~[0-9a-f]{12}(#\d+)?$/.exec(id ?? '') ?? []
  return seq === undefined ? -1 : Number(seq) - (place === undefined ? 0 : 1)
}

/** Whether this is an id of an event or a checkpoint, as far as its form goes. */
export function isEventId(id: string): boolean {
  return /^.+~\d{1,15}~[0-9a-f]{12}(#\d+)?$/.test(id)
}
