import { flow, Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { gate } from '../../support/gate.js'

/** A store that reserves nothing, and how often somebody looked for what is due in it. */
async function unreserved() {
  const clock = virtualClock()
  const driver = await openDriver('memory:', { clock })
  const looks = { count: 0 }
  const counted = new Proxy(driver, {
    get(target, name) {
      if (name === 'takeDue') return undefined
      if (name !== 'heads') return Reflect.get(target, name, target)
      return (...args: Parameters<typeof target.heads>) => {
        looks.count++
        return target.heads(...args)
      }
    },
  })
  return { clock, looks, hf: new Holdfast(new LogStore(counted, { clock })) }
}

describe('a worker with more due than places, where nothing can be reserved', () => {
  it('runs one after another, without waiting for its next look', async () => {
    const { hf } = await unreserved()
    await using store = hf
    const quick = flow({ name: 'quick', version: '1.0.0' }, async () => 'done')
    const threads = Array.from({ length: 12 }, (_, i) => `thread-${i}`)
    for (const thread of threads) await store.thread(quick, thread).enqueue(null)
    let ended = 0
    const all = gate()
    // The clock stands still: no look comes by itself.
    await using _worker = store.worker({
      programs: [quick],
      concurrency: 2,
      handleSignals: false,
      onEvent: (event) => {
        if (event.type === 'ended' && ++ended === threads.length) all.open()
      },
    })
    await all.passed
    expect(ended).toBe(threads.length)
  })

  it('does not look for more while all places are taken', async () => {
    const { hf, clock, looks } = await unreserved()
    await using store = hf
    const [begun, over] = [gate(), gate()]
    let runs = 0
    // The first ends at once, so that the worker would like to know what comes next.
    const held = flow({ name: 'held', version: '1.0.0' }, async () => {
      if (++runs === 1) return
      begun.open()
      await over.passed
    })
    for (let i = 0; i < 150; i++) await store.thread(held, `thread-${i}`).enqueue(null)
    await using worker = store.worker({ programs: [held], concurrency: 1, pollMs: 10, handleSignals: false })
    await begun.passed
    const before = looks.count
    for (let i = 0; i < 20; i++) await clock.advance(10)
    const after = looks.count
    const stopped = worker.stop()
    over.open()
    await stopped
    expect(after).toBe(before)
  })
})
