import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { flow, openHoldfast } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-progress-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe('the count of claims without progress', () => {
  it('begins anew when a transaction is recorded', async () => {
    await using hf = await openHoldfast(`sqlite:${join(folder, 'store.db')}`)
    const claims = async () => (await hf.log('order')).fold.state['claims'] as number
    const seen: number[] = []
    let calls = 0
    const book = flow({ name: 'book', version: '1.0.0' }, async (ctx) => {
      await ctx.step('begin', () => 'begun')
      if (++calls === 1) await ctx.step('hang', () => new Promise(() => {}))
      seen.push(await claims())
      await ctx.transaction('book', (sql) => sql.query('SELECT 1').then(() => 'booked'))
      seen.push(await claims())
    })
    const thread = hf.thread(book, 'order')
    const lost = thread.run({ input: 'go', leaseMs: 300 }).catch((error: unknown) => error)
    while (calls === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    const taken = await (await hf.log('order')).claim({ owner: 'another', ms: 1000, force: true })
    expect(await lost).toMatchObject({ code: 'fenced' })
    await taken.release()
    expect(await thread.run()).toMatchObject({ status: 'completed' })
    expect(seen).toEqual([1, 0])
  })
})
