import fc from 'fast-check'
import { append, type Effect, END, flow, graph, type Holdfast, openHoldfast, START, type Thread } from 'holdfast'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type Backend, durableBackends } from '../support/backends.js'
import { openPaymentService, type PaymentService } from '../support/payment-service.js'
import { randomly, rounds } from '../support/scale.js'
import { makeUserTable } from '../support/user-table.js'

const VERSION = { version: '1.0.0' }
const NEVER_ASKED = { outcome: 'unknown' as const }

let service: PaymentService
let hf: Holdfast
let threads = 0
const fresh = (): string => `effects-${threads++}`

beforeAll(async () => {
  service = await openPaymentService()
  hf = await openHoldfast('memory:')
})
afterAll(async () => {
  await hf.close()
  await service.close()
})

type Payment = Exclude<Effect, 'read'>

const policy = (effect: Effect) => ({
  effect,
  retry: { attempts: 1 },
  ...(effect === 'reconcilable' ? { reconcile: () => NEVER_ASKED } : {}),
})

/** Pays in turn, each by its kind, with reads in between. */
const payer = (kinds: readonly Effect[]) =>
  flow({ name: 'payer', ...VERSION }, async (ctx) => {
    const receipts: string[] = []
    for (const [key, effect] of kinds.entries()) {
      receipts.push(
        await ctx.step('pay', { key, input: key, ...policy(effect) }, (step) =>
          effect === 'read' ? `read ${key}` : service.pay(step.idempotencyKey, key),
        ),
      )
    }
    return receipts
  })

/** The same as a graph: one node for each. */
const payerGraph = (kinds: readonly Effect[]) => {
  let made = graph({ name: 'payers', ...VERSION, state: { receipts: append<string>() } }).node('begin', () => ({}))
  made = made.edge(START, 'begin')
  let last = 'begin'
  for (const [i, effect] of kinds.entries()) {
    const node = `pay${i}`
    const run = (_: unknown, ctx: { readonly idempotencyKey: string }) =>
      effect === 'read'
        ? { receipts: `read ${i}` }
        : service.pay(ctx.idempotencyKey, i).then((receipts) => ({ receipts }))
    made = made.node(node, { ...policy(effect), run }).edge(last as 'begin', node as 'begin') as typeof made
    last = node
  }
  return made.edge(last as 'begin', END)
}

type AnyThread = Thread<unknown, unknown, unknown, never>

describe('an effect that was recorded', () => {
  const kinds = fc.array(fc.constantFrom<Effect>('once', 'idempotent', 'reconcilable', 'read'), {
    minLength: 1,
    maxLength: 5,
  })
  const place = fc.double({ min: 0, max: 0.999, noNaN: true })

  it('is not repeated by any fork or replay without permission', async () => {
    await fc.assert(
      fc.asyncProperty(
        kinds,
        fc.array(place, { minLength: 1, maxLength: 3 }),
        fc.boolean(),
        async (made, at, asGraph) => {
          const thread = hf.thread(asGraph ? payerGraph(made) : (payer(made) as never), fresh()) as unknown as AnyThread
          expect(await thread.run({ input: {} })).toMatchObject({ status: 'completed' })
          const paid = service.payments.length
          let current = thread
          for (const where of at) {
            const past = await current.history()
            const id = past[Math.floor(where * past.length)]?.id as string
            const effects = where * 10 < 5 ? {} : ({ effects: 'deny' } as const)
            const fork = (await current.at(id).fork(effects)) as unknown as AnyThread
            const outcome = await fork.run()
            if (outcome.status === 'paused') {
              expect(outcome.pauses).toMatchObject([
                { kind: 'permission', question: { begunThere: expect.any(Boolean) } },
              ])
            } else if (outcome.status === 'failed') {
              expect(outcome.error).toMatchObject({ code: 'step-failed', step: expect.stringMatching(/pay/) })
            } else {
              expect(outcome.status).toBe('completed')
            }
            await fork.run()
            expect(['identical', 'incomplete']).toContain((await fork.replay()).status)
            current = fork
          }
          await thread.replay()
          expect(service.payments).toHaveLength(paid)
        },
      ),
      randomly(rounds(40)),
    )
  })
})

