import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { flow, Holdfast, openHoldfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { expect, it } from 'vitest'

it('a reconcile that says nothing that is known leaves the question to a person', async () => {
  for (const said of [undefined, null, {}, { outcome: 'yes' }]) {
    const program = flow({ name: 'paying', version: '1.0.0' }, (ctx) =>
      ctx.step('pay', { effect: 'reconcilable', reconcile: () => said as never }, () => {
        throw new Error('connection reset')
      }),
    )
    await using hf = await openHoldfast('memory:')
    const outcome = await hf.thread(program, 'x').run({ input: 1 })
    expect(outcome).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
  }
})

it.each([
  [3, 'completed'],
  [4, 'paused'],
])('a service that does not answer %i times: the run is %s', async (failures, status) => {
  const clock = virtualClock()
  await using hf = new Holdfast(new LogStore(await openDriver('memory:', { clock }), { clock }))
  const asked: string[] = []
  const reconcile = (key: string) => {
    asked.push(key)
    if (asked.length <= failures) throw new Error('service unavailable')
    return { outcome: 'executed' as const, result: 'found' }
  }
  const program = flow({ name: 'paying', version: '1.0.0' }, (ctx) =>
    ctx.step('pay', { effect: 'reconcilable', reconcile }, () => {
      throw new Error('connection reset')
    }),
  )
  let ended: string | undefined
  const running = hf
    .thread(program, 'x')
    .run({ input: 1 })
    .then((outcome) => (ended = outcome.status))
  while (ended === undefined) await clock.advance(1000)
  expect(await running).toBe(status)
  expect(asked).toHaveLength(4)
  expect(new Set(asked).size).toBe(1)
})

it('a transaction gives the same the first time and when it is found again, and says what it can’t keep', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-vague-'))
  try {
    await using hf = await openHoldfast(`sqlite:${join(folder, 'x.db')}`)
    const seen: unknown[] = []
    const program = flow({ name: 'reading', version: '1.0.0' }, async (ctx) => {
      seen.push(await ctx.transaction('read', async () => ({ found: 1, missing: undefined })))
      await ctx.pause('go on?')
    })
    const thread = hf.thread(program, 'x')
    const paused = await thread.run({ input: 1 })
    if (paused.status !== 'paused') throw new Error(paused.status)
    await thread.answer(paused.pauses[0]?.id ?? '', 'yes')
    await thread.run()
    expect(seen).toHaveLength(2)
    expect(seen[0]).toStrictEqual(seen[1])
    const bad = flow({ name: 'bad', version: '1.0.0' }, (ctx) => ctx.transaction('make', async () => () => 1))
    expect(await hf.thread(bad, 'bad').run({ input: 1 })).toMatchObject({
      status: 'failed',
      error: { code: 'step-failed', message: expect.stringMatching(/"make" failed: .* is a function/) },
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
