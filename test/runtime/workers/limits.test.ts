import { flow, type Holdfast, openHoldfast } from 'holdfast'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'

/** A program whose runs stay open until they are let go, and what is open of it. */
function holding(name = 'job') {
  const open: { readonly input: string; readonly end: () => void }[] = []
  const started: string[] = []
  let told = () => {}
  const program = flow({ name, version: '1.0.0' }, (ctx, input: string) =>
    ctx.step('work', async () => {
      started.push(input)
      await new Promise<void>((resolve) => {
        open.push({ input, end: resolve })
        told()
      })
      return null
    }),
  )
  const until = async (count: number) => {
    while (open.length < count) await new Promise<void>((resolve) => (told = resolve))
  }
  return { program, open, started, until }
}

const item = (program: ReturnType<typeof holding>['program'], thread: string, more = {}) => ({
  program,
  thread,
  input: thread,
  ...more,
})

/** Lets one of those that are open end. */
async function endOne(
  hf: Holdfast,
  { open, program }: ReturnType<typeof holding>,
  tenant = 'default',
): Promise<string> {
  const { input, end } = open.shift() as (typeof open)[number]
  end()
  await hf.tenant(tenant).thread(program, input).waitFor()
  return input
}

describe('the limits of workers', () => {
  it('hold up what another engine brings, which is to bring it again', async () => {
    await using hf = await openHoldfast('memory:')
    const job = holding()
    const limits = [{ program: 'job', per: 'tenant', concurrency: 1 }] as const
    const worker = hf.worker({
      programs: [job.program],
      limits,
      looks: false,
      handleSignals: false,
      leaseMs: 3_600_000,
    })
    const due = (thread: string) => ({ tenant: 'default', thread, branch: 'main' })
    for (const id of ['a', 'b']) await hf.thread(job.program, id).enqueue(id)
    const first = worker.work(due('a'))
    await job.until(1)
    expect(await worker.work(due('b'))).toEqual({ status: 'stopped' })
    expect(job.started).toEqual(['a'])
    await endOne(hf, job)
    expect(await first).toMatchObject({ status: 'ended', outcome: { status: 'completed' } })
    // Its place is free: it runs when it is brought once more, or before.
    const bring = async (): Promise<string> => {
      const { status } = await worker.work(due('b'))
      if (status !== 'stopped') return status
      await new Promise((resolve) => setImmediate(resolve))
      return bring()
    }
    const second = bring()
    await job.until(1)
    await endOne(hf, job)
    expect(['ended', 'held', 'idle']).toContain(await second)
    expect(job.started).toEqual(['a', 'b'])
  })

  it('hold for each tenant over several workers, and others are not kept waiting', async () => {
    await using hf = await openHoldfast('memory:')
    const job = holding()
    const limits = [{ program: 'job', per: 'tenant', concurrency: 2 }] as const
    const workers = [1, 2].map(() => hf.worker({ programs: [job.program], limits, handleSignals: false, graceMs: 0 }))
    await hf.tenant('a').enqueue(Array.from({ length: 10 }, (_, i) => item(job.program, `a${i}`)))
    await hf.tenant('b').enqueue(Array.from({ length: 3 }, (_, i) => item(job.program, `b${i}`)))
    await job.until(4)
    expect(job.open.map(({ input }) => input[0]).sort()).toEqual(['a', 'a', 'b', 'b'])
    while (job.started.length < 13) {
      const ended = job.open[0]?.input[0]
      await endOne(hf, job, ended)
      const left = ['a', 'b'].reduce((sum, tenant) => {
        const begun = job.started.filter((input) => input[0] === tenant).length
        const ends = begun - job.open.filter(({ input }) => input[0] === tenant).length
        return sum + Math.min(2, (tenant === 'a' ? 10 : 3) - ends)
      }, 0)
      await job.until(left)
      for (const tenant of ['a', 'b']) {
        expect(job.open.filter(({ input }) => input[0] === tenant).length).toBeLessThanOrEqual(2)
      }
    }
    for (const { end } of job.open) end()
    await Promise.all(workers.map((worker) => worker.stop()))
  })

  it('hold for each key, and do not concern threads without one', async () => {
    await using hf = await openHoldfast('memory:')
    const job = holding()
    const limits = [{ per: 'key', concurrency: 1 }] as const
    const worker = hf.worker({ programs: [job.program], limits, handleSignals: false, graceMs: 0 })
    await hf.enqueue([
      ...['x1', 'x2', 'x3'].map((thread) => item(job.program, thread, { limitKey: 'x' })),
      item(job.program, 'y1', { limitKey: 'y' }),
      item(job.program, 'n1'),
      item(job.program, 'n2'),
    ])
    await job.until(4)
    expect(job.open.map(({ input }) => input).sort()).toEqual(['n1', 'n2', 'x1', 'y1'])
    job.open.sort((a, b) => (a.input < b.input ? 1 : -1))
    await endOne(hf, job)
    expect(await endOne(hf, job)).toBe('x1')
    await job.until(3)
    expect(job.open.map(({ input }) => input).sort()).toEqual(['n1', 'n2', 'x2'])
    for (const { end } of job.open) end()
    await worker.stop()
  })

  it('let no more start in any period than they say', async () => {
    const clock = virtualClock()
    await using hf = await openHoldfast('memory:', { clock })
    const started: number[] = []
    const job = flow({ name: 'job', version: '1.0.0' }, async () => void started.push(clock.now()))
    const limits = [{ rate: { count: 3, perMs: 60_000 } }]
    const workers = [1, 2].map(() => hf.worker({ programs: [job], limits, handleSignals: false }))
    await hf.enqueue(Array.from({ length: 8 }, (_, i) => ({ program: job, thread: `t${i}`, input: undefined })))
    await clock.advance(1000)
    expect(started).toHaveLength(3)
    await clock.advance(57_000)
    expect(started).toHaveLength(3)
    await clock.advance(120_000)
    expect(started).toHaveLength(8)
    for (let i = 3; i < started.length; i++) {
      expect((started[i] as number) - (started[i - 3] as number)).toBeGreaterThanOrEqual(60_000)
    }
    await Promise.all(workers.map((worker) => worker.stop()))
  })

  it('give the places of a process that died to others when its lease is over', async () => {
    const clock = virtualClock()
    await using hf = await openHoldfast('memory:', { clock })
    // As a process leaves it that dies in the middle: two places, nobody who renews them.
    const lanes = hf.store.scope({ holdfast: 'limits' }).collection('lanes')
    const until = clock.now() + 10_000
    await lanes.put('["*","program"]', { held: { one: until, two: until } }, { ttlMs: 60_000 })
    const job = holding()
    const limits = [{ concurrency: 2 }]
    const worker = hf.worker({ programs: [job.program], limits, handleSignals: false, graceMs: 0 })
    await hf.enqueue(['a', 'b', 'c'].map((thread) => item(job.program, thread)))
    await clock.advance(9000)
    expect(job.open).toEqual([])
    await clock.advance(3000)
    expect(job.open).toHaveLength(2)
    // Its own are renewed while they run.
    await clock.advance(60_000)
    expect(job.open).toHaveLength(2)
    for (const { end } of job.open.splice(0)) end()
    await clock.advance(1000)
    expect(job.open).toHaveLength(1)
    job.open[0]?.end()
    await clock.advance(1000)
    await worker.stop()
    expect((await lanes.get('["*","program"]'))?.value).toEqual({ held: {} })
  })

  it.each([
    [[{ concurrency: 0 }], 'limits[0].concurrency'],
    [[{}], 'limits[0]'],
    [[{ per: 'user', concurrency: 1 }], 'limits[0].per'],
    [[{ program: 'other', concurrency: 1 }], 'limits[0].program'],
    [[{ concurrency: 1 }, { rate: { count: 1, perMs: 1 } }], 'limits[1]'],
    [[{ rate: { count: 1001, perMs: 1 } }], 'limits[0].rate.count'],
    [[{ concurrency: 1, every: 'x' }], 'every'],
  ])('are refused by name: %j', async (limits, field) => {
    await using hf = await openHoldfast('memory:')
    const { program } = holding()
    expect(() => hf.worker({ programs: [program], limits: limits as never })).toThrow(field)
    for (const limitKey of ['', 'a]b', 'x'.repeat(201)]) {
      await expect(hf.thread(program, 't').enqueue('x', { limitKey })).rejects.toMatchObject({ code: 'invalid-option' })
    }
  })
})
