import { agent, Holdfast } from 'holdfast'
import { LogStore } from 'holdfast/log'
import { createMemoryStore } from '#src/drivers/memory/memory-store.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { describe, expect, it } from 'vitest'
import { pacedModel } from './paced-model.js'
import { events, setUpServers } from './server-setup.js'

describe('a server beside workers', () => {
  const { serve, onClose } = setUpServers()

  it('shows the tokens of a run in another process, and its records', async () => {
    const store = createMemoryStore()
    const open = async () => new Holdfast(new LogStore(await openMemory({ store })))
    const { model, next } = pacedModel()
    const writer = agent({ name: 'writer', version: '1.0.0', model })
    const [web, elsewhere] = [await open(), await open()]
    onClose(() => Promise.all([web.close(), elsewhere.close()]))
    const server = await serve({ hf: web, programs: [writer], worker: false })
    elsewhere.worker({ programs: [writer], handleSignals: false, graceMs: 0 })
    const response = server.post('/v1/threads/t/runs/stream', { input: 'Write!' })
    const call = await next()
    let isHeard = false
    const speaking = (async () => {
      // What is said before anybody listens is not heard elsewhere.
      while (!isHeard) {
        call.say('word ')
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      call.end()
    })()
    const seen: string[] = []
    for await (const { event, data } of events(await response)) {
      if (event === 'token') isHeard = true
      seen.push(event === 'token' ? String(data['text']) : String(event))
      if (event === 'outcome') break
    }
    await speaking
    expect(seen).toContain('word ')
    expect(seen.at(-1)).toBe('outcome')
  })
})
