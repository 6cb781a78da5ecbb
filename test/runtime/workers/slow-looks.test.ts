import { flow, Holdfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { gate } from '../../support/gate.js'

/** Much longer than what a look finds is reserved for the worker. */
const SLOW_MS = 5000

const quick = flow({ name: 'quick', version: '1.0.0' }, async () => 'done')

describe('a worker whose looks take longer than a reservation', () => {
  it.each(['reserved', 'not reserved'])('runs what it finds, where that is %s', async (how) => {
    const clock = virtualClock()
    const driver = await openDriver('memory:', { clock })
    const slowly =
      <Args extends unknown[], Result>(look: (...args: Args) => Promise<Result>) =>
      async (...args: Args) => {
        const found = await look(...args)
        await clock.advance(SLOW_MS)
        return found
      }
    const slow = new Proxy(driver, {
      get: (target, name) => {
        if (name === 'takeDue') return how === 'reserved' ? slowly(target.takeDue!.bind(target)) : undefined
        if (name === 'heads') return slowly(target.heads.bind(target))
        return Reflect.get(target, name, target)
      },
    })
    await using hf = new Holdfast(new LogStore(slow, { clock }))
    for (const thread of ['a', 'b', 'c']) await hf.thread(quick, thread).enqueue(null)
    const ended: string[] = []
    const all = gate()
    await using _worker = hf.worker({
      programs: [quick],
      handleSignals: false,
      onEvent: (event) => {
        if (event.type === 'ended' && ended.push(event.outcome.status) === 3) all.open()
      },
    })
    await all.passed
    expect(ended).toEqual(['completed', 'completed', 'completed'])
  })
})
