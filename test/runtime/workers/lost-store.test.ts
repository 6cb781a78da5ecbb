import { Redis } from 'ioredis'
import { flow, type Holdfast, openHoldfast } from 'holdfast'
import { afterEach, describe, expect, it } from 'vitest'
import { removeKeys } from '../../support/redis-keys.js'
import { redisUrl } from '../../support/servers.js'

const url = await redisUrl()
const open: { close(): Promise<unknown> }[] = []

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})

const count = flow({ name: 'count', version: '1.0.0' }, (ctx, n: number) => ctx.step('n', () => n))

describe.skipIf(url === undefined)('a Redis that lost the whole store under a running process', () => {
  it('is refused with an advice that works: opened again, threads begin anew and say so', async () => {
    const prefix = `lost-${process.pid}-${Date.now()}`
    const server = new Redis(url as string)
    open.push({ close: () => removeKeys(server, prefix).then(() => server.quit()) })
    const start = async (): Promise<Holdfast> => {
      const hf = await openHoldfast(`${url}?prefix=${prefix}`)
      open.push(hf)
      return hf
    }
    const hf = await start()
    const thread = hf.thread(count, 't')
    await thread.run({ input: 1, key: 'one' })
    await removeKeys(server, prefix)
    for (let i = 0; i < 2; i++) {
      const error = await thread.run({ input: 2, key: 'two', expect: 'existing' }).catch((reason) => reason)
      expect(error).toMatchObject({ code: 'data-loss' })
      expect(error.remedy).toContain('openHoldfast()')
      expect(error.remedy).toContain("expect: 'existing'")
    }
    const again = (await start()).thread(count, 't')
    expect(await again.run({ input: 2, key: 'two', expect: 'existing' })).toMatchObject({
      status: 'completed',
      output: 2,
      restarted: true,
      input: 'taken',
    })
    expect(await again.run({ input: 3, expect: 'existing' })).toMatchObject({ output: 3, restarted: false })
  })
})
