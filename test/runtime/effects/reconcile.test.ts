import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { flow, openHoldfast } from 'holdfast'
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
