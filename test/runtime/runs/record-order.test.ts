import { flow, openHoldfast } from 'holdfast'
import { expect, it } from 'vitest'

it('writes what was noted before a wait ahead of what ended during it', async () => {
  const hf = await openHoldfast('memory:')
  const program = flow({ name: 'waits', version: '1.0.0' }, (ctx) =>
    Promise.all([ctx.step('a', () => 'a'), ctx.receive('go'), ctx.step('b', () => 'b'), ctx.receive('stop')]),
  )
  const thread = hf.thread(program, 'thread')
  await thread.run({ input: 1 })
  const steps = (await thread.history()).filter(({ kind }) => kind === 'step')
  expect(steps.length).toBeGreaterThan(0)
  for (const { id } of steps) expect((await thread.at(id).facts()).run).toMatchObject({ status: 'running' })
  await hf.close()
})
