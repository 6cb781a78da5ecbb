// @ts-check
import { flow } from 'holdfast'
import { connectService } from './service-client.mjs'

/** @typedef {{ session: string, hold: string }} SlowInput */
/** @typedef {{ session: string, way: 'sleep' | 'expire' | 'answer' | 'signal', ms?: number }} PatientInput */

/**
 * Programs that try a worker: one that takes long in the middle, one that waits, one that kills whoever runs it.
 * @param {{ service: string }} options
 */
export function makeWorkerPrograms({ service: url }) {
  const service = connectService(url)

  /** Says which worker did what: `ctx.context.worker`. */
  const slow = flow({ name: 'slow', version: '1.0.0' }, async (ctx, /** @type {SlowInput} */ { session, hold }) => {
    const { worker } = /** @type {{ worker: string }} */ (ctx.context)
    const first = await ctx.step('first', () => worker)
    const held = await ctx.step('hold', { effect: 'idempotent' }, async (step) => {
      await step.store.scope({ session }).collection('held').put('by', { worker })
      const key = step.idempotencyKey
      await service.effect({ kind: 'idempotent', session, step: 'hold', key, hold }, step.abortSignal)
      return worker
    })
    /** @param {string} key @returns {Promise<import('holdfast').Reconciled<string>>} */
    const reconcile = async (key) => {
      const found = await service.outcome(key)
      return found.executed ? { outcome: 'executed', result: worker } : { outcome: 'not-executed' }
    }
    const after = await ctx.step('after', { effect: 'reconcilable', reconcile }, async (step) => {
      await service.effect({ kind: 'reconcilable', session, step: 'after', key: step.idempotencyKey }, step.abortSignal)
      return worker
    })
    return { first, held, after }
  })

  const patient = flow({ name: 'patient', version: '1.0.0' }, async (ctx, /** @type {PatientInput} */ input) => {
    const { way, ms = 2000 } = input
    if (way === 'sleep') await ctx.sleep(ms)
    if (way === 'expire') return ctx.pause('go on?', { expiresInMs: ms, onExpire: { answer: 'expired' } })
    if (way === 'answer') return ctx.pause('go on?')
    if (way === 'signal') return ctx.receive('go')
    return way
  })

  const poison = flow({ name: 'poison', version: '1.0.0' }, async (ctx) => {
    await ctx.step('harmless', () => 'done')
    await ctx.step('deadly', () => {
      process.kill(process.pid, 'SIGKILL')
      return new Promise(() => {})
    })
  })

  return { slow, patient, poison }
}
