import { AsyncLocalStorage } from 'node:async_hooks'
import { flow, openHoldfast } from 'holdfast'
import { expect, it, vi } from 'vitest'

it('uses one async storage for all runs, because Node never lets go of one', async () => {
  const used = new Set<unknown>()
  const { run } = AsyncLocalStorage.prototype
  const spy = vi.spyOn(AsyncLocalStorage.prototype, 'run').mockImplementation(function (this: never, ...args) {
    used.add(this)
    return run.apply(this, args as never)
  })
  const hf = await openHoldfast('memory:')
  const program = flow({ name: 'steps', version: '1.0.0' }, (ctx) => ctx.step('a', () => 'a'))
  for (let i = 0; i < 20; i++) await hf.thread(program, `thread-${i}`).run({ input: i })
  await hf.close()
  spy.mockRestore()
  expect(used.size).toBe(1)
})
