import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openHoldfast } from 'holdfast'
import { describe, expect, it } from 'vitest'

const CHILD = fileURLToPath(new URL('./children/without-api.mjs', import.meta.url))

async function run(mode: 'on' | 'off') {
  const { stdout } = await promisify(execFile)(process.execPath, [CHILD, mode])
  return JSON.parse(stdout)
}

describe('without OpenTelemetry', () => {
  it('everything works and is counted, and importing asks for nothing', async () => {
    expect(await run('on')).toEqual({
      imported: [],
      asked: ['@opentelemetry/api'],
      output: 42,
      counters: { 'holdfast.runs.started': 1, 'holdfast.runs.completed': 1 },
    })
  })

  it('nothing is asked for when telemetry is off', async () => {
    expect(await run('off')).toEqual({ imported: [], asked: [], output: 42, counters: null })
  })

  it.each([
    ['flushEveryMs', 50],
    ['flushEveryMs', '1s'],
    ['tracerProvider', {}],
    ['meterProvider', {}],
    ['recordContent', 'yes'],
  ])('refuses %s: %j before anything is opened', async (field, value) => {
    const opening = openHoldfast('sqlite:/nowhere/at/all.db', { telemetry: { [field]: value } as never })
    await expect(opening).rejects.toMatchObject({ code: 'invalid-option', message: expect.stringContaining(field) })
  })
})
