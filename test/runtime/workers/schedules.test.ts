import { flow, Holdfast, type WorkerEvent } from 'holdfast'
import type { Driver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { faultyDriver, type VirtualClock, virtualClock } from 'holdfast/testing'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { dueUntil, nextAfter, readTimetable } from '#src/runtime/schedule/timetable.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { until } from '../../support/until.js'

const HOUR = 60 * 60 * 1000
const START = Date.UTC(2026, 2, 28, 12)

const at = (text: string): number => Date.parse(text)
const iso = (time = 0): string => new Date(time).toISOString()

const report = flow<string, string>({ name: 'report', version: '1.0.0' }, async (ctx, region) =>
  ctx.step('write', () => `${region} by ${ctx.thread}`),
)

function open(driver: Driver, clock: VirtualClock): Holdfast {
  return new Holdfast(new LogStore(driver, { clock }))
}

/** Lets a worker work, and time pass, until it has told what is waited for, and stops it. */
async function workUntil(
  hf: Holdfast,
  clock: VirtualClock,
  programs: Parameters<Holdfast['worker']>[0]['programs'],
  ...types: readonly WorkerEvent['type'][]
): Promise<WorkerEvent | undefined> {
  const events: WorkerEvent[] = []
  const worker = hf.worker({ programs, handleSignals: false, onEvent: (event) => events.push(event) })
  const found = () => events.find(({ type }) => types.includes(type))
  let isOver = false
  // A worker whose store is closed under it stops by itself.
  const over = worker.done().finally(() => {
    isOver = true
  })
  await until(async () => {
    // Whoever found the store gone tries again after a while.
    await clock.advance(10)
    return isOver || found() !== undefined
  }, 1)
  void worker.stop()
  await until(async () => {
    await clock.advance(10)
    return isOver
  }, 1)
  await over
  return found()
}

describe('a timetable', () => {
  it('goes by the clock on the wall of its time zone, over the days on which that is changed', () => {
    const nightly = readTimetable({ cron: '30 2 * * *', timeZone: 'Europe/Berlin' }, START)
    const times: string[] = []
    for (let time: number | undefined = START; times.length < 3; times.push(iso(time))) {
      time = nextAfter(nightly, time as number)
    }
    // There is no half past two on the 29th: it is made up for at three.
    expect(times).toEqual(['2026-03-29T01:00:00.000Z', '2026-03-30T00:30:00.000Z', '2026-03-31T00:30:00.000Z'])
    const back = nextAfter(nightly, at('2026-10-24T12:00:00Z'))
    expect(iso(back)).toBe('2026-10-25T00:30:00.000Z')
    expect(iso(nextAfter(nightly, back as number))).toBe('2026-10-26T01:30:00.000Z')
  })

  it('goes by UTC where no zone is named, and counts intervals from its beginning', () => {
    expect(iso(nextAfter(readTimetable({ cron: '0 2 * * *' }, START), START))).toBe('2026-03-29T02:00:00.000Z')
    const hourly = readTimetable({ everyMs: HOUR }, START + 5)
    expect(nextAfter(hourly, START)).toBe(START + 5 + HOUR)
    expect(nextAfter(hourly, START + 5 + HOUR)).toBe(START + 5 + 2 * HOUR)
  })

  it.each([{ cron: '* * * * * *' }, { everyMs: 1000 }])('leaps over years in which nobody looked: %o', (given) => {
    const timetable = readTimetable(given, START)
    const now = START + 3 * 365 * 24 * HOUR
    const due = dueUntil(timetable, START + 1000, now)
    expect(due).toHaveLength(1000)
    expect(due.at(-1)).toBe(now)
    expect(due.at(0)).toBe(now - 999_000)
  })

  it.each([
    [{}, /cron is missing, and so is everyMs/],
    [{ cron: '0 2 * * *', everyMs: 5000 }, /cron is given together with everyMs/],
    [{ cron: 'at two' }, /not a cron expression: "at two"/],
    [{ cron: '0 0 30 2 *' }, /never comes/],
    [{ cron: 7 }, /must be text, not 7/],
    [{ cron: '0 2 * * *', timeZone: 'Mars/Olympus' }, /not a time zone: "Mars\/Olympus"/],
    [{ everyMs: 10 }, /at least 1000, not 10/],
    [{ everyMs: 5000, timeZone: 'UTC' }, /no meaning with everyMs/],
  ])('refuses %o', (given, problem) => {
    expect(() => readTimetable(given, START)).toThrow(problem)
  })
})

describe('a schedule', () => {
  it('starts its program at its times, each time on a thread of its own', async () => {
    const clock = virtualClock({ now: START })
    const hf = open(await openMemory({ clock }), clock)
    await hf.schedules.set('nightly', report, { cron: '0 2 * * *', input: 'eu' })
    for (const day of ['2026-03-29', '2026-03-30']) {
      await clock.advance(at(`${day}T02:00:00Z`) - clock.now())
      await workUntil(hf, clock, [report], 'ended')
      const thread = `nightly ${day}T02:00:00.000Z`
      const { output } = (await hf.thread(report, thread).waitFor()) as { readonly output?: unknown }
      expect(output).toBe(`eu by ${thread}`)
      expect((await hf.schedules.get('nightly'))?.last).toMatchObject({ thread, at: new Date(`${day}T02:00:00Z`) })
    }
    expect(await hf.schedules.get('nightly')).toMatchObject({ started: 2, skipped: 0 })
    await hf.close()
  })

  it.each([
    ['last', 1, 4],
    ['skip', 0, 5],
    ['all', 5, 0],
  ] as const)('that nobody was there for: %s starts %i of five', async (missed, started, skipped) => {
    const clock = virtualClock({ now: START })
    const hf = open(await openMemory({ clock }), clock)
    await hf.schedules.set('hourly', report, { everyMs: HOUR, input: 'eu', missed, thread: 'reports' })
    await clock.advance(5.5 * HOUR)
    const event = await workUntil(hf, clock, [report], 'scheduled')
    expect(event).toMatchObject({ type: 'scheduled', schedule: 'hourly', skipped })
    const next = new Date(START + 6 * HOUR)
    expect(await hf.schedules.get('hourly')).toMatchObject({ started, skipped, next })
    await hf.close()
  })

  it('puts occurrences on one thread, one after the other, if it names one', async () => {
    const clock = virtualClock({ now: START })
    const hf = open(await openMemory({ clock }), clock)
    const ran: unknown[] = []
    const counted = flow<string, string>({ name: 'counted', version: '1.0.0' }, async (ctx, region) => {
      ran.push(ctx.thread)
      return region
    })
    await hf.schedules.set('hourly', counted, { everyMs: HOUR, input: 'eu', missed: 'all', thread: 'reports' })
    await clock.advance(3 * HOUR)
    const worker = hf.worker({ programs: [counted], handleSignals: false })
    await until(() => ran.length === 3)
    await worker.stop()
    expect(ran).toEqual(['reports', 'reports', 'reports'])
    await hf.close()
  })

  it('starts nothing while it is paused, and makes up for nothing when it goes on', async () => {
    const clock = virtualClock({ now: START })
    const hf = open(await openMemory({ clock }), clock)
    await hf.schedules.set('hourly', report, { everyMs: HOUR, input: 'eu' })
    await hf.schedules.pause('hourly')
    await clock.advance(10 * HOUR)
    expect((await hf.threads({ due: true })).threads).toEqual([])
    expect(await hf.schedules.resume('hourly')).toMatchObject({ started: 0, next: new Date(START + 11 * HOUR) })
    await hf.schedules.pause('hourly')
    await hf.schedules.trigger('hourly')
    await workUntil(hf, clock, [report], 'scheduled')
    expect(await hf.schedules.get('hourly')).toMatchObject({ paused: true, started: 1 })
    await hf.close()
  })

  it('says why an occurrence could not be started, and goes on with the next', async () => {
    const clock = virtualClock({ now: START })
    const hf = open(await openMemory({ clock }), clock)
    await hf.schedules.set('hourly', report, { everyMs: HOUR, input: 'eu' })
    const stricter = flow({ name: 'report', version: '1.1.0', input: z.number() }, async (_, input) => input)
    await clock.advance(HOUR)
    const event = await workUntil(hf, clock, [stricter], 'scheduled')
    expect(event).toMatchObject({ threads: [], error: expect.stringMatching(/number/) })
    expect(await hf.schedules.get('hourly')).toMatchObject({
      started: 0,
      next: new Date(START + 2 * HOUR),
      last: { error: expect.stringMatching(/number/) },
    })
    await hf.close()
  })

  it('is left as it is when it is set again as it was, whatever its input holds, and changed when that differs', async () => {
    const clock = virtualClock({ now: START })
    const hf = open(await openMemory({ clock }), clock)
    const any = flow<unknown, null>({ name: 'any', version: '1.0.0' }, async () => null)
    const entries = async () => (await hf.threads({ thread: { schedule: 's' } })).threads[0]?.entries
    const input = { cents: 10n, at: new Date(0), bytes: new Uint8Array([1]), none: null }
    for (let i = 0; i < 3; i++) await hf.schedules.set('s', any, { everyMs: HOUR, input, thread: { user: 'ada' } })
    expect(await entries()).toBe(1)
    await hf.schedules.set('s', any, { everyMs: HOUR, input: { ...input, at: new Date(0).toISOString() } })
    expect(await entries()).toBe(2)
    const { thread, input: kept } = (await hf.schedules.get('s')) ?? {}
    expect([thread, kept]).toEqual([undefined, { ...input, at: new Date(0).toISOString() }])
    await hf.close()
  })

  it('starts as many as were asked for, also within one millisecond', async () => {
    const clock = virtualClock({ now: START })
    const hf = open(await openMemory({ clock }), clock)
    await hf.schedules.set('hourly', report, { everyMs: HOUR, input: 'eu' })
    for (let i = 0; i < 3; i++) await hf.schedules.trigger('hourly')
    const worker = hf.worker({ programs: [report], handleSignals: false })
    await until(async () => {
      await clock.advance(10)
      return (await hf.threads({ status: 'completed' })).threads.length === 3
    }, 1)
    await worker.stop()
    expect(await hf.schedules.get('hourly')).toMatchObject({ started: 3, next: new Date(START + HOUR) })
    await hf.close()
  })

  it('is no thread that a program runs, and takes over none', async () => {
    const clock = virtualClock({ now: START })
    const hf = open(await openMemory({ clock }), clock)
    await hf.schedules.set('s', report, { everyMs: HOUR, input: 'eu' })
    expect(await hf.thread(report, { schedule: 's' }).run({ input: 'x' })).toMatchObject({ status: 'incompatible' })
    await expect(hf.thread(report, { schedule: 's' }).enqueue('x')).rejects.toMatchObject({ code: 'incompatible' })
    await clock.advance(HOUR)
    expect(await workUntil(hf, clock, [report], 'scheduled')).toMatchObject({ threads: [expect.any(String)] })
    await expect(
      hf.schedules.set('s', report, { everyMs: HOUR, input: 'eu', thread: { schedule: 's' } }),
    ).rejects.toMatchObject({ code: 'invalid-option', data: { field: 'thread' } })

    await hf.thread(report, { schedule: 'mine' }).run({ input: 'x' })
    expect(await hf.schedules.delete('mine')).toBe(false)
    await expect(hf.schedules.set('mine', report, { everyMs: HOUR, input: 'eu' })).rejects.toMatchObject({
      code: 'conflict',
    })
    expect(await hf.thread(report, { schedule: 'mine' }).waitFor()).toMatchObject({ status: 'completed' })
    await hf.close()
  })

  it('is left to a version that continues what set it', async () => {
    const clock = virtualClock({ now: START })
    const hf = open(await openMemory({ clock }), clock)
    const [older, newer] = ['1.0.0', '2.0.0'].map((version) =>
      flow<string, string>({ name: 'report', version }, async (_, region) => `${region} by ${version}`),
    ) as [typeof report, typeof report]
    await hf.schedules.set('hourly', newer, { everyMs: HOUR, input: 'eu', thread: 'reports' })
    await clock.advance(HOUR)
    expect(await workUntil(hf, clock, [older], 'skipped', 'scheduled')).toMatchObject({ type: 'skipped' })
    await workUntil(hf, clock, [newer], 'ended')
    expect(await hf.thread(newer, 'reports').waitFor()).toMatchObject({ output: 'eu by 2.0.0' })
    expect(await hf.schedules.get('hourly')).toMatchObject({ started: 1 })
    await hf.close()
  })

  it('does not start what was left on the thread that it named before once more on another', async () => {
    const clock = virtualClock({ now: START })
    const hf = open(await openMemory({ clock }), clock)
    await hf.schedules.set('hourly', report, { everyMs: HOUR, input: 'eu', thread: 'before' })
    await clock.advance(HOUR)
    // A worker that died between the two things that it does.
    await hf.thread(report, 'before').enqueue('eu', { key: `hourly ${iso(START + HOUR)}` })
    await hf.schedules.set('hourly', report, { everyMs: HOUR, input: 'eu', thread: 'after' })
    await workUntil(hf, clock, [report], 'scheduled')
    const names = async () =>
      (await hf.threads({ metadata: { 'holdfast.program': 'report' } })).threads.map(({ thread }) => thread)
    expect(await names()).toEqual(['before'])
    await clock.advance(HOUR)
    await workUntil(hf, clock, [report], 'scheduled')
    expect((await names()).sort()).toEqual(['after', 'before'])
    await hf.close()
  })

  it('is refused with input that its program does not take, and changes nothing', async () => {
    const clock = virtualClock()
    const hf = open(await openMemory({ clock }), clock)
    const strict = flow({ name: 'strict', version: '1.0.0', input: z.number() }, async (_, input) => input)
    await expect(hf.schedules.set('s', strict, { everyMs: HOUR, input: 'x' as never })).rejects.toThrow(/number/)
    await expect(hf.schedules.set('s', strict, { every: HOUR } as never)).rejects.toThrow(/Did you mean everyMs/)
    await expect(hf.schedules.set('', strict, { everyMs: HOUR, input: 1 })).rejects.toThrow(/name of a schedule/)
    expect((await hf.schedules.list()).schedules).toEqual([])
    await hf.close()
  })

  it.each(['before', 'after'] as const)('starts each occurrence once, crashed %s any call', async (moment) => {
    for (let nth = 1; ; nth++) {
      const clock = virtualClock({ now: START })
      const driver = await openMemory({ clock })
      const hf = open(driver, clock)
      await hf.schedules.set('hourly', report, { everyMs: HOUR, input: 'eu', missed: 'all' })
      await clock.advance(2 * HOUR)
      const faulty = faultyDriver(driver)
      faulty.crashAt(nth, moment)
      const dying = open(faulty, clock)
      await workUntil(dying, clock, [report], 'scheduled', 'error')
      const crashed = faulty.crashed
      // Its reservations and leases end.
      await clock.advance(HOUR / 2)
      const worker = hf.worker({ programs: [report], handleSignals: false })
      const threads = [1, 2].map((n) => `hourly ${iso(START + n * HOUR)}`)
      const completed = { status: 'completed', metadata: { 'holdfast.program': 'report' } }
      await until(async () => {
        await clock.advance(1000)
        const { started } = (await hf.schedules.get('hourly')) ?? {}
        return started === 2 && (await hf.threads(completed)).threads.length === 2
      }, 1)
      await worker.stop()
      expect((await hf.threads(completed)).threads.map(({ thread }) => thread).toSorted()).toEqual(threads)
      for (const thread of threads) expect((await hf.log(thread)).fold.state).toMatchObject({ run: { number: 1 } })
      await hf.close()
      if (!crashed) return
    }
  })
})
