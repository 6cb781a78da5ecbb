import assert from 'node:assert/strict'
import { type Effect, flow, NotExecutedError, type StepOptions } from '../../../index.js'
import { expectStatus, kindsOf, named, quick, type RuntimeTest } from '../runtime-context.js'

interface Calls {
  readonly keys: string[]
}

/** A flow with one effect, which behaves at its nth call as `acts` says. */
function caller(calls: Calls, options: StepOptions<string>, ...acts: readonly (() => string | Promise<string>)[]) {
  return flow<number, string>(named('caller'), (ctx) =>
    ctx.step('call', { input: { n: 1 }, retry: quick, ...options }, ({ idempotencyKey }) => {
      calls.keys.push(idempotencyKey)
      const act = acts[Math.min(calls.keys.length, acts.length) - 1]
      return act ? act() : 'none'
    }),
  )
}

const ok = () => 'ok'
const breaks = () => {
  throw new Error('connection reset')
}
const refusesIt = () => {
  throw new NotExecutedError('the shop is closed')
}
const same = (keys: readonly string[]) => new Set(keys).size

export const effectTests: readonly RuntimeTest[] = [
  ...(['read', 'idempotent', 'reconcilable', 'once'] as const).map(
    (effect): RuntimeTest => ({
      name: `of kind ${effect} ${effect === 'once' || effect === 'reconcilable' ? 'record their intent first' : 'need no intent'}`,
      async run({ hf }) {
        const calls: Calls = { keys: [] }
        const options: StepOptions<string> =
          effect === 'reconcilable' ? { effect, reconcile: () => ({ outcome: 'unknown' }) } : { effect }
        const program = caller(calls, options, ok)
        assert.equal(expectStatus(await hf.thread(program, 't').run({ input: 1 }), 'completed').output, 'ok')
        const intents = (await kindsOf(await hf.log('t'))).filter((kind) => kind === 'effect').length
        assert.equal(intents, intentsOf(effect))
        assert.ok((calls.keys[0]?.length ?? 0) >= 32)
      },
    }),
  ),
  {
    name: 'that read are tried again after a throw',
    async run({ hf }) {
      const calls: Calls = { keys: [] }
      const program = caller(calls, { effect: 'read' }, breaks, breaks, ok)
      assert.equal(expectStatus(await hf.thread(program, 't').run({ input: 1 }), 'completed').output, 'ok')
      assert.equal(calls.keys.length, 3)
    },
  },
  {
    name: 'that are idempotent are tried again with the same key, and end as unknown when that does not help',
    async run({ hf }) {
      const calls: Calls = { keys: [] }
      const good = caller(calls, { effect: 'idempotent' }, breaks, breaks, ok)
      assert.equal(expectStatus(await hf.thread(good, 't').run({ input: 1 }), 'completed').output, 'ok')
      assert.deepEqual([calls.keys.length, same(calls.keys)], [3, 1])
      const bad: Calls = { keys: [] }
      const { error } = expectStatus(
        await hf.thread(caller(bad, { effect: 'idempotent' }, breaks), 'u').run({ input: 1 }),
        'failed',
      )
      assert.deepEqual([error.code, error.step, bad.keys.length], ['effect-unknown', 'call', 3])
      // Mended at the other side: the same key again.
      assert.equal(
        expectStatus(await hf.thread(caller(bad, { effect: 'idempotent' }, ok), 'u').run(), 'completed').output,
        'ok',
      )
      assert.deepEqual([bad.keys.length, same(bad.keys)], [4, 1])
    },
  },
  {
    name: 'that say they were not executed are tried again with a new key each',
    async run({ hf }) {
      for (const effect of ['idempotent', 'once'] as const) {
        const calls: Calls = { keys: [] }
        const program = caller(calls, { effect }, refusesIt, refusesIt, ok)
        assert.equal(expectStatus(await hf.thread(program, effect).run({ input: 1 }), 'completed').output, 'ok')
        assert.deepEqual([calls.keys.length, same(calls.keys)], [3, 3])
      }
    },
  },
  {
    name: 'that were definitely refused to the last attempt fail, and come back with yet another key',
    async run({ hf }) {
      for (const effect of ['idempotent', 'once'] as const) {
        const calls: Calls = { keys: [] }
        const acts = [refusesIt, refusesIt, ok]
        const program = caller(calls, { effect, retry: { ...quick, attempts: 2 } }, ...acts)
        const { error } = expectStatus(await hf.thread(program, effect).run({ input: 1 }), 'failed')
        assert.equal(error.code, 'step-failed')
        assert.equal(expectStatus(await hf.thread(program, effect).run(), 'completed').output, 'ok')
        assert.deepEqual([calls.keys.length, same(calls.keys)], [3, 3])
      }
    },
  },
  {
    name: 'that can be reconciled ask the other side before anything else',
    async run({ hf }) {
      const asked: unknown[] = []
      const answers = [{ outcome: 'not-executed' }, { outcome: 'executed', result: 'found' }] as const
      const calls: Calls = { keys: [] }
      const reconcile = (key: string, input: unknown) => {
        asked.push([key, input])
        return answers[Math.min(asked.length, answers.length) - 1] ?? { outcome: 'unknown' as const }
      }
      const program = caller(calls, { effect: 'reconcilable', reconcile }, breaks, breaks, ok)
      assert.equal(expectStatus(await hf.thread(program, 't').run({ input: 1 }), 'completed').output, 'found')
      assert.deepEqual(asked, [
        [calls.keys[0], { n: 1 }],
        [calls.keys[1], { n: 1 }],
      ])
      assert.equal(same(calls.keys), 1)
    },
  },
  {
    name: 'that even the other side does not know of are put to a person',
    async run({ hf }) {
      const calls: Calls = { keys: [] }
      const reconcile = () => ({ outcome: 'unknown' as const })
      const program = caller(calls, { effect: 'reconcilable', reconcile }, breaks, ok)
      const thread = hf.thread(program, 't')
      const { pauses } = expectStatus(await thread.run({ input: 1 }), 'paused')
      await thread.answer(pauses[0]?.id ?? '', { outcome: 'not-executed' })
      assert.equal(expectStatus(await thread.run(), 'completed').output, 'ok')
    },
  },
  {
    name: 'that must not repeat are put to a person after a throw, with all that is known',
    async run({ hf }) {
      const calls: Calls = { keys: [] }
      const program = caller(calls, { effect: 'once' }, breaks, ok)
      const thread = hf.thread(program, 't')
      const { pauses } = expectStatus(await thread.run({ input: 1 }), 'paused')
      assert.deepEqual(
        pauses.map(({ kind, question }) => [kind, question]),
        [
          [
            'unknown-effect',
            {
              effect: 'once',
              step: 'call',
              input: { n: 1 },
              idempotencyKey: calls.keys[0],
              generation: 0,
              error: 'connection reset',
            },
          ],
        ],
      )
      const again = expectStatus(await thread.run(), 'paused')
      assert.deepEqual([again.pauses, calls.keys.length], [pauses, 1])
    },
  },
  ...(
    [
      ['succeeded', { outcome: 'succeeded', result: 'by hand' }, 'completed', 1],
      ['not executed', { outcome: 'not-executed' }, 'completed', 2],
      ['failed', { outcome: 'failed', message: 'refunded by hand' }, 'failed', 1],
    ] as const
  ).map(
    ([what, answer, status, times]): RuntimeTest => ({
      name: `that a person says have ${what} ${status === 'failed' ? 'fail' : times === 1 ? 'are not repeated' : 'are made with a new key'}`,
      async run({ hf }) {
        const calls: Calls = { keys: [] }
        const program = caller(calls, { effect: 'once' }, breaks, ok)
        const thread = hf.thread(program, 't')
        const { pauses } = expectStatus(await thread.run({ input: 1 }), 'paused')
        await thread.answer(pauses[0]?.id ?? '', answer)
        const outcome = await thread.run()
        assert.equal(outcome.status, status, JSON.stringify(outcome))
        if (outcome.status === 'completed') assert.equal(outcome.output, times === 1 ? 'by hand' : 'ok')
        if (outcome.status === 'failed') assert.match(outcome.error.message, /refunded by hand/)
        assert.deepEqual([calls.keys.length, same(calls.keys)], [times, times])
      },
    }),
  ),
  {
    name: 'that took too long count as unknown, not as failed',
    async run({ hf }) {
      const calls: Calls = { keys: [] }
      const program = caller(
        calls,
        { effect: 'once', timeoutMs: 20, settleMs: 20 },
        () => new Promise<string>(() => {}),
      )
      const { pauses } = expectStatus(await hf.thread(program, 't').run({ input: 1 }), 'paused')
      assert.match(JSON.stringify(pauses[0]?.question), /took longer than 20 ms/)
    },
  },
  {
    name: 'of unknown outcome stay unknown to a program that went on from there, and are found out by one that did not',
    async run({ hf }) {
      const calls: Calls = { keys: [] }
      const seen: unknown[] = []
      const policy = { effect: 'idempotent', retry: { attempts: 2, initialMs: 1 } } as const
      const program = (catches: boolean, fails: boolean) =>
        flow<number, unknown>(named('going on'), async (ctx) => {
          const called = ctx.step('call', policy, ({ idempotencyKey }) => {
            calls.keys.push(idempotencyKey)
            return fails ? breaks() : ok()
          })
          const result = await (catches ? called.catch(({ code, data }) => [code, data.idempotencyKey]) : called)
          seen.push(result)
          await ctx.step('after', { input: result }, () => 1)
          if (fails) throw new Error('later')
          return result
        })
      expectStatus(await hf.thread(program(true, true), 'caught').run({ input: 1 }), 'failed')
      const told = expectStatus(await hf.thread(program(true, false), 'caught').run(), 'completed').output
      assert.deepEqual(
        [told, seen],
        [
          ['effect-unknown', calls.keys[0]],
          [told, told],
        ],
      )
      assert.deepEqual([calls.keys.length, same(calls.keys)], [2, 1])
      calls.keys.length = 0
      expectStatus(await hf.thread(program(false, true), 'left').run({ input: 1 }), 'failed')
      assert.equal(expectStatus(await hf.thread(program(false, false), 'left').run(), 'completed').output, 'ok')
      assert.deepEqual([calls.keys.length, same(calls.keys)], [3, 1])
    },
  },
  {
    name: 'of unknown outcome fail the run where the program says so',
    async run({ hf }) {
      const calls: Calls = { keys: [] }
      const program = caller(calls, { effect: 'once', onUnknown: 'fail' }, breaks)
      const { error } = expectStatus(await hf.thread(program, 't').run({ input: 1 }), 'failed')
      assert.equal(error.code, 'effect-unknown')
      expectStatus(await hf.thread(program, 't').run(), 'failed')
      assert.equal(calls.keys.length, 1)
    },
  },
  {
    name: 'use the key of the tool where it brings one, and other keys on other threads and steps',
    async run({ hf }) {
      const calls: Calls = { keys: [] }
      await hf.thread(caller(calls, { effect: 'idempotent', idempotencyKey: 'order-5' }, ok), 'own').run({ input: 1 })
      for (const id of ['a', 'b']) {
        await hf.thread(caller(calls, { effect: 'idempotent', key: 'x' }, ok), id).run({ input: 1, key: 'k' })
        await hf.thread(caller(calls, { effect: 'idempotent', key: 'y' }, ok), id).run({ input: 1, key: 'k2' })
      }
      assert.equal(calls.keys[0], 'order-5')
      assert.equal(same(calls.keys), 5)
    },
  },
]

function intentsOf(effect: Effect): number {
  return effect === 'once' || effect === 'reconcilable' ? 1 : 0
}
