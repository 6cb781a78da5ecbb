// @ts-check
import { END, flow, graph, last, merge, START } from 'holdfast'
import { connectService } from './service-client.mjs'

/** @typedef {{ session: string, sleepMs?: number }} SessionInput */
/** @typedef {import('holdfast').Context<any>} AnyContext */

const RETRY = { attempts: 20, initialMs: 10, maxMs: 200 }

/**
 * A flow and a graph that do the same: all four kinds of effects, two of them side by side, a write to the store, and
 * where the database can, rows of their own in the transaction that records them.
 * @param {{ service: string, table?: string | undefined, mark?: string }} options
 */
export function makePrograms({ service: url, table, mark = '?' }) {
  const service = connectService(url)

  /** @param {string} kind @param {string} session @param {string} step */
  const call = (kind, session, step) => async (/** @type {import('holdfast').StepContext} */ ctx) =>
    service.effect({ kind, session, step, key: ctx.idempotencyKey }, ctx.abortSignal)

  /** @param {string} key @returns {Promise<import('holdfast').Reconciled<string>>} */
  const reconcile = async (key) => {
    const answer = await service.outcome(key)
    return answer.executed ? { outcome: 'executed', result: answer.receipt } : { outcome: 'not-executed' }
  }

  /** @param {AnyContext} ctx @param {string} session */
  const look = (ctx, session) =>
    ctx.step('look', { effect: 'read', retry: RETRY }, async (step) => {
      await step.store.scope({ session }).collection('seen').put('look', { session })
      return call('read', session, 'look')(step)
    })
  /** @param {AnyContext} ctx @param {string} session */
  const pay = (ctx, session) =>
    ctx.step('pay', { effect: 'idempotent', retry: RETRY, input: session }, call('idempotent', session, 'pay'))
  /** @param {AnyContext} ctx @param {string} session */
  const ship = (ctx, session) =>
    ctx.step('ship', { effect: 'reconcilable', retry: RETRY, reconcile }, call('reconcilable', session, 'ship'))
  /** @param {AnyContext} ctx @param {string} session */
  const mail = (ctx, session) => ctx.step('mail', { effect: 'once', retry: RETRY }, call('once', session, 'mail'))
  /** @param {AnyContext} ctx @param {string} session */
  const book = async (ctx, session) => {
    if (table === undefined) return
    const insert = async (/** @type {import('holdfast/driver').SqlSession} */ sql) => {
      await sql.query(`INSERT INTO ${table} (id) VALUES (${mark})`, [session])
    }
    // A machine that does nothing but this is slow; running out of time would be a failure, and no crash.
    await ctx.transaction('book', { timeoutMs: 30_000 }, insert)
  }

  const flowProgram = flow(
    { name: 'torture-flow', version: '1.0.0' },
    async (ctx, /** @type {SessionInput} */ { session, sleepMs }) => {
      await look(ctx, session)
      const [paid, shipped] = await Promise.all([pay(ctx, session), ship(ctx, session)])
      if (sleepMs) await ctx.sleep(sleepMs)
      await book(ctx, session)
      return { receipts: { pay: paid, ship: shipped, mail: await mail(ctx, session) } }
    },
  )

  const graphProgram = graph({
    name: 'torture-graph',
    version: '1.0.0',
    state: {
      session: /** @type {import('holdfast').StateKey<string, string, true>} */ (last(undefined, { initial: '' })),
      receipts: merge(undefined, { initial: /** @type {Record<string, string>} */ ({}) }),
    },
  })
    .node('look', async ({ session }, ctx) => {
      await look(ctx, session)
      return {}
    })
    .node('pay', {
      effect: 'idempotent',
      retry: RETRY,
      run: async ({ session }, ctx) => ({
        receipts: {
          pay: await service.effect(
            { kind: 'idempotent', session, step: 'pay', key: ctx.idempotencyKey },
            ctx.abortSignal,
          ),
        },
      }),
    })
    .node('ship', async ({ session }, ctx) => ({ receipts: { ship: await ship(ctx, session) } }))
    .node('book', async ({ session }, ctx) => {
      await book(ctx, session)
      return {}
    })
    .node('mail', async ({ session }, ctx) => ({ receipts: { mail: await mail(ctx, session) } }))
    .edge(START, 'look')
    .edge('look', 'pay')
    .edge('look', 'ship')
    .edge(['pay', 'ship'], 'book')
    .edge('book', 'mail')
    .edge('mail', END)

  return { flow: flowProgram, graph: graphProgram }
}
