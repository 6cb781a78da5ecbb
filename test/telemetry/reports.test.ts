import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { reportMetrics } from '#src/holdfast/metrics-store.js'
import { Figures } from '#src/telemetry/figures.js'
import { Flusher } from '#src/telemetry/flusher.js'
import { Telemetry } from '#src/telemetry/telemetry.js'
import { flow, Holdfast, mergeMetrics, openHoldfast } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { UnavailableError } from 'holdfast/errors'
import { LogStore } from 'holdfast/log'
import type { ProcessMetrics } from 'holdfast/types'
import { startModelServer } from 'holdfast/testing'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { calls } from '../agent/agent-setup.js'
import { holdfast, parsed } from '../cli/command.js'
import { durableBackends } from '../support/backends.js'
import { until } from '../support/until.js'
import { makeSlowAgent } from './slow-agent.mjs'

const CHILD = fileURLToPath(new URL('./children/slow.mjs', import.meta.url))
const backends = await durableBackends()
const folder = mkdtempSync(join(tmpdir(), 'holdfast-telemetry-'))
const open: { close(): Promise<unknown> }[] = []
let stores = 0

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close()
})
afterAll(async () => {
  for (const backend of backends) await backend.cleanup()
  rmSync(folder, { recursive: true, force: true })
})

function fresh(): string {
  return `sqlite:${join(folder, `${stores++}.db`)}`
}

const steps = flow({ name: 'steps', version: '1.0.0' }, async (ctx, count: number) => {
  for (let key = 0; key < count; key++) await ctx.step('one', { key }, () => key)
})

/** A store whose calls are counted, and can be made to fail. */
async function watched(everyMs: number) {
  const driver = await openDriver('memory:')
  const called: string[] = []
  const world = { down: false }
  const proxy = new Proxy(driver, {
    get(target, name) {
      const value = Reflect.get(target, name, target) as unknown
      if (typeof value !== 'function') return value
      return (...args: unknown[]) => {
        called.push(String(name))
        if (world.down && name !== 'close')
          return Promise.reject(new UnavailableError('the store is away', { written: 'nothing' }))
        return value.apply(target, args)
      }
    },
  }) as Driver
  const telemetry = await Telemetry.open({ tracerProvider: false, meterProvider: false })
  const store = new LogStore(proxy, { observer: telemetry, retryMs: 60_000 })
  reportMetrics(store, telemetry, everyMs)
  const hf = new Holdfast(store)
  open.push(hf)
  return { hf, called, world }
}