describe('an effect on a fork', () => {
  const payments: readonly Payment[] = ['once', 'idempotent', 'reconcilable']

  for (const effect of payments) {
    describe(`that is ${effect}`, () => {
      let thread: Thread<unknown, unknown, unknown, never>
      let start: string
      let before: number

      for (const [kind, program] of [
        ['a step', () => payer([effect])],
        ['a node', () => payerGraph([effect])],
      ] as const) {
        describe(`as ${kind}`, () => {
          beforeEach(async () => {
            thread = hf.thread(program() as never, fresh()) as unknown as typeof thread
            await thread.run({ input: {} })
            start = (await thread.history()).at(-1)?.id as string
            before = service.payments.length
          })
          const paidSince = () => service.payments.slice(before)
          const paused = async (options: object = {}) => {
            const fork = (await thread.at(start).fork(options as never)) as unknown as typeof thread
            const outcome = await fork.run()
            if (outcome.status !== 'paused') throw new Error(outcome.status)
            expect(paidSince()).toStrictEqual([])
            return { fork, pause: outcome.pauses[0] as (typeof outcome.pauses)[number] }
          }

          it('runs with another key where effects are allowed', async () => {
            expect(await thread.at(start).run({ effects: 'allow' } as never)).toMatchObject({ status: 'completed' })
            expect(paidSince()).toHaveLength(1)
            const keys = new Set(service.payments.slice(before - 1).map(({ key }) => key))
            expect(keys.size).toBe(2)
          })

          it('fails with a typed error where they are denied', async () => {
            const outcome = await thread.at(start).run({ effects: 'deny', name: 'denied' } as never)
            expect(outcome).toMatchObject({
              status: 'failed',
              error: { code: 'step-failed', message: expect.stringContaining('Branch "denied" allows no effects') },
            })
            expect(paidSince()).toStrictEqual([])
          })

          it('runs once a person has allowed it', async () => {
            const { fork, pause } = await paused()
            expect(pause).toMatchObject({
              kind: 'permission',
              question: { effect, begunThere: true, forkedFrom: { branch: 'main', seq: 0 } },
            })
            await fork.answer(pause.id, { allowed: true }, { by: 'someone' })
            expect(await fork.run()).toMatchObject({ status: 'completed' })
            expect(paidSince()).toHaveLength(1)
          })

          it('fails, or has the result that a person gave, when they did not', async () => {
            const { fork, pause } = await paused()
            await fork.answer(pause.id, { allowed: false })
            expect(await fork.run()).toMatchObject({
              status: 'failed',
              error: { message: expect.stringContaining('Permission to run this effect on a fork was denied') },
            })
            const other = await paused()
            const result = kind === 'a node' ? { receipts: 'invented' } : 'invented'
            await other.fork.answer(other.pause.id, { allowed: false, result })
            const outcome = await other.fork.run()
            expect(outcome).toMatchObject({ status: 'completed' })
            expect(JSON.stringify(outcome)).toContain('invented')
            await expect(other.fork.answer(pause.id, { allowed: true })).rejects.toMatchObject({ code: 'pause-closed' })
            expect(paidSince()).toStrictEqual([])
          })

          it('refuses an answer that is none', async () => {
            const { fork, pause } = await paused()
            await expect(fork.answer(pause.id, { allowed: 'yes' })).rejects.toMatchObject({ code: 'invalid-value' })
          })

          it('needs permission also where the branch was made below the runtime, or nothing is recorded', async () => {
            await hf.fork(thread.id, { at: start, branch: 'low' })
            const low = hf.thread(program() as never, thread.id, { branch: 'low' }) as unknown as typeof thread
            expect(await low.run()).toMatchObject({ status: 'paused', pauses: [{ kind: 'permission' }] })
            const allowed = await thread.at(start).fork({ effects: 'allow', name: 'allowed' } as never)
            const at = (await allowed.history())[0]?.id as string
            await hf.fork(thread.id, { at, from: 'allowed', branch: 'lower' })
            const lower = hf.thread(program() as never, thread.id, { branch: 'lower' }) as unknown as typeof thread
            expect(await lower.run()).toMatchObject({ status: 'paused', pauses: [{ kind: 'permission' }] })
            const denied = await thread.at(start).fork({ effects: 'deny' } as never)
            expect((await denied.run({ input: {} as never, frequency: 'none' })).status).toBe('failed')
            expect((await low.run({ input: {}, frequency: 'none' })).status).toBe('failed')
            expect(paidSince()).toStrictEqual([])
          })
        })
      }
    })
  }

  for (const effect of ['once', 'reconcilable'] as const) {
    it(`was begun on the branch it came from: a person is told, and decides (${effect})`, async () => {
      const thread = hf.thread(payer([effect]), fresh())
      service.breakAfter(1)
      const unknown = await thread.run({ input: {} })
      if (unknown.status !== 'paused') throw new Error(unknown.status)
      expect(unknown.pauses).toMatchObject([{ kind: 'unknown-effect' }])
      const before = service.payments.length
      const past = await thread.history()
      const begun = past.filter(({ kind }) => kind === 'effect' || kind === 'wait')
      expect(begun.length).toBeGreaterThan(1)
      for (const { id } of begun) {
        const fork = await thread.at(id).fork()
        const asked = await fork.run()
        if (asked.status !== 'paused') throw new Error(asked.status)
        expect(asked.pauses).toMatchObject([{ kind: 'permission', question: { begunThere: true } }])
        const inner = await fork.at(asked.checkpoint as string).fork()
        expect(await inner.run()).toMatchObject({ pauses: [{ kind: 'permission', question: { begunThere: true } }] })
        expect(service.payments).toHaveLength(before)
      }
      // What was said of the effect there is no answer to the question here.
      await thread.answer(unknown.pauses[0]?.id as string, { outcome: 'succeeded', result: 'paid' })
      const answered = (await thread.history())[0]?.id as string
      const late = await thread.at(answered).fork()
      const asked = await late.run()
      if (asked.status !== 'paused') throw new Error(asked.status)
      expect(asked.pauses).toMatchObject([{ kind: 'permission', question: { begunThere: true } }])
      expect(service.payments).toHaveLength(before)
      // Allowed, and broken again: now it is this branch's own effect that nobody knows of.
      await late.answer(asked.pauses[0]?.id as string, { allowed: true })
      service.breakAfter(1)
      const broken = await late.run()
      expect(broken).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
      expect(await late.run()).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
      expect(service.payments).toHaveLength(before + 1)
      const pause = broken.status === 'paused' ? broken.pauses[0]?.id : undefined
      await late.answer(pause as string, { outcome: 'not-executed' })
      expect(await late.run()).toMatchObject({ status: 'completed' })
      expect(service.payments).toHaveLength(before + 2)
      expect(await thread.run()).toMatchObject({ status: 'completed', output: ['paid'] })
      expect(service.payments).toHaveLength(before + 2)
    })
  }
})

