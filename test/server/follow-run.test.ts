import { ServerCore } from '#src/server/core.js'
import { followRun } from '#src/server/run/follow-run.js'
import { flow, type OpenPause, openHoldfast } from 'holdfast'
import { expect, it } from 'vitest'
import { gate } from '../support/gate.js'

const asks = flow({ name: 'asks', version: '1.0.0' }, async (ctx) => [
  await ctx.pause({ key: 'one', ask: 'One?' }),
  await ctx.pause({ key: 'two', ask: 'Two?' }),
])

it('takes no rest for the end that an answer had ended, however late it is read', async () => {
  await using hf = await openHoldfast('memory:')
  const core = new ServerCore(hf, { programs: [asks], tokens: [], worker: false }, {} as never)
  const { thread, program } = await core.thread(hf, 't', 'main', 'asks')
  const answer = async ({ pauses: [pause] }: { pauses: readonly OpenPause[] }) =>
    thread.answer((pause as OpenPause).id, true, { by: 'ada' })

  const first = (await thread.run({ input: {} })) as { run: string; checkpoint: string; pauses: readonly OpenPause[] }
  await answer(first)
  // Rests once more: whoever answered both has the rest between in what it follows.
  await answer((await thread.run()) as never)
  const { run, checkpoint } = first
  const request = { thread: 't', branch: 'main', input: undefined }
  const started = { thread, program, request, input: 'taken' as const, run, ended: false, checkpoint }
  const news = followRun(core, started, new AbortController().signal)
  const told = [(await news.next()).value]
  expect(await thread.run()).toMatchObject({ status: 'completed' })
  for await (const one of news) told.push(one)
  expect(told.at(-1)).toMatchObject({ outcome: { status: 'completed', output: [true, true] } })
  expect(told.filter((one) => one && 'outcome' in one)).toHaveLength(1)
})

it('tells the end of a run at once, whatever runs behind it', async () => {
  await using hf = await openHoldfast('memory:')
  const behind = gate()
  const second = flow({ name: 'second', version: '1.0.0' }, (ctx, input: { readonly waits: boolean }) =>
    ctx.step('work', async () => {
      if (input.waits) await behind.passed
    }),
  )
  const core = new ServerCore(hf, { programs: [second], tokens: [], worker: false }, {} as never)
  const { thread, program } = await core.thread(hf, 't', 'main', 'second')
  const first = await thread.enqueue({ waits: false })
  await thread.enqueue({ waits: true })
  const running = thread.run()
  const request = { thread: 't', branch: 'main', input: undefined }
  const started = { thread, program, request, ...first, input: 'queued' as const }
  let outcome: unknown
  for await (const news of followRun(core, started, new AbortController().signal)) {
    if ('outcome' in news) ({ outcome } = news)
  }
  expect(outcome).toMatchObject({ status: 'completed', run: first.run })
  behind.open()
  await running
})

it.each([true, false])(
  'follows a run over the threads that it awaits, until all rest (one asks: %s)',
  async (isAsked) => {
    await using hf = await openHoldfast('memory:')
    const goOn = gate()
    const child = flow({ name: 'child', version: '1.0.0' }, async (ctx, asked: boolean) => {
      await ctx.step('work', () => goOn.passed)
      return asked ? ctx.pause('Really?') : 'done'
    })
    const parent = flow({ name: 'parent', version: '1.0.0' }, (ctx, asked: boolean) => ctx.run(child, 'c', asked))
    const core = new ServerCore(hf, { programs: [parent], tokens: [], worker: false }, {} as never)
    const { thread, program } = await core.thread(hf, 't', 'main', 'parent')
    const left = await thread.enqueue(isAsked)
    await using _ = hf.worker({ programs: [parent, child], handleSignals: false })
    const request = { thread: 't', branch: 'main', input: undefined }
    const outcomes: unknown[] = []
    for await (const news of followRun(
      core,
      { thread, program, request, ...left, input: 'queued' as const },
      new AbortController().signal,
    )) {
      if ('outcome' in news) outcomes.push(news.outcome)
      // The parent rests, and its child does not yet.
      else if (news.event.type === 'run' && news.event.status === 'paused') goOn.open()
    }
    expect(outcomes).toMatchObject([isAsked ? { status: 'paused', waiting: [{ kind: 'child' }] } : { output: 'done' }])
  },
)
