import { flow, openHoldfast } from 'holdfast'
import { virtualClock } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { gate } from '../support/gate.js'

it('ends a run of the same process at once, not when its lease is renewed', async () => {
  // Time stands still: nothing is renewed, and nothing is looked for by the clock.
  await using hf = await openHoldfast('memory:', { clock: virtualClock() })
  const busy = gate()
  const program = flow({ name: 'busy', version: '1.0.0' }, (ctx) =>
    ctx.step('work', async ({ abort }) => {
      busy.open()
      await new Promise((_, reject) => abort.addEventListener('abort', () => reject(abort.reason as Error)))
    }),
  )
  const thread = hf.thread(program, 't')
  const running = thread.run({ input: {} })
  await busy.passed
  expect(await hf.inspect('t').cancel({ run: 'another', by: 'ada' })).toBe(false)
  expect(await hf.inspect('t').cancel({ reason: 'enough', by: 'ada' })).toBe(true)
  expect(await running).toMatchObject({
    status: 'failed',
    error: { message: expect.stringContaining('enough') as string },
  })
  expect(await hf.inspect('t').cancel()).toBe(false)
})