describe('what a process counts', () => {
  it('costs no call to the store by the step', async () => {
    const { hf, called } = await watched(3_600_000)
    await hf.thread(steps, 'warm').run({ input: 1 })
    const cost = async (count: number) => {
      called.length = 0
      await hf.thread(steps, `t-${count}`).run({ input: count })
      return [...called]
    }
    const [few, many] = [await cost(2), await cost(12)]
    // A look at what this process knows already is none.
    const calls = (names: readonly string[]) => names.filter((name) => name !== 'hasSubscribers').length
    expect(calls(many) - calls(few)).toBe(10)
    expect(many).not.toContain('writeItems')
  })

  it('is reported when there is news, and not when there is none', async () => {
    const { hf, called } = await watched(100)
    const reports = () => called.filter((name) => name === 'writeItems').length
    await hf.thread(steps, 't').run({ input: 2 })
    await until(() => reports() > 0)
    // The first report may have come in the middle of the run: what was counted since is reported by now.
    await hf.metrics()
    called.length = 0
    await new Promise((resolve) => setTimeout(resolve, 350))
    expect(called).toEqual([])
    await hf.thread(steps, 't').run({ input: 3 })
    await until(() => reports() > 0)
    expect(mergeMetrics(await hf.metrics())).toMatchObject({
      processes: 1,
      counters: { 'holdfast.runs.started': 2, 'holdfast.runs.completed': 2 },
    })
  })

  it('is reported to the last when asked for, also while an earlier report is under way', async () => {
    const figures = new Figures()
    const written: (number | undefined)[] = []
    const gate = new AbortController()
    const write = async ({ counters }: ProcessMetrics) => {
      if (!gate.signal.aborted) await once(gate.signal, 'abort')
      written.push(counters['holdfast.conflicts'])
    }
    const flusher = new Flusher(figures, write, { everyMs: 3_600_000, process: 'me', now: () => 0 })
    open.push(flusher)
    figures.record('holdfast.checkpoint.bytes', 1)
    figures.count('holdfast.conflicts', 1)
    const earlier = flusher.flush()
    figures.count('holdfast.conflicts', 1)
    const asked = flusher.flush()
    gate.abort()
    await Promise.all([earlier, asked])
    expect(written).toStrictEqual([1, 2])
  })

  it('is not reported by who only reads', async () => {
    const url = fresh()
    const writer = await openHoldfast(url, { telemetry: false })
    await writer.thread(steps, 't').run({ input: 1 })
    await writer.close()
    const reader = await openHoldfast(url)
    await reader.thread(steps, 't').state()
    await reader.close()
    const again = await openHoldfast(url)
    open.push(again)
    expect(await again.metrics()).toEqual([])
  })

  it('holds each effect of which nobody knows, whether a person is asked or the run fails', async () => {
    await using hf = await openHoldfast('memory:', { telemetry: { tracerProvider: false, meterProvider: false } })
    const unsure = flow({ name: 'unsure', version: '1.0.0' }, (ctx, effect: 'once' | 'idempotent') =>
      ctx.step('charge', { effect, retry: { attempts: 1 } }, () => {
        throw new Error('timed out')
      }),
    )
    expect(await hf.thread(unsure, 'asks').run({ input: 'once' })).toMatchObject({ status: 'paused' })
    expect(await hf.thread(unsure, 'fails').run({ input: 'idempotent' })).toMatchObject({ status: 'failed' })
    expect(mergeMetrics(await hf.metrics()).counters).toMatchObject({ 'holdfast.effects.unknown': 2 })
  })

  it('is kept while the store is away, disturbs no run, and does not hold up closing', async () => {
    const { hf, called, world } = await watched(100)
    await hf.thread(steps, 't').run({ input: 1 })
    world.down = true
    called.length = 0
    await until(() => called.includes('writeItems'))
    world.down = false
    expect(await hf.thread(steps, 't').run({ input: 2 })).toMatchObject({ status: 'completed' })
    await until(async () => {
      const { counters } = mergeMetrics(await hf.metrics())
      return counters['holdfast.runs.completed'] === 2
    })
    await hf.thread(steps, 't').run({ input: 3 })
    world.down = true
    await hf.close()
  })

  it('is not among the collections that people see, and lives for a day', async () => {
    const url = fresh()
    const hf = await openHoldfast(url, { telemetry: { flushEveryMs: 100 } })
    open.push(hf)
    await hf.store.scope({ user: 'u' }).collection('notes').put('a', 'text')
    await hf.thread(steps, 't').run({ input: 1 })
    expect(await hf.metrics()).toHaveLength(1)
    const { collections } = await hf.store.collections()
    expect(collections).toEqual([{ scope: { user: 'u' }, collection: 'notes' }])
    const { items } = await hf.store.scope({ holdfast: 'metrics' }).collection('processes').list()
    const [report] = items
    const left = (report?.expiresAt?.getTime() ?? 0) - Date.now()
    expect(left).toBeGreaterThan(23 * 3_600_000)
    expect(left).toBeLessThanOrEqual(24 * 3_600_000)
  })

  it('is of the store and not of a tenant, and gives no tenant a key', async () => {
    const keys = { current: 'k1', masters: { k1: Buffer.alloc(32, 7) } }
    const url = fresh()
    const sealed = await openHoldfast(url, { keys })
    await sealed.tenant('acme').thread(steps, 't').run({ input: 1 })
    expect(mergeMetrics(await sealed.tenant('other').metrics()).counters['holdfast.runs.completed']).toBe(1)
    await sealed.close()
    // A process without keys is refused where there are some.
    const plain = await openHoldfast(url)
    open.push(plain)
    expect(await plain.thread(steps, 't').run({ input: 1 })).toMatchObject({ status: 'completed' })
  })

  it('adds up over several openings of a store in one process', async () => {
    const url = fresh()
    const all = await Promise.all([openHoldfast(url), openHoldfast(url)])
    for (const [i, hf] of all.entries()) await hf.thread(steps, `t-${i}`).run({ input: 1 })
    for (const hf of all) await hf.close()
    const hf = await openHoldfast(url)
    open.push(hf)
    const merged = mergeMetrics(await hf.metrics())
    expect(merged).toMatchObject({ processes: 1, counters: { 'holdfast.runs.completed': 2 } })
  })
})

