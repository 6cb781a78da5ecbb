import { flow, openHoldfast } from 'holdfast'
import { describe, expect, it } from 'vitest'

describe('one tenant with a thousand threads', () => {
  it('keeps nobody from the first places that get free', async () => {
    await using hf = await openHoldfast('memory:')
    const waiting: (() => void)[] = []
    const order: string[] = []
    let told = () => {}
    const started = () => new Promise<void>((resolve) => (told = resolve))
    const job = flow({ name: 'job', version: '1.0.0' }, (ctx, tenant: string) =>
      ctx.step('work', async () => {
        order.push(tenant)
        told()
        await new Promise<void>((resolve) => waiting.push(resolve))
        return null
      }),
    )
    const flood = Array.from({ length: 1000 }, (_, i) => ({ program: job, thread: `t-${i}`, input: 'flood' }))
    await hf.tenant('flood').enqueue(flood)
    const worker = hf.worker({ programs: [job], concurrency: 5, handleSignals: false, graceMs: 0 })
    while (order.length < 5) await started()
    const others = ['a', 'b', 'c', 'y', 'z']
    for (const tenant of others) {
      await hf.tenant(tenant).enqueue([1, 2].map((i) => ({ program: job, thread: `t-${i}`, input: tenant })))
    }
    // One place gets free at a time.
    const places = 20
    while (order.length < 5 + places) {
      const next = started()
      waiting.shift()?.()
      await next
    }
    expect(order.slice(0, 5)).toEqual(Array(5).fill('flood'))
    const freed = order.slice(5)
    expect(
      others.filter((tenant) => !freed.slice(0, 12).includes(tenant)),
      'each has had a turn',
    ).toEqual([])
    expect(freed.filter((tenant) => tenant !== 'flood')).toHaveLength(10)
    for (const go of waiting) go()
    await worker.stop()
  })
})
