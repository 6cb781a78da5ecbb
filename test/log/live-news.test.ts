import { randomBytes } from 'node:crypto'
import { flow, Holdfast } from 'holdfast'
import { LogStore, type LogStoreOptions } from 'holdfast/log'
import { createMemoryStore } from '#src/drivers/memory/memory-store.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { MESSAGE_BYTES } from '#src/log/contract.js'
import { describe, expect, it } from 'vitest'
import { until } from '../support/until.js'

const NAME = 'thread "t"'

async function twoStores(options: LogStoreOptions = {}) {
  const store = createMemoryStore()
  const published: string[] = []
  const open = async () => {
    const driver = await openMemory({ store })
    const publish = driver.publish?.bind(driver)
    driver.publish = (topic, message) => {
      published.push(message)
      publish?.(topic, message)
    }
    return new LogStore(driver, options)
  }
  return { here: await open(), there: await open(), published }
}

describe('live events', () => {
  it('cost nothing but a look while nobody listens', async () => {
    const { here, published } = await twoStores()
    for (let i = 0; i < 100; i++) here.news.live.tell(NAME, { i })
    await here.close()
    expect(published).toEqual([])
  })

  it('travel many in a message, none larger than fits, and what does not fit is left out', async () => {
    const { here, there, published } = await twoStores()
    const heard: unknown[] = []
    there.news.live.listen(NAME, (event, isElsewhere) => heard.push([event, isElsewhere]))
    there.news.live.listen('thread "other"', () => heard.push('other'))
    await until(() => there.news.live.isListening)
    const events = Array.from({ length: 300 }, (_, i) => ({ i, text: 'é'.repeat(60) }))
    for (const event of events) here.news.live.tell(NAME, event)
    here.news.live.tell(NAME, { large: 'x'.repeat(MESSAGE_BYTES) })
    const circular: { self?: unknown } = {}
    circular.self = circular
    here.news.live.tell(NAME, circular)
    here.news.live.tell(NAME, 'last')
    await until(() => heard.length >= events.length + 1)
    expect(heard).toEqual([...events, 'last'].map((event) => [event, true]))
    for (const message of published) expect(Buffer.byteLength(message)).toBeLessThanOrEqual(MESSAGE_BYTES)
    expect(published.length).toBeLessThan(50)
    await Promise.all([here.close(), there.close()])
  })

  it('are heard once in their own process, and not as from elsewhere', async () => {
    const { here } = await twoStores()
    const heard: unknown[] = []
    const end = here.news.live.listen(NAME, (event, isElsewhere) => heard.push([event, isElsewhere]))
    here.news.live.tell(NAME, 1)
    await here.news.live.close()
    end()
    expect(heard).toEqual([[1, false]])
    await here.close()
  })

  it('stay in their process where the store has keys: what is encrypted there must not pass it in the clear', async () => {
    const { here, there, published } = await twoStores({ keys: { current: 'k', masters: { k: randomBytes(32) } } })
    const heard: unknown[] = []
    there.news.live.listen(NAME, (event) => heard.push(event))
    here.news.live.listen(NAME, (event) => heard.push(event))
    here.news.live.tell(NAME, 'secret')
    await here.close()
    await there.close()
    expect(heard).toEqual(['secret'])
    expect(published).toEqual([])
  })

  it('that are none of a run are passed over', async () => {
    const { here, there } = await twoStores()
    const hf = new Holdfast(there)
    const heard: unknown[] = []
    hf.onLive(NAME, (event) => heard.push(event))
    await until(() => there.news.live.isListening)
    for (const bad of [null, 1, {}, { type: 'run', id: 'x', step: 's' }, { type: 'token', id: 1, step: 's' }]) {
      here.news.live.tell(NAME, bad)
    }
    here.news.live.tell(NAME, { type: 'token', id: 'main~1~000000000000', step: 's' })
    await until(() => heard.length > 0)
    expect(heard).toHaveLength(1)
    await Promise.all([here.close(), hf.close()])
  })

  it('of a program reach whoever follows the thread with live: true', async () => {
    const { here } = await twoStores()
    const hf = new Holdfast(here)
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const program = flow({ name: 'p', version: '1.0.0' }, (ctx) =>
      ctx.step('s', async (step) => {
        await held
        step.emit('hello')
      }),
    )
    const seen: string[] = []
    const reading = (async () => {
      for await (const event of hf.inspect('t').events({ live: true })) {
        if (event.type === 'checkpoint') release()
        seen.push(event.type)
      }
    })()
    await hf.thread(program, 't').run({ input: 1 })
    await reading
    expect(seen.filter((type) => type === 'custom')).toEqual(['custom'])
    await hf.close()
  })
})
