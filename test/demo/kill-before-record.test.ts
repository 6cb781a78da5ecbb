import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHoldfast } from 'holdfast'
import { startModelServer } from 'holdfast/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startChild } from '#src/demo/child.js'
import { makeCustomers, stockFor } from '#src/demo/shop/customers.js'
import { httpModel } from '#src/demo/http-model.js'
import { playSupport } from '#src/demo/play-support.js'
import { openShop } from '#src/demo/shop/shop.js'
import { makeSupport } from '#src/demo/shop/support-agent.js'
import { until } from '../support/until.js'

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('a kill after the shop has opened a return and before that is recorded', () => {
  it.each([
    ['is found out by asking the shop', 'reconcilable', 0],
    // The count must be able to notice: with this mistake in the program the customer has two returns.
    ['doubles the return of a tool that calls itself a read', 'read', 1],
  ] as const)('%s', async (_, effect, doubles) => {
    const customers = makeCustomers(20, 5)
    const customer = customers.find(({ turns }) => turns.some(({ tools }) => tools.includes('exchangeItem')))
    const turn = customer?.turns.find(({ tools }) => tools.includes('exchangeItem'))
    if (customer === undefined || turn === undefined) throw new Error('Nobody exchanges anything.')
    await using server = await startModelServer({ reply: playSupport })
    const file = join(folder, `${effect}.shop.db`)
    const store = `sqlite:${join(folder, `${effect}.db`)}`
    const shop = await openShop(file, stockFor(customers))
    await using hf = await openHoldfast(store)
    const program = makeSupport({ model: httpModel(server.url, 'scripted-support'), shop })
    const thread = hf.thread(program, customer.thread)
    await thread.enqueue(turn.text, { key: 'turn-1' })
    const settings = {
      store,
      tenant: 'default',
      shop: file,
      modelUrl: server.url,
      concurrency: 4,
      leaseMs: 500,
      effect,
    }
    const start = (name: string, after: number) =>
      startChild<{ type: 'stop' }, { type: string }>('./worker-process.js', {
        ...settings,
        name,
        shopMs: { before: 0, after },
      })

    // Its reply is on its way for a minute: the kill comes in between for certain.
    const first = start('first', 60_000)
    await until(() => shop.countReturns() === 1)
    first.process.kill('SIGKILL')
    await first.ended
    const second = start('second', 0)
    expect(await thread.waitFor({ timeoutMs: 30_000 })).toMatchObject({ status: 'completed' })
    second.send({ type: 'stop' })
    expect(await second.ended).toMatchObject({ code: 0 })
    expect([shop.countReturns(), shop.countDoubles()]).toEqual([1 + doubles, doubles])
    shop.close()
  })
})
