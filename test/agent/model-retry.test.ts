import { APICallError } from '@ai-sdk/provider'
import { type ModelRetryOptions, type RetryContext, retryModel } from '#src/agent/model/attempt/model-retry.js'
import fc from 'fast-check'
import { isHoldfastError, ModelError } from 'holdfast'
import { systemClock } from 'holdfast/driver'
import { InvalidOptionError } from 'holdfast/errors'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'

const model = { provider: 'acme.chat', id: 'm-1' }

function failing(status: number, headers: Record<string, string> = {}): APICallError {
  return new APICallError({
    message: `status ${status}: key sk-verysecretkey1234`,
    url: 'https://api.example?key=verysecret',
    requestBodyValues: { prompt: 'verysecret prompt' },
    statusCode: status,
    responseHeaders: headers,
    responseBody: '',
  })
}

/** Runs attempts on a virtual clock that goes on by itself, and notes when each began. */
async function play(
  outcomes: readonly unknown[],
  options: ModelRetryOptions = {},
  context: Partial<RetryContext> = {},
): Promise<{ result?: unknown; error?: unknown; times: number[]; failures: [number, string, number | undefined][] }> {
  const clock = virtualClock()
  const times: number[] = []
  const failures: [number, string, number | undefined][] = []
  const start = clock.monotonic()
  const attempt = async (n: number) => {
    times.push(clock.monotonic() - start)
    const outcome = outcomes[n - 1]
    if (typeof outcome === 'function') return outcome(clock)
    if (outcome instanceof Error) throw outcome
    return outcome
  }
  const run = retryModel(attempt, options, {
    clock,
    model,
    random: () => 0,
    onFailure: (n, failure, delayMs) => failures.push([n, failure.kind, delayMs]),
    ...context,
  })
  const settled = run.then(
    (result) => ({ result }),
    (error: unknown) => ({ error }),
  )
  let done = false
  settled.finally(() => {
    done = true
  })
  for (let i = 0; i < 200 && !done; i++) await clock.advance(60_000)
  return { ...(await settled), times, failures }
}

