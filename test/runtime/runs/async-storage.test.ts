import { AsyncLocalStorage } from 'node:async_hooks'
import { flow, openHoldfast } from 'holdfast'
import { expect, it, vi } from 'vitest'

it('uses the same async storages for all runs, because Node never lets go of one', async () => {
  const used = new Set<unknown>()
  const { run } = AsyncLocalStorage.prototype
  const spy = vi.spyOn(AsyncLocalStorage.prototype, 'run').mockImplementation(function (this: never, ...args) {
    used.add(this)
    return run.apply(this, args as never)
  })
  const hf = await openHoldfast('memory:')
  const program = flow({ name: 'steps', version: '1.0.0' }, (ctx) => ctx.step('a', () => 'a'))
  await hf.thread(program, 'first').run({ input: 0 })
  const first = new Set(used)
  for (let i = 0; i < 20; i++) await hf.thread(program, `thread-${i}`).run({ input: i })
  await hf.close()
  spy.mockRestore()
  expect(first.size).toBeGreaterThan(0)
  expect(used).toEqual(first)
  // Each promise made from the first use on pays for all of them.
  expect(used.size).toBeLessThanOrEqual(2)
})
