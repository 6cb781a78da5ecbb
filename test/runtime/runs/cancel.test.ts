import { flow, openHoldfast } from 'holdfast'
import { virtualClock } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { gate } from '../../support/gate.js'

/** A run that works until it is told to stop. Time stands still: nothing is renewed or looked for by the clock. */
async function runBusy() {
  const hf = await openHoldfast('memory:', { clock: virtualClock() })
  const busy = gate()
  const program = flow({ name: 'busy', version: '1.0.0' }, (ctx, input: { readonly isQuick?: boolean }) =>
    ctx.step('work', async ({ abortSignal: abort }) => {
      if (input.isQuick) return
      busy.open()
      await new Promise((_, reject) => abort.addEventListener('abort', () => reject(abort.reason as Error)))
    }),
  )
  const thread = hf.thread(program, 't')
  const running = thread.run({ input: {} })
  await busy.passed
  return { hf, thread, running }
}

it('ends a run of the same process at once, not when its lease is renewed', async () => {
  const { hf, running } = await runBusy()
  expect(await hf.inspect('t').cancel({ run: 'another', by: 'ada' })).toBe(false)
  expect(await hf.inspect('t').cancel({ reason: 'enough', by: 'ada' })).toBe(true)
  const error = { message: expect.stringContaining('enough') as string }
  expect(await running).toMatchObject({ status: 'failed', error })
  expect(await hf.inspect('t').cancel()).toBe(false)
  await hf.close()
})

it('is as quick where new input interrupts the run', async () => {
  const { hf, thread, running } = await runBusy()
  expect(await thread.enqueue({ isQuick: true }, { busy: 'interrupt' })).toMatchObject({ input: 'queued' })
  expect(await running).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('interrupted') } })
  expect(await thread.run()).toMatchObject({ status: 'completed' })
  await hf.close()
})