describe('retries of a model call', () => {
  it('wait twice as long each time, up to the longest', async () => {
    const { result, times } = await play([...Array.from({ length: 5 }, () => failing(500)), 'ok'], { maxMs: 3000 })
    expect(result).toBe('ok')
    // Half of each pause is random; here that half is 0.
    expect(times).toEqual([0, 250, 750, 1750, 3250, 4750])
  })

  it('never wait less than half of a pause nor more than all of it', async () => {
    await fc.assert(
      fc.asyncProperty(fc.double({ min: 0, max: 0.999, noNaN: true }), async (random) => {
        const { times } = await play([failing(503), failing(503), 'ok'], {}, { random: () => random })
        const pauses = times.slice(1).map((time, i) => time - times[i])
        expect(pauses[0]).toBeGreaterThanOrEqual(250)
        expect(pauses[0]).toBeLessThanOrEqual(500)
        expect(pauses[1]).toBeGreaterThanOrEqual(500)
        expect(pauses[1]).toBeLessThanOrEqual(1000)
      }),
      randomly(rounds(20)),
    )
  })

  it.each([
    ['seconds', { 'retry-after': '7' }, 7000],
    ['milliseconds', { 'retry-after-ms': '1234' }, 1234],
    ['a date', { 'retry-after': 'Wed, 01 Jan 2025 00:00:20 GMT' }, 20_000],
    ['less than our own pause', { 'retry-after': '0' }, 250],
  ])('honour a Retry-After of %s', async (_form, headers, expected) => {
    const { times, result } = await play([failing(429, headers), 'ok'])
    expect(result).toBe('ok')
    expect(times).toEqual([0, expected])
  })

  it('come a little later than asked, so that not all come at once', async () => {
    const { times } = await play([failing(429, { 'retry-after': '10' }), 'ok'], {}, { random: () => 0.5 })
    expect(times[1]).toBe(10_500)
  })

  it('fail at once when the provider asks for more time than there is, and say how much', async () => {
    const { error, times, failures } = await play([failing(429, { 'retry-after': '600' }), 'ok'], { totalMs: 120_000 })
    expect(times).toEqual([0])
    expect(failures).toEqual([[1, 'rate-limit', undefined]])
    expect(error).toMatchObject({ code: 'model', kind: 'rate-limit', retryable: true, data: { retryAfterMs: 600_000 } })
  })

  it.each([400, 401, 403, 404, 422])('are not made after %i', async (status) => {
    const { error, times } = await play([failing(status), 'ok'])
    expect(times).toHaveLength(1)
    expect(error).toMatchObject({ code: 'model', retryable: false, data: { status, attempts: 1 } })
  })

  it.each([408, 409, 429, 500, 502, 503, 504, 529])('are made after %i', async (status) => {
    expect(await play([failing(status), 'ok'])).toMatchObject({ result: 'ok' })
  })

  it('end after so many attempts, each of them reported', async () => {
    const { error, failures } = await play([failing(500), failing(429), failing(500)], { attempts: 3 })
    expect(failures).toEqual([
      [1, 'server', 250],
      [2, 'rate-limit', 500],
      [3, 'server', undefined],
    ])
    expect(error).toBeInstanceOf(ModelError)
    expect((error as Error).message).toMatch(/^The call to acme.chat m-1 failed after 3 attempts \(HTTP 500\)/)
  })

  it('end after so much time', async () => {
    const { error, times } = await play(
      Array.from({ length: 99 }, () => failing(500)),
      { attempts: 99, totalMs: 10_000 },
    )
    expect(error).toMatchObject({ code: 'model', kind: 'server' })
    expect(Math.max(...times)).toBeLessThanOrEqual(10_000)
    expect(times.length).toBeGreaterThan(3)
  })

  it('are made of a reply that broke off late: what it took to write is not held against it', async () => {
    const late = async (clock: ReturnType<typeof virtualClock>) => {
      await clock.sleep(9 * 60_000)
      throw failing(502)
    }
    expect(await play([late, 'ok'])).toMatchObject({ result: 'ok' })
    expect(await play([late, late, 'ok'])).toMatchObject({ error: { code: 'model' }, times: { length: 2 } })
  })

  it('keep keys, addresses and prompts out of the error and all it holds', async () => {
    const { error } = await play([failing(401)])
    const seen: string[] = []
    for (let link = error as Error | undefined; link instanceof Error; link = link.cause as Error | undefined) {
      seen.push(link.message, String(link.stack), JSON.stringify(link), JSON.stringify((link as ModelError).data ?? {}))
    }
    expect(seen.length).toBeGreaterThan(4)
    expect(seen.join('\n')).not.toMatch(/verysecret/)
    expect(Object.keys((error as Error).cause as object)).not.toContain('requestBodyValues')
  })

  it('let our own refusals through as they are, and errors of others that say so', async () => {
    const refusal = new InvalidOptionError('x', 'is odd', 'Change it.')
    expect((await play([refusal])).error).toBe(refusal)
    const foreign = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
    expect((await play([foreign, 'ok'], {}, { isFinal: (error) => error === foreign })).error).toBe(foreign)
  })

  it.each([{ attempts: 0 }, { attempts: 1.5 }, { initialMs: -1 }, { totalMs: Number.NaN }])(
    'refuse %o',
    async (options) => {
      expect(isHoldfastError((await play(['ok'], options)).error, 'invalid-option')).toBe(true)
    },
  )

  it.each([
    ['virtual', virtualClock()],
    ['the real', systemClock()],
  ])('end at once with the reason of an abort, on %s clock', async (_name, clock) => {
    const reason = new Error('the user left')
    const control = new AbortController()
    let attempts = 0
    const run = retryModel(
      async () => {
        attempts++
        throw failing(503)
      },
      { initialMs: 60_000 },
      { clock, model, signal: control.signal, onFailure: () => setImmediate(() => control.abort(reason)) },
    )
    await expect(run).rejects.toBe(reason)
    expect(attempts).toBe(1)
    await expect(retryModel(async () => 1, {}, { clock, model, signal: control.signal })).rejects.toBe(reason)
  })
})
