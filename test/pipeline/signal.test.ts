import { getEventListeners } from 'node:events'
import { openHoldfast } from 'holdfast'
import { openPipeline, pipeline } from 'holdfast/pipeline'
import { expect, it } from 'vitest'
import { memorySink } from '../../scripts/torture/pipeline-library.mjs'

const makePipeline = (name: string, embed: (lines: readonly string[]) => Promise<readonly string[]>) =>
  pipeline({
    name,
    version: '1.0.0',
    source: [{ id: 'a', content: 'text' }],
    stages: [
      { name: 'lines', split: ({ text }) => [text] },
      { name: 'embed', run: embed },
    ],
    sink: memorySink(),
  })

it('any number of pipelines share one signal: one listener while they run, none afterwards', async () => {
  await using hf = await openHoldfast('memory:')
  const { signal } = new AbortController()
  let begun = 0
  let release = () => {}
  let allBegun = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const areBegun = new Promise<void>((resolve) => {
    allBegun = resolve
  })
  const runs = Array.from({ length: 20 }, (_, i) => {
    const library = makePipeline(`library ${i}`, async (lines) => {
      if (++begun === 20) allBegun()
      await held
      return lines
    })
    return openPipeline(hf, library).run({ signal })
  })
  await areBegun
  // Node warns of a leak from the eleventh on.
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  release()
  for (const report of await Promise.all(runs)) expect(report).toMatchObject({ status: 'completed', successful: 1 })
  expect(getEventListeners(signal, 'abort')).toEqual([])
})

it('a run that fails or is stopped leaves no listener either', async () => {
  await using hf = await openHoldfast('memory:')
  const failing = new AbortController()
  const library = makePipeline('library', async (lines) => lines)
  const broken = pipeline({
    name: 'broken',
    version: '1.0.0',
    source: () => {
      throw new Error('the source is gone')
    },
    stages: [{ name: 'lines', split: ({ text }) => [text] }],
    sink: memorySink(),
  })
  await expect(openPipeline(hf, broken).run({ signal: failing.signal })).rejects.toThrow('the source is gone')
  expect(getEventListeners(failing.signal, 'abort')).toEqual([])

  const stopping = new AbortController()
  const stopped = makePipeline('stopped', async () => {
    stopping.abort()
    return new Promise(() => {})
  })
  expect(await openPipeline(hf, stopped).run({ signal: stopping.signal })).toMatchObject({ status: 'stopped' })
  expect(getEventListeners(stopping.signal, 'abort')).toEqual([])
  expect(await openPipeline(hf, library).run({ signal: stopping.signal })).toMatchObject({ status: 'stopped' })
  expect(getEventListeners(stopping.signal, 'abort')).toEqual([])
})
