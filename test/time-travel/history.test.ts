import { append, END, graph, Holdfast, START } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { everyBackend } from '../support/every-backend.js'

const talker = graph({ name: 'talker', version: '1.0.0', state: { messages: append<string>() } })
  .node('say', ({ messages }) => ({ messages: 'x'.repeat(100 * messages.length) }))
  .edge(START, 'say')
  .branch('say', ({ messages }) => (messages.length < 150 ? 'say' : END), ['say', END])

const NEWS = ['publish', 'subscribe', 'hasSubscribers', 'watchChanges']

/** The same driver, which writes down what is read. News of what was written before may still be on their way. */
function watched(driver: Driver): { driver: Driver; calls: string[] } {
  const calls: string[] = []
  const proxy = new Proxy(driver, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        if (!NEWS.includes(String(name))) calls.push(String(name))
        return (value as (...args: unknown[]) => unknown).apply(target, args)
      }
    },
  })
  return { driver: proxy, calls }
}

const backends = await everyBackend()

describe('history', () => {
  for (const backend of backends) {
    it.skipIf(backend.missing)(`reads headers and no bodies, a page at a time, on ${backend.name}`, async () => {
      const { driver, calls } = watched(await openDriver(await backend.fresh()))
      const hf = new Holdfast(new LogStore(driver))
      const thread = hf.thread(talker, 'long')
      await thread.run({ input: { messages: 'begin' }, frequency: { every: 1 }, durability: 'async' })
      calls.length = 0
      const newest = await thread.history({ events: false, limit: 20 })
      expect(newest).toHaveLength(20)
      expect(calls).toStrictEqual(['headers'])
      const all = await hf.inspect('long').history({ events: false, limit: 1000 })
      expect(all).toHaveLength(150)
      expect(all.slice(0, 20)).toStrictEqual(newest)
      const next = await thread.history({ events: false, limit: 120, before: newest.at(-1)?.id as string })
      expect(next).toStrictEqual(all.slice(20, 140))
      const branches = await thread.branches()
      expect(branches).toMatchObject([{ name: 'main', head: newest[0]?.id }])
      expect(new Set(calls)).toStrictEqual(new Set(['headers', 'heads']))
      await hf.close()
      await backend.cleanup()
    })
  }
})
