import { flow, Holdfast, type Thread, type WorkerEvent } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { expect, it } from 'vitest'

const patient = flow({ name: 'patient', version: '1.0.0' }, async (ctx, way: string) => {
  if (way === 'ask') return ctx.pause('go on?')
  if (way === 'sleep') return ctx.sleep(3_600_000)
  return ctx.receive('go')
})

type Sent = (thread: Thread<string>) => Promise<unknown>
const cases: [string, string, Sent][] = [
  ['a signal of another name, while it waits for one', 'receive', (thread) => thread.signal('other', 1)],
  ['a signal, while it waits for a person', 'ask', (thread) => thread.signal('go', 1)],
  ['a signal, while it sleeps', 'sleep', (thread) => thread.signal('go', 1)],
  ['more input, while it waits for a person', 'ask', (thread) => thread.enqueue('receive', { key: 'next' })],
  ['more input, while it waits for a signal', 'receive', (thread) => thread.enqueue('ask', { key: 'next' })],
  ['more input, while it sleeps', 'sleep', (thread) => thread.enqueue('ask', { key: 'next' })],
  ['nothing', 'receive', async () => {}],
]

it.each(cases)('a worker leaves a thread alone that was sent %s', async (_, way, send) => {
  const clock = virtualClock()
  const driver = await openDriver('memory:', { clock })
  await using hf = new Holdfast(new LogStore(driver, { clock }))
  const thread = hf.thread(patient, 't')
  expect(await thread.run({ input: way, key: 'first' })).toMatchObject({ status: 'paused' })
  await send(thread as never)
  const events: WorkerEvent[] = []
  await using _worker = hf.worker({
    programs: [patient],
    pollMs: 500,
    handleSignals: false,
    onEvent: (event) => events.push(event),
  })
  await clock.advance(60_000)
  // Once, to see that there is nothing to do yet.
  expect(events.filter(({ type }) => type === 'taken').length).toBeLessThan(2)

  // And nothing of it is forgotten when the time comes.
  if (way === 'ask') await thread.answer((await thread.pauses())[0]?.id ?? '', 'yes')
  if (way === 'receive') await thread.signal('go', 2)
  await clock.advance(3_600_000)
  const history = await thread.history({ all: true })
  expect(history.filter(({ kind }) => kind === 'end' || kind === 'step').length).toBeGreaterThan(0)
  const [first] = (await hf.threads({ thread: 't' })).threads
  const next = { status: expect.stringMatching(/^waiting/) }
  expect(first).toMatchObject(_.startsWith('more input') ? next : { status: 'completed' })
})

it('a worker does not try a failed run again for a signal, which waits until somebody resumes it', async () => {
  const clock = virtualClock()
  const driver = await openDriver('memory:', { clock })
  await using hf = new Holdfast(new LogStore(driver, { clock }))
  let broken = true
  let tries = 0
  const failing = flow({ name: 'failing', version: '1.0.0', retry: { attempts: 1 } }, async (ctx) => {
    await ctx.step('do', () => {
      tries++
      if (broken) throw new Error('broken')
    })
    return ctx.receive('go')
  })
  const thread = hf.thread(failing, 't')
  expect(await thread.run({ input: 1 })).toMatchObject({ status: 'failed' })
  await using _worker = hf.worker({ programs: [failing], pollMs: 500, handleSignals: false })
  for (let i = 0; i < 3; i++) {
    await thread.signal('go', i)
    await clock.advance(5000)
  }
  expect(tries).toBe(1)
  expect(await thread.waitFor()).toMatchObject({ status: 'failed' })
  broken = false
  expect(await thread.run()).toMatchObject({ status: 'completed', output: 0 })
})
