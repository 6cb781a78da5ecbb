import { virtualClock } from '#src/testing/virtual-clock.js'
import { describe, expect, it } from 'vitest'

describe('virtualClock', () => {
  it('stands still until it is advanced, then moves both times alike', async () => {
    const clock = virtualClock({ now: 5000, bootId: 'boot' })
    const start = clock.monotonic()
    expect(clock.now()).toBe(5000)
    expect(clock.bootId).toBe('boot')
    await clock.advance(250)
    expect(clock.now()).toBe(5250)
    expect(clock.monotonic() - start).toBe(250)
  })

  it('wakes sleepers in the order of their times, each at its own time', async () => {
    const clock = virtualClock({ now: 0 })
    const woken: [string, number][] = []
    const sleep = async (name: string, ms: number) => {
      await clock.sleep(ms)
      woken.push([name, clock.now()])
    }
    const all = [sleep('late', 30), sleep('early', 10), sleep('also early', 10), sleep('never', 1000)]
    await clock.advance(100)
    expect(woken).toEqual([
      ['early', 10],
      ['also early', 10],
      ['late', 30],
    ])
    expect(clock.now()).toBe(100)
    await clock.advance(900)
    await Promise.all(all)
    expect(woken).toHaveLength(4)
  })

  it('wakes a sleeper again that goes back to sleep within the time', async () => {
    const clock = virtualClock({ now: 0 })
    const ticks: number[] = []
    const loop = (async () => {
      while (ticks.length < 5) {
        await clock.sleep(10)
        ticks.push(clock.now())
      }
    })()
    await clock.advance(35)
    expect(ticks).toEqual([10, 20, 30])
    await clock.advance(20)
    await loop
    expect(ticks).toEqual([10, 20, 30, 40, 50])
  })

  it('rejects a sleeper whose signal aborts, before or during its sleep, and forgets it', async () => {
    const clock = virtualClock()
    await expect(clock.sleep(10, AbortSignal.abort(new Error('before')))).rejects.toThrow('before')
    const controller = new AbortController()
    const sleeping = clock.sleep(10, controller.signal)
    controller.abort(new Error('during'))
    await expect(sleeping).rejects.toThrow('during')
    await clock.advance(20)
  })

  it('moves the wall clock alone when it is set', async () => {
    const clock = virtualClock({ now: 1000 })
    const start = clock.monotonic()
    clock.setNow(50)
    expect(clock.now()).toBe(50)
    expect(clock.monotonic()).toBe(start)
    await clock.advance(5)
    expect(clock.now()).toBe(55)
    await expect(clock.advance(-1)).rejects.toThrow(RangeError)
  })
})