const sqlBackends: Backend[] = (await durableBackends()).filter(({ name }) => name === 'SQLite' || name === 'Postgres')

describe('a transaction', () => {
  for (const backend of sqlBackends) {
    it.skipIf(backend.missing)(
      `is not repeated by a fork or a replay without permission, on ${backend.name}`,
      async () => {
        const url = await backend.fresh()
        await using store = await openHoldfast(url)
        const table = await makeUserTable(backend, url)
        const program = flow({ name: 'orders', ...VERSION }, async (ctx, id: string) => {
          const order = await ctx.transaction('insert', async (sql) => {
            await sql.query(`INSERT INTO ${table.name} (id, n) VALUES (${table.mark(1)}, 1)`, [`${id}-${ctx.branch}`])
            return `${id}-${ctx.branch}`
          })
          return ctx.step('after', () => `${order} done`)
        })
        const thread = store.thread(program, 'orders')
        expect(await thread.run({ input: 'o' })).toMatchObject({ output: 'o-main done' })
        expect(await thread.replay()).toMatchObject({ status: 'identical', output: 'o-main done' })
        const past = await thread.history()
        const start = past.at(-1)?.id as string
        expect(await thread.at(past[1]?.id as string).run()).toMatchObject({ output: 'o-main done' })
        const fork = await thread.at(start).fork({ name: 'asks' })
        const asked = await fork.run()
        if (asked.status !== 'paused') throw new Error(asked.status)
        expect(asked.pauses).toMatchObject([{ kind: 'permission', question: { effect: 'once', step: 'insert' } }])
        const denied = await thread.at(start).run({ effects: 'deny' })
        expect(denied).toMatchObject({ status: 'failed', error: { code: 'step-failed' } })
        expect(await table.ids()).toStrictEqual(['o-main'])
        await fork.answer(asked.pauses[0]?.id as string, { allowed: false, result: 'invented' })
        expect(await fork.run()).toMatchObject({ output: 'invented done' })
        expect(await table.ids()).toStrictEqual(['o-main'])
        expect(await thread.at(start).run({ effects: 'allow', name: 'runs' })).toMatchObject({ output: 'o-runs done' })
        expect(await table.ids()).toStrictEqual(['o-main', 'o-runs'])
      },
    )
  }
})
