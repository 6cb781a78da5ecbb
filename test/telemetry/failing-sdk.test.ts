import { BasicTracerProvider, type SpanProcessor } from '@opentelemetry/sdk-trace-base'
import { flow, openHoldfast, type TelemetryOptions } from 'holdfast'
import { Telemetry } from '#src/telemetry/telemetry.js'
import { describe, expect, it } from 'vitest'
import { setUpOtel } from './otel-setup.js'

const { sdk } = setUpOtel()

function fail(): never {
  throw new Error('an exporter of the user failed')
}

function failingSpans(at: 'onStart' | 'onEnd'): TelemetryOptions {
  const none: SpanProcessor = { onStart() {}, onEnd() {}, forceFlush: async () => {}, shutdown: async () => {} }
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [{ ...none, [at]: fail }] })
  return { tracerProvider, meterProvider: false }
}

const failingInstruments: TelemetryOptions = {
  tracerProvider: false,
  meterProvider: {
    getMeter: () => ({ createCounter: () => ({ add: fail }), createHistogram: () => ({ record: fail }) }),
  },
}

describe('an SDK that fails', () => {
  it.each([
    { what: 'when a span starts', telemetry: failingSpans('onStart') },
    { what: 'when a span ends', telemetry: failingSpans('onEnd') },
    { what: 'when something is counted', telemetry: failingInstruments },
  ])('$what neither fails a run nor has an effect repeated', async ({ telemetry }) => {
    await using hf = await openHoldfast('memory:', { telemetry })
    let charged = 0
    let tried = 0
    const pay = flow({ name: 'pay', version: '1.0.0' }, async (ctx) => {
      await ctx.step('look', { retry: { initialMs: 1 } }, () => {
        if (++tried === 1) throw new Error('busy')
      })
      return ctx.step('charge', { effect: 'idempotent' }, () => ++charged)
    })
    expect(await hf.thread(pay, 't').run({ input: 1 })).toMatchObject({ status: 'completed', output: 1 })
    expect(charged).toBe(1)
  })

  it('can be handed content that is no JSON', async () => {
    const { tracerProvider, finished } = sdk()
    const telemetry = await Telemetry.open({ tracerProvider, meterProvider: false, recordContent: true })
    const place = { tenant: 'a', thread: 't', branch: 'main', run: 'r', program: 'p', version: '1.0.0' }
    const run = telemetry.run({ ...place, kind: 'agent', attempt: 1, resumed: false, begunIn: undefined })
    const odd = () => ({ said: JSON.stringify(1n) })
    const plan = { name: 'chat', kind: 'client', attributes: {}, content: odd, result: odd } as const
    const work = async (span: { content(attributes: typeof odd): void }) => {
      span.content(odd)
      return 'done'
    }
    expect(await run.span(plan, work)).toBe('done')
    expect(finished()).toMatchObject([{ name: 'chat', status: { code: 0 } }])
  })
})