describe.each(backends)('a worker that is killed ($name)', ({ missing, fresh }) => {
  it.skipIf(missing)('leaves its figures, and who takes over adds the takeover and what it saved', async () => {
    const usage = { input: 200, output: 50 }
    const server = await startModelServer({
      reply: ({ messages }) =>
        messages.some(({ role }) => role === 'tool')
          ? { text: 'Done.', usage }
          : { ...(calls(['wait']) as object), usage },
    })
    open.push(server)
    const url = await fresh()
    const child: ChildProcess = spawn(process.execPath, [CHILD, url, 't', server.url], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout as NodeJS.ReadableStream, 'data')
    const hf = await openHoldfast(url)
    open.push(hf)
    await until(async () => mergeMetrics(await hf.metrics()).counters['holdfast.tokens.input'] === usage.input)
    const killed = once(child, 'exit')
    child.kill('SIGKILL')
    await killed
    const thread = hf.thread(makeSlowAgent(server.url, undefined), 't')
    await until(async () => (await thread.run()).status === 'completed', 100)
    const { counters, histograms, processes, models } = mergeMetrics(await hf.metrics())
    expect(processes).toBe(2)
    expect(counters).toMatchObject({
      'holdfast.runs.started': 1,
      'holdfast.runs.completed': 1,
      'holdfast.takeovers': 1,
      'holdfast.resume.attempts': 1,
      'holdfast.resume.succeeded': 1,
      'holdfast.tokens.input': 400,
      'holdfast.tokens.output': 100,
      'holdfast.tokens.saved': 250,
    })
    expect(models).toEqual({ 'local/scripted': { input: 400, output: 100, cached: 0 } })
    const takeover = histograms['holdfast.takeover.duration']
    // The lease of a second had to run out.
    expect(takeover?.sum).toBeGreaterThan(900)
    const stats = parsed(await holdfast(['stats', '--store', url, '--json']))
    expect(stats.processes).toMatchObject({
      processes: 2,
      counters: { 'holdfast.takeovers': 1 },
      rates: { completed: 1, failed: 0, resumed: 1, tokensSaved: 250 / 750 },
      histograms: { 'holdfast.checkpoint.save.duration': { p50: expect.any(Number), p99: expect.any(Number) } },
    })
    // The entries say the same as the processes.
    expect(stats.sample).toMatchObject({
      runs: { started: 1, completed: 1 },
      resumes: { attempts: 1, succeeded: 1, takeovers: 1 },
      tokens: { spent: 500, savedByResuming: 250 },
    })
    const plain = await holdfast(['stats', '--store', url])
    expect(plain).toMatchObject({ code: 0, err: '' })
    expect(plain.out).toMatch(/takeovers: +1\n/)
    expect(plain.out).toMatch(/saved by resuming: 250 \(33 %\)/)
    expect(plain.out).toMatch(/^save\t\d+\t≤ .+\t≤ .+\t.+ ms$/m)
    expect(plain.out).toContain('local/scripted\t400\t0\t100')
  })
})

describe('holdfast stats', () => {
  it('warns when what processes counted says that workers die or resumes fail', async () => {
    const url = fresh()
    const hf = await openHoldfast(url, { telemetry: false })
    const counters = {
      'holdfast.runs.started': 40,
      'holdfast.takeovers': 12,
      'holdfast.resume.attempts': 20,
      'holdfast.resume.succeeded': 15,
    }
    const report = { process: 'host:1', startedAt: 1, at: 2, counters, histograms: {} }
    await hf.store.scope({ holdfast: 'metrics' }).collection<unknown>('processes').put('host:1', report)
    await hf.close()
    const { warnings } = parsed(await holdfast(['stats', '--store', url, '--json']))
    expect(warnings).toEqual([
      expect.stringContaining('12 takeovers in 40 runs'),
      expect.stringContaining('15 of 20 resumes'),
    ])
  })
})
