// @ts-check
import { NotExecutedError } from 'holdfast'

/** @typedef {{ effects: import('./service.mjs').HappenedEffect[], calls: import('./service.mjs').Call[], faults: Record<string, number> }} Ledger */

/** What programs and checks ask of service.mjs. @param {string} url */
export function connectService(url) {
  /** @param {string} path @param {unknown} body @param {AbortSignal} [signal] */
  const post = async (path, body, signal) =>
    fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body), ...(signal ? { signal } : {}) })
  return {
    /** @param {import('./service.mjs').Call} call @param {AbortSignal} [signal] @returns {Promise<string>} */
    async effect(call, signal) {
      const response = await post('/effect', call, signal)
      const { receipt } = /** @type {{ receipt: string }} */ (await response.json())
      if (response.status === 409) throw new NotExecutedError('The service refused the call.')
      return receipt
    },
    /** @param {string} key @returns {Promise<{ executed: true, receipt: string } | { executed: false }>} */
    async outcome(key) {
      return /** @type {any} */ (await (await post('/outcome', { key })).json())
    },
    /** Lets the service answer the calls with this `hold`, those to come included. @param {string} hold */
    async release(hold) {
      await post('/release', { hold })
    },
    /** @returns {Promise<Ledger>} */
    async ledger() {
      return /** @type {any} */ (await (await fetch(`${url}/ledger`)).json())
    },
  }
}
