import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openShop } from '../../examples/customer-service/shop.js'
import { describe, expect, it } from 'vitest'
import { STOCK } from '../../examples/customer-service/orders.js'
import { makeSupport } from '../../examples/customer-service/support-agent.js'
import { calls, setUp } from './agent-setup.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

const { talk } = setUp()
const bottle = { orderId: 'ORD-2024-8102', sku: 'BOTT-TH-steel-one size', reason: 'It leaks.' }

describe('the customer-service example', () => {
  it('imports nothing but packages and its own files, so that it can be copied', () => {
    const folder = `${root}examples/customer-service/`
    const imported = readdirSync(folder).flatMap((file) =>
      [...readFileSync(folder + file, 'utf8').matchAll(/from '([^']+)'/g)].map(([, name = '']) => name),
    )
    expect(imported.filter((name) => !/^(holdfast(\/|$)|node:|\.\/|zod$|@ai-sdk\/)/.test(name))).toEqual([])
  })

  it('remembers both of two returns that are opened side by side', async () => {
    const shop = await openShop(':memory:', STOCK)
    const { hf, model } = await talk([calls(['initiateReturn', bottle], ['initiateReturn', bottle]), 'Both are open.'])
    const { state } = await hf.thread(makeSupport(model, shop), 't').run({ input: 'Both bottles leak.' })
    expect([...state.rmas].sort()).toEqual(['RMA-10401', 'RMA-10402'])
  })

  it('does not take an earlier return of the same article for the one that was interrupted', async () => {
    const shop = await openShop(':memory:', STOCK)
    const first = shop.openReturn({ ...bottle, quantity: 1 })
    const { hf, model } = await talk([calls(['initiateReturn', bottle]), 'It is open.'])
    const stopped = new Error('The process ends here.')
    const { openReturn } = shop
    // Nothing reaches the shop, and nobody knows: as when the process ends on the way there.
    shop.openReturn = () => {
      shop.openReturn = openReturn
      stream.abort()
      throw stopped
    }
    const stream = hf.thread(makeSupport(model, shop), 't').stream({ input: 'The other bottle leaks, too.' })
    await stream.outcome.catch(() => {})
    const { state } = await hf.thread(makeSupport(model, shop), 't').run()
    expect(state.rmas).not.toContain(first.rma)
    expect(shop.countReturns()).toBe(2)
  })

  it('holds a session of 20 turns without a key: with tools, an approval, a refusal, and restarts', async () => {
    const { MODEL_URL: _url, MODEL_KEY: _key, ...env } = process.env
    const run = promisify(execFile)
    const { stdout } = await run(process.execPath, ['--import', 'tsx', 'examples/customer-service/main.ts'], {
      cwd: root,
      env,
    })
    const said = (who: string) => stdout.split('\n').filter((line) => line.startsWith(who)).length
    expect(said('Maya')).toBe(20)
    expect(said('Support')).toBe(20)
    for (const part of [
      'tracking number PN-4471-0093',
      'size 42, is sold out',
      'initiateReturn of BOOT-FJ-brown-41 waits for a supervisor',
      'your return is RMA-10401',
      'The exchange is arranged (RMA-10402)',
      'arrived 36 days ago',
      'the model is busy',
      'Returns in the shop: 3.',
      '2 resumes saved',
    ]) {
      expect(stdout.replace(/\s+/g, ' ')).toContain(part)
    }
  })
})
