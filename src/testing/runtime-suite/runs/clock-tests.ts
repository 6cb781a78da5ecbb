import assert from 'node:assert/strict'
import { flow, type Holdfast, type WorkerEvent } from '../../../index.js'
import { dies, expectStatus, gate, named, type RuntimeTest, takeOver } from '../runtime-context.js'

const HOUR = 3_600_000
const HALF_AN_HOUR = 1_800_000

const hello = flow<string, string>(named('clock-hello'), (ctx, name) => ctx.step('say', () => `hello ${name}`))

const patient = flow<string, unknown>(named('clock-patient'), async (ctx, way) => {
  if (way === 'sleep') await ctx.sleep(HALF_AN_HOUR)
  if (way === 'receive') return (await ctx.receive('go', { timeoutMs: HALF_AN_HOUR })) ?? 'late'
  if (way === 'pause') return ctx.pause('yes?', { expiresInMs: HALF_AN_HOUR, onExpire: { answer: 'late' } })
  return 'late'
})

/** The first thing that a worker tells of a thread, once it has ended it or left it. */
function whatBecomes(hf: Holdfast, programs: Parameters<Holdfast['worker']>[0]['programs']): Promise<WorkerEvent> {
  return new Promise((resolve) => {
    const worker = hf.worker({
      programs,
      pollMs: 10,
      handleSignals: false,
      onEvent: (event) => {
        if (event.type === 'ended' || event.type === 'error') void worker.stop().then(() => resolve(event))
      },
    })
  })
}

/** Machines whose clocks are wrong: what is due now is due on all of them, and waits go by the store's clock. */
export const clockTests: readonly RuntimeTest[] = [
  ...[
    [HOUR, 0],
    [0, -HOUR],
    [HOUR, -HOUR],
    [-HOUR, HOUR],
  ].map(
    ([writes = 0, works = 0]): RuntimeTest => ({
      name: `runs input at once that came from ${skew(writes)}, on ${skew(works)}`,
      async run({ wrong }) {
        await wrong(writes).hf.thread(hello, 'now').enqueue('you')
        const event = await whatBecomes(wrong(works).hf, [hello])
        assert.ok(event.type === 'ended')
        assert.equal(expectStatus(event.outcome, 'completed').output, 'hello you')
      },
    }),
  ),
  {
    name: 'takes over what a killed process left whose clock was an hour ahead, as soon as its lease is over',
    async run({ hf, wrong }) {
      const begun = gate()
      let calls = 0
      const hangs = flow<null, string>(named('clock-hangs'), (ctx) =>
        ctx.step('hang', () => {
          begun.open()
          return ++calls === 1 ? new Promise<never>(() => {}) : 'done'
        }),
      )
      const mortal = wrong(HOUR)
      const running = mortal.hf.thread(hangs, 'left').run({ input: null, leaseMs: 1000 })
      await begun.passed
      mortal.die()
      await takeOver(hf, 'left')
      await dies(running)
      const event = await whatBecomes(hf, [hangs])
      assert.ok(event.type === 'ended')
      assert.equal(expectStatus(event.outcome, 'completed').output, 'done')
    },
  },
  ...(['sleep', 'receive', 'pause'] as const).map(
    (way): RuntimeTest => ({
      name: `ends no wait early on a machine that is an hour ahead: ${way}`,
      async run({ hf, wrong, storeNow }) {
        const now = await storeNow()
        // Where the store goes by the clock of the one machine that it is on, there is no second clock to be wrong.
        if (now === undefined) return
        const near = (time: number | undefined) => Math.abs((time ?? 0) - now - HALF_AN_HOUR) < 60_000
        for (const [begins, looks] of [
          [0, HOUR],
          [-HOUR, 0],
          [HOUR, HOUR],
          [-HOUR, HOUR],
        ]) {
          const id = `${way} ${begins} ${looks}`
          const begun = await wrong(begins ?? 0)
            .hf.thread(patient, id)
            .run({ input: way })
          const { wakeAt } = expectStatus(begun, 'paused')
          assert.ok(near(wakeAt?.getTime()), `${wakeAt?.toISOString()} is half an hour after ${new Date(now)}`)
          expectStatus(
            await wrong(looks ?? 0)
              .hf.thread(patient, id)
              .run(),
            'paused',
          )
          const [summary] = (await hf.threads({ thread: id })).threads
          assert.ok(near(summary?.wakeAt?.getTime()))
        }
      },
    }),
  ),
]

function skew(ms: number): string {
  if (ms === 0) return 'a machine whose clock is right'
  return `one that is an hour ${ms > 0 ? 'ahead' : 'behind'}`
}
