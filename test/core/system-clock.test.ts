import assert from 'node:assert/strict'
import { describe, it } from 'vitest'
import { systemClock } from '#src/core/time/system-clock.js'

describe('the system clock', () => {
  it('rejects a sleep with the reason of the signal, not with an error of its own', async () => {
    const reason = new Error('another worker took over')
    const controller = new AbortController()
    const sleep = systemClock().sleep(60_000, controller.signal)
    controller.abort(reason)
    await assert.rejects(sleep, (error) => error === reason)
    await assert.rejects(systemClock().sleep(60_000, AbortSignal.abort(reason)), (error) => error === reason)
  })
})
