// @ts-check
import { PAYLOAD } from './payload.mjs'

/**
 * DBOS on the same server, in a schema of its own. It is one per process and knows its workflows before it starts.
 * @typedef {object} Peer
 * @property {(id: string, steps: number) => Promise<unknown>} run a workflow of so many steps
 * @property {(id: string, steps: number) => Promise<number>} resume milliseconds from the first line of an interrupted workflow that is resumed until the first step that has no record
 * @property {() => Promise<void>} close
 */

/** @param {{ url: string }} options with the name of the schema @returns {Promise<Peer>} */
export async function open({ url }) {
  const { DBOS } = await import('@dbos-inc/dbos-sdk')
  const address = new URL(url)
  const schema = address.searchParams.get('schema') ?? 'dbos'
  address.searchParams.delete('schema')
  // Where a workflow of `resume` stands.
  let onEntry = () => {}
  let onNewStep = async () => {}
  const steps = DBOS.registerWorkflow(
    async (/** @type {number} */ count) => {
      onEntry()
      for (let i = 0; i < count; i++) await DBOS.runStep(async () => PAYLOAD, { name: 'turn' })
      await DBOS.runStep(() => onNewStep(), { name: 'last' })
      return count
    },
    { name: 'steps' },
  )
  const config = { name: 'bench', systemDatabaseUrl: address.href, systemDatabaseSchemaName: schema }
  DBOS.setConfig({ ...config, applicationVersion: '1', logLevel: 'error' })
  await DBOS.launch()
  const start = (/** @type {string} */ workflowID, /** @type {number} */ count) =>
    DBOS.startWorkflow(steps, { workflowID })(count)
  return {
    run: async (id, count) => (await start(id, count)).getResult(),
    async resume(id, count) {
      const reached = withResolvers()
      const held = withResolvers()
      onNewStep = () => {
        reached.resolve(undefined)
        return held.promise
      }
      const first = await start(id, count)
      await reached.promise
      // Its record stays as it is at the last step, as after a crash.
      await DBOS.cancelWorkflow(id)
      held.resolve(undefined)
      await first.getResult().catch(() => {})
      let began = 0
      let took = 0
      onEntry = () => {
        began = performance.now()
      }
      onNewStep = async () => {
        took = performance.now() - began
      }
      await (await DBOS.resumeWorkflow(id)).getResult()
      onEntry = () => {}
      onNewStep = async () => {}
      if (took === 0) throw new Error('DBOS did not run the step that was left.')
      return took
    },
    close: () => DBOS.shutdown({ deregister: true }),
  }
}

/** @returns {{ promise: Promise<any>, resolve: (value: unknown) => void }} */
function withResolvers() {
  /** @type {(value: unknown) => void} */
  let resolve = () => {}
  const promise = new Promise((done) => {
    resolve = done
  })
  return { promise, resolve }
}
