import assert from 'node:assert/strict'
import { flow, graph, last, START, type StepOptions } from '../../../index.js'
import { aborted, DAY, dies, expectStatus, gate, named, type RuntimeTest, takeOver } from '../runtime-context.js'

/** A service that remembers who called it, and a program that calls it. */
function service(options: StepOptions<string>) {
  const keys: string[] = []
  let onCall: () => unknown = () => {}
  const program = flow<number, string>(named('calls'), async (ctx) => {
    await ctx.step('before', () => 1)
    return ctx.step('call', { input: 1, retry: { attempts: 1 }, ...options }, async ({ idempotencyKey }) => {
      keys.push(idempotencyKey)
      await onCall()
      return `call ${keys.length}`
    })
  })
  return {
    keys,
    program,
    /** What happens in the midst of each call from now on. */
    during(act: () => unknown) {
      onCall = act
    },
  }
}

export const effectCrashTests: readonly RuntimeTest[] = [
  ...(['read', 'idempotent'] as const).map(
    (effect): RuntimeTest => ({
      name: `of kind ${effect} run again after a crash in their midst, ${effect === 'read' ? 'as they are' : 'with the same key'}`,
      async run({ hf, mortal }) {
        const { keys, program, during } = service({ effect })
        const { hf: victim, die } = mortal()
        during(die)
        await dies(victim.thread(program, 't').run({ input: 1 }))
        during(() => {})
        await takeOver(hf, 't')
        assert.equal(expectStatus(await hf.thread(program, 't').run(), 'completed').output, 'call 2')
        assert.deepEqual([keys.length, new Set(keys).size], [2, 1])
      },
    }),
  ),
  {
    name: 'of kind once are put to a person after a crash between intent and record, and not repeated',
    async run({ hf, mortal }) {
      const { keys, program, during } = service({ effect: 'once' })
      const { hf: victim, die } = mortal()
      during(die)
      await dies(victim.thread(program, 't').run({ input: 1 }))
      during(() => {})
      await takeOver(hf, 't')
      const thread = hf.thread(program, 't')
      const { pauses } = expectStatus(await thread.run(), 'paused')
      assert.equal((pauses[0]?.question as { error?: unknown } | undefined)?.error, null)
      assert.equal(keys.length, 1)
      await thread.answer(pauses[0]?.id ?? '', { outcome: 'succeeded', result: 'was made' })
      assert.equal(expectStatus(await thread.run(), 'completed').output, 'was made')
      assert.equal(keys.length, 1)
    },
  },
  ...(['read', 'idempotent'] as const).map(
    (declared): RuntimeTest => ({
      name: `begun as once are put to a person, though the program declares them ${declared} by now`,
      async run({ hf, mortal }) {
        const before = service({ effect: 'once' })
        const now = service({ effect: declared })
        const { hf: victim, die } = mortal()
        before.during(die)
        await dies(victim.thread(before.program, 't').run({ input: 1 }))
        await takeOver(hf, 't')
        const { pauses } = expectStatus(await hf.thread(now.program, 't').run(), 'paused')
        assert.equal(pauses[0]?.kind, 'unknown-effect')
        assert.equal((pauses[0]?.question as { idempotencyKey?: unknown } | undefined)?.idempotencyKey, before.keys[0])
        assert.deepEqual([before.keys.length, now.keys.length], [1, 0])
      },
    }),
  ),
  {
    name: 'that were begun are found out about before a gate asks that the program has by now',
    async run({ hf, mortal }) {
      let ran = 0
      let onCall: () => unknown
      const program = graph({ ...named('gated'), state: { n: last<number>(undefined, { initial: 0 }) } })
        .node('pay', {
          effect: 'once',
          run: async () => {
            ran++
            await onCall()
            return { n: ran }
          },
        })
        .edge(START, 'pay')
      const { hf: victim, die } = mortal()
      onCall = die
      await dies(victim.thread(program, 't').run({ input: {} }))
      onCall = () => {}
      await takeOver(hf, 't')
      const thread = hf.thread(program.pauseBefore('pay'), 't')
      const { pauses } = expectStatus(await thread.run(), 'paused')
      assert.deepEqual([pauses.map(({ kind }) => kind), ran], [['unknown-effect'], 1])
    },
  },
  {
    name: 'have keys of their own on a thread that was erased and begun anew',
    async run({ hf }) {
      const { keys, program } = service({ effect: 'idempotent' })
      const thread = hf.thread(program, 't')
      expectStatus(await thread.run({ input: 1, key: 'message' }), 'completed')
      await hf.erase('t')
      assert.equal(expectStatus(await thread.run({ input: 1, key: 'message' }), 'completed').output, 'call 2')
      assert.equal(new Set(keys).size, 2)
    },
  },
  {
    name: 'of kind once in a node are put to a person after a crash as well',
    async run({ hf, mortal }) {
      let ran = 0
      let onCall: () => unknown
      const program = graph({ ...named('node'), state: { n: last<number>(undefined, { initial: 0 }) } })
        .node('pay', {
          effect: 'once',
          run: async () => {
            ran++
            await onCall()
            return { n: ran }
          },
        })
        .edge(START, 'pay')
      const { hf: victim, die } = mortal()
      onCall = die
      await dies(victim.thread(program, 't').run({ input: {} }))
      onCall = () => {}
      await takeOver(hf, 't')
      const thread = hf.thread(program, 't')
      const { pauses } = expectStatus(await thread.run(), 'paused')
      assert.equal(pauses[0]?.kind, 'unknown-effect')
      await thread.answer(pauses[0]?.id ?? '', { outcome: 'succeeded', result: { n: 42 } })
      assert.deepEqual([expectStatus(await thread.run(), 'completed').state.n, ran], [42, 1])
    },
  },
  {
    name: 'that can be reconciled ask the other side after a crash',
    async run({ hf, mortal }) {
      for (const outcome of ['executed', 'not-executed'] as const) {
        const asked: string[] = []
        const { keys, program, during } = service({
          effect: 'reconcilable',
          reconcile: (key) => {
            asked.push(key)
            return outcome === 'executed' ? { outcome, result: 'found' } : { outcome }
          },
        })
        const { hf: victim, die } = mortal()
        during(die)
        await dies(victim.thread(program, outcome).run({ input: 1 }))
        during(() => {})
        await takeOver(hf, outcome)
        const { output } = expectStatus(await hf.thread(program, outcome).run(), 'completed')
        assert.equal(output, outcome === 'executed' ? 'found' : 'call 2')
        assert.deepEqual(asked, [keys[0]])
        assert.equal(keys.length, outcome === 'executed' ? 1 : 2)
      }
    },
  },
  {
    name: 'that were acknowledged are never made again, wherever the process dies after',
    async run({ hf, mortal }) {
      const made: string[] = []
      const program = (onEnd: () => unknown) =>
        flow<number, unknown>(named('all kinds'), async (ctx) => {
          for (const effect of ['read', 'idempotent', 'once'] as const) {
            await ctx.step(effect, { effect }, () => made.push(effect))
          }
          return ctx.step('end', { retry: { attempts: 1 } }, onEnd)
        })
      const { hf: victim, die } = mortal()
      const dying = program(() => {
        die()
        throw new Error('died')
      })
      await dies(victim.thread(dying, 't').run({ input: 1 }))
      await takeOver(hf, 't')
      expectStatus(
        await hf
          .thread(
            program(() => 1),
            't',
          )
          .run(),
        'completed',
      )
      assert.deepEqual(made, ['read', 'idempotent', 'once'])
    },
  },
  ...(
    [
      ['a crash', (die: () => void) => die()],
      [
        'a failure',
        () => {
          throw new Error('connection reset')
        },
      ],
    ] as const
  ).map(
    ([what, act]): RuntimeTest => ({
      name: `of kind idempotent are put to a person when the key was forgotten since ${what}`,
      async run({ hf, mortal, clock }) {
        const { keys, program, during } = service({ effect: 'idempotent', keyTtlMs: DAY })
        const { hf: victim, die } = mortal()
        during(() => act(die))
        const first = victim.thread(program, 't').run({ input: 1 })
        if (what === 'a crash') await dies(first)
        else assert.equal(expectStatus(await first, 'failed').error.code, 'effect-unknown')
        during(() => {})
        await takeOver(hf, 't')
        clock.skip(2 * DAY)
        const thread = hf.thread(program, 't')
        const { pauses } = expectStatus(await thread.run(), 'paused')
        assert.deepEqual([pauses[0]?.kind, keys.length], ['unknown-effect', 1])
        expectStatus(await thread.run(), 'paused')
        await thread.answer(pauses[0]?.id ?? '', { outcome: 'not-executed' })
        assert.equal(expectStatus(await thread.run(), 'completed').output, 'call 2')
        assert.equal(new Set(keys).size, 2)
      },
    }),
  ),
  {
    name: 'of kind idempotent that were stopped in their midst are put to a person when the key was forgotten',
    async run({ hf, clock }) {
      const { keys, program, during } = service({ effect: 'idempotent', keyTtlMs: DAY })
      const begun = gate()
      const abort = new AbortController()
      during(async () => {
        begun.open()
        await aborted(abort.signal)
      })
      const running = hf.thread(program, 't').run({ input: 1, signal: abort.signal })
      await begun.passed
      abort.abort()
      await assert.rejects(running, { name: 'AbortError' })
      clock.skip(2 * DAY)
      const { pauses } = expectStatus(await hf.thread(program, 't').run(), 'paused')
      assert.deepEqual([pauses[0]?.kind, keys.length], ['unknown-effect', 1])
    },
  },
  {
    name: 'of kind idempotent run as ever after a long rest that had nothing under way',
    async run({ hf, clock }) {
      let calls = 0
      const program = flow<number, number>(named('rests'), async (ctx) => {
        await ctx.pause('go on?')
        return ctx.step('call', { effect: 'idempotent', keyTtlMs: DAY }, () => ++calls)
      })
      const thread = hf.thread(program, 't')
      const { pauses } = expectStatus(await thread.run({ input: 1 }), 'paused')
      clock.skip(30 * DAY)
      await thread.answer(pauses[0]?.id ?? '', 'yes')
      assert.equal(expectStatus(await thread.run(), 'completed').output, 1)
    },
  },
]
