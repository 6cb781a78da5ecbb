import { UnavailableError } from 'holdfast/errors'
import { virtualClock } from 'holdfast/testing'
import { StoreClock } from '#src/log/store-clock.js'
import { expect, it } from 'vitest'

const HOUR = 3_600_000

/** A store with the right time, and a machine whose clock is wrong. */
function scene(wrongByMs: number) {
  const store = virtualClock()
  const machine = virtualClock({ now: store.now() + wrongByMs })
  let looks = 0
  let answers = true
  const clock = new StoreClock(
    { ...machine, canBeWrong: true },
    {
      now: async () => {
        looks++
        if (!answers) throw new UnavailableError('Nobody answers.', { written: 'nothing' })
        return store.now()
      },
    },
  )
  const pass = async (ms: number) => {
    await store.advance(ms)
    await machine.advance(ms)
  }
  return {
    store,
    machine,
    clock,
    pass,
    looks: () => looks,
    silence: (silent: boolean) => {
      answers = !silent
    },
  }
}

it.each([HOUR, -HOUR])(
  'tells the time of the store on a machine that is wrong by %i ms, with a look a minute',
  async (ms) => {
    const { store, clock, pass, looks } = scene(ms)
    await clock.sync()
    for (let i = 0; i < 10; i++) {
      await pass(1000)
      expect(clock.sync()).toBeUndefined()
      expect(clock.now()).toBe(store.now())
    }
    expect(looks()).toBe(1)
    await pass(60_000)
    await clock.sync()
    expect(clock.now()).toBe(store.now())
    expect(looks()).toBe(2)
  },
)

it('looks again when the clock of the machine was set, and when the machine slept', async () => {
  const { store, machine, clock, pass, looks } = scene(HOUR)
  await clock.sync()
  machine.setNow(store.now())
  await clock.sync()
  expect(looks()).toBe(2)
  expect(clock.now()).toBe(store.now())

  // Asleep: the monotonic clock stands still, the wall clock is set when the machine wakes.
  await store.advance(HOUR)
  machine.setNow(store.now())
  await clock.sync()
  expect(looks()).toBe(3)
  await pass(1000)
  expect(clock.now()).toBe(store.now())
})

it('looks again when it had to wait for the answer: when the store looked is not known then', async () => {
  const store = virtualClock()
  const waits = [20_000, 0]
  const clock = new StoreClock(
    { ...store, canBeWrong: true },
    {
      now: async () => {
        // Read at once, and heard of late.
        const now = store.now()
        await store.advance(waits.shift() ?? 0)
        return now
      },
    },
  )
  await clock.sync()
  expect(waits).toEqual([])
  expect(clock.now()).toBe(store.now())
})

it('looks again when the machine slept before it heard the answer', async () => {
  const store = virtualClock()
  const machine = virtualClock({ now: store.now() })
  const sleeps = [HOUR, 0]
  const clock = new StoreClock(
    { ...machine, canBeWrong: true },
    {
      now: async () => {
        const now = store.now()
        await store.advance(sleeps.shift() ?? 0)
        machine.setNow(store.now())
        return now
      },
    },
  )
  await clock.sync()
  expect(sleeps).toEqual([])
  expect(clock.now()).toBe(store.now())
})

it('takes it to be as late as it can be until the store has told after a sleep, and not after that', async () => {
  const { store, machine, clock, silence } = scene(HOUR)
  await clock.sync()
  expect(clock.catchUp()).toBeUndefined()
  silence(true)
  machine.setNow(machine.now() + HOUR)
  await clock.catchUp()
  expect(clock.latest()).toBe(store.now() + HOUR)
  // It was only set.
  silence(false)
  // The first may be a look that was on its way while nobody answered.
  await clock.catchUp()
  await clock.catchUp()
  expect(clock.latest()).toBe(store.now())
  machine.setNow(machine.now() - HOUR)
  expect(clock.latest()).toBe(store.now())
})

it('goes on by what it knows while the store does not answer, and looks again', async () => {
  const { store, clock, pass, silence } = scene(-HOUR)
  await clock.sync()
  silence(true)
  await pass(2 * HOUR)
  await clock.sync()
  expect(clock.now()).toBe(store.now())
  silence(false)
  await clock.sync()
  expect(clock.now()).toBe(store.now())
})

it('never looks where the clock that was given is the time, or where the store has none', async () => {
  const given = virtualClock()
  const asked = new StoreClock(given, { now: () => Promise.reject(new Error('asked')) })
  expect(asked.sync()).toBeUndefined()
  expect(asked.now()).toBe(given.now())
  const without = new StoreClock({ ...given, canBeWrong: true }, {})
  expect(without.sync()).toBeUndefined()
  expect(without.now()).toBe(given.now())
})
