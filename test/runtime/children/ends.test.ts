import { flow, Holdfast, openHoldfast } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { virtualClock } from 'holdfast/testing'
import { expect, it } from 'vitest'
import { mortalDriver } from '../../support/mortal-driver.js'
import { until } from '../../support/until.js'

const named = (name: string) => ({ name, version: '1.0.0' })

it('tells the parent of a child that ends every process that runs it', async () => {
  const clock = virtualClock()
  const store = await openDriver('memory:', { clock })
  const parent = flow<number, unknown>(named('parent'), async (ctx, n) =>
    ctx
      .run(
        poison(() => {}),
        'c',
        n,
      )
      .catch((error: { data: unknown }) => error.data),
  )
  let deaths = 0
  /** A process with workers for both, which dies of the child and is replaced. */
  const start = (): void => {
    const { driver, dieAt } = mortalDriver(store)
    const die = () => {
      deaths++
      dieAt(1, 'before')
      start()
    }
    const hf = new Holdfast(new LogStore(driver, { clock }))
    hf.worker({ programs: [parent, poison(die)], maxCrashes: 2, handleSignals: false })
  }
  const hf = new Holdfast(new LogStore(store, { clock }))
  await hf.thread(parent, 't').enqueue(1)
  start()
  await until(async () => {
    await clock.advance(1000)
    const [found] = (await hf.threads({ thread: 't' })).threads
    return found?.status === 'completed'
  }, 1)
  const { state } = (await hf.log('t')).fold
  expect(state).toMatchObject({
    run: { output: { status: 'failed', reason: expect.stringMatching(/crash its workers/) } },
  })
  const seen = deaths
  // It stays parked: what it owed is no reason to run it again.
  await clock.advance(120_000)
  expect([seen >= 2, deaths]).toEqual([true, seen])
  const [child] = (await hf.threads({ parent: 't' })).threads
  expect(child).toMatchObject({ status: 'failed', wakeAt: null })
})

function poison(die: () => void) {
  return flow<number, never>(named('poison'), async (ctx) =>
    ctx.step('die', () => {
      die()
      return new Promise<never>(() => {})
    }),
  )
}

it('leaves the children of a thread alone when a copy of it ends', async () => {
  await using hf = await openHoldfast('memory:')
  const child = flow<number, unknown>(named('child'), async (ctx) => ctx.receive('go'))
  const parent = flow<number, unknown>(named('parent'), async (ctx, n) => ctx.run(child, 'c', n))
  const thread = hf.thread(parent, 't')
  expect(await thread.run({ input: 1 })).toMatchObject({ status: 'paused' })
  const [first] = (await hf.threads({ parent: 't' })).threads
  await hf.import(await hf.export('t'), { thread: 'copy' })
  await hf.import(await hf.export('t'), { thread: 'second copy' })
  expect(await hf.inspect('copy').cancel()).toBe(true)
  // One that is run has a child of its own.
  const copy = hf.thread(parent, 'second copy')
  await copy.run()
  expect(await copy.cancel()).toBe(true)
  await hf.inspect(first?.thread ?? '').signal('go', 'mine')
  expect(await thread.run()).toMatchObject({ status: 'completed', output: 'mine' })
})
