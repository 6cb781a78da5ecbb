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

  it('are handed to one reader', () => {
    const expected = new LiveHub().expect(LOG)
    expect(expected.take()).toBeDefined()
    expect(expected.take()).toBeUndefined()
  })
})
