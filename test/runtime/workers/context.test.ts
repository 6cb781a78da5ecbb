import { flow, openHoldfast, type WorkerEvent } from 'holdfast'
import { expect, it } from 'vitest'

const greet = flow({ name: 'greet', version: '1.0.0' }, (ctx) =>
  ctx.step('greet', () => `Hello ${(ctx.context as { readonly name: string }).name}`),
)

it('a worker waits for the context of a run', async () => {
  await using hf = await openHoldfast('memory:')
  const thread = hf.thread(greet, 'x')
  await thread.enqueue('go')
  await using _ = hf.worker({
    programs: [greet],
    pollMs: 5,
    handleSignals: false,
    context: async ({ thread: id }) => ({ name: `Ada of ${String(id)}` }),
  })
  expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: expect.stringContaining('Hello Ada of') })
})

it('a context that can’t be made is an error of that thread, which is tried again later', async () => {
  await using hf = await openHoldfast('memory:')
  const thread = hf.thread(greet, 'x')
  await thread.enqueue('go')
  const events: WorkerEvent[] = []
  let calls = 0
  await using _ = hf.worker({
    programs: [greet],
    pollMs: 5,
    handleSignals: false,
    onEvent: (event) => void events.push(event),
    context: async () => {
      if (calls++ === 0) throw new Error('no such user')
      return { name: 'Ada' }
    },
  })
  expect(await thread.waitFor()).toMatchObject({ status: 'completed', output: 'Hello Ada' })
  expect(events).toContainEqual(expect.objectContaining({ type: 'error', error: new Error('no such user') }))
})
