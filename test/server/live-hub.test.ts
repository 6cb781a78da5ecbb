import { LiveHub } from '#src/server/live/live-hub.js'
import type { RunEvent } from 'holdfast'
import { describe, expect, it } from 'vitest'

const LOG = 'main of thread "a"'

function event(fields: object): RunEvent {
  return { id: 'main~1~0123456789ab', step: 'tell', ...fields } as unknown as RunEvent
}

describe('the live events of a run', () => {
  it('reach the reader who asked for it, though it was over before that reader came', () => {
    const hub = new LiveHub()
    const expected = hub.expect(LOG)
    hub.publish(LOG, event({ type: 'custom', value: 1 }))
    hub.publish(LOG, event({ type: 'step', status: 'completed' }))
    hub.ended(LOG)
    const reader = expected.take()
    expect(reader?.take(1)).toMatchObject({ event: { type: 'custom', value: 1 } })
    expect(reader?.take(1)).toBeUndefined()
    reader?.close()
    // Whoever comes later without having asked reads the record.
    const later = hub.subscribe(LOG, undefined)
    expect(later.take(1)).toBeUndefined()
    later.close()
  })

  it('are kept for who comes late, of what tells the whole only the newest', () => {
    const hub = new LiveHub()
    const tell = (mode: string, data: number) =>
      hub.publish(LOG, event({ type: 'custom', value: { langgraph: { mode, event: mode, data } } }))
    for (let i = 0; i < 3; i++) {
      tell('values', i)
      tell('updates', i)
    }
    const late = hub.subscribe(LOG, undefined)
    const heard: unknown[] = []
    for (let next = late.take(1); next; next = late.take(1)) heard.push((next.event as { value: unknown }).value)
    expect(heard.map((value) => (value as { langgraph: object }).langgraph)).toMatchObject([
      { mode: 'updates', data: 0 },
      { mode: 'updates', data: 1 },
      { mode: 'values', data: 2 },
      { mode: 'updates', data: 2 },
    ])
    late.close()
  })

  it('are handed to one reader', () => {
    const expected = new LiveHub().expect(LOG)
    expect(expected.take()).toBeDefined()
    expect(expected.take()).toBeUndefined()
  })
})
