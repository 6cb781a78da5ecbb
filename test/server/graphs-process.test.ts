import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client } from '@langchain/langgraph-sdk'
import { afterAll, describe, expect, it } from 'vitest'
import { durableBackends } from '../support/backends.js'
import { until } from '../support/until.js'
import { setUpProcesses } from './serve-process.js'

const config = fileURLToPath(new URL('graphs/langgraph.json', import.meta.url))
const backends = (await durableBackends()).filter(({ name }) => name === 'SQLite' || name === 'Postgres')
const folder = mkdtempSync(join(tmpdir(), 'holdfast-graphs-'))
const { serve, TOKEN } = setUpProcesses(config)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.each(backends)('holdfast serve langgraph.json on $name', ({ name, missing, fresh, cleanup }) => {
  afterAll(cleanup)

  it.skipIf(missing)('is killed in mid-run and while it asks, and another process goes on', async () => {
    const store = await fresh()
    const [gate, trail] = [join(folder, `gate-${name}`), join(folder, `trail-${name}`)]
    const first = await serve(store, ['--lease', '3s'])
    let { url } = first.ready
    // One address, as a load balancer gives: whichever server is there.
    const client = new Client({
      apiUrl: 'http://balancer',
      apiKey: TOKEN,
      callerOptions: {
        maxRetries: 0,
        fetch: (input: string, init: RequestInit) => fetch(String(input).replace('http://balancer', url), init),
      },
    })
    const { thread_id: id } = await client.threads.create()
    const input = { gate, trail, log: ['in'] }
    const { run_id: run } = await client.runs.create(id, 'orders', { input })
    await until(async () => (await client.threads.getState(id)).next[0] === 'wait')
    first.child.kill('SIGKILL')
    await first.ended
    const second = await serve(store, ['--lease', '3s'])
    url = second.ready.url
    writeFileSync(gate, '')
    const paused = (await client.runs.join(id, run)) as unknown as Values
    expect(paused.log).toEqual(['in', 'found', 'waited'])
    expect(paused.by).toEqual([first.child.pid, second.child.pid])
    expect(paused.__interrupt__).toMatchObject([{ value: { ask: 'How much?' } }])

    second.child.kill('SIGKILL')
    await second.ended
    const third = await serve(store, ['--lease', '3s'])
    url = third.ready.url
    expect((await client.threads.getState(id)).next).toEqual(['approve'])
    const again = (await client.runs.wait(id, 'orders', { command: { resume: 5 } })) as unknown as Values
    expect(again.__interrupt__).toMatchObject([{ value: { ask: 'Really?', amount: 5 } }])
    const done = (await client.runs.wait(id, 'orders', { command: { resume: true } })) as unknown as Values
    expect(done.log).toEqual(['in', 'found', 'waited', '5 true', 'done'])
    expect(done.by).toEqual([first.child.pid, second.child.pid, third.child.pid])
    // What was on record when a process died did not happen again.
    const lines = readFileSync(trail, 'utf8').trim().split('\n')
    expect(lines.filter((line) => line === 'find')).toHaveLength(1)
    expect([...new Set(lines)]).toEqual(['find', 'wait', 'asked 5 true', 'done'])
    const history = await client.threads.getHistory(id, { limit: 20 })
    expect(history.map(({ next }) => next[0] ?? null)).toEqual([null, 'done', 'approve', 'wait', 'find', '__start__'])
  })
})

describe('the example of a served graph', () => {
  it('asks about large amounts only', async () => {
    const example = fileURLToPath(new URL('../../examples/langgraph/langgraph.json', import.meta.url))
    const { ready } = await serve('memory:', [], undefined, example)
    const client = new Client({ apiUrl: ready.url, apiKey: TOKEN, callerOptions: { maxRetries: 0 } })
    const { thread_id: id } = await client.threads.create()
    const run = (payload: object) => client.runs.wait(id, 'returns', payload as never)
    expect(await run({ input: { orderId: 'ORD-1' } })).toMatchObject({ decision: 'refunded 89.9' })
    expect(await run({ input: { orderId: 'ORD-2' } })).toMatchObject({
      __interrupt__: [{ value: { ask: 'Refund 420 for ORD-2?' } }],
    })
    expect(await run({ command: { resume: 'yes' } })).toMatchObject({ decision: 'refunded 420' })
  })
})

interface Values {
  readonly log: readonly string[]
  readonly by: readonly number[]
  readonly __interrupt__: readonly unknown[]
}
