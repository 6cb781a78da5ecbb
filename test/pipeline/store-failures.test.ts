import { Holdfast } from 'holdfast'
import { StorageError } from 'holdfast/errors'
import type { Driver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { openPipeline, pipeline } from 'holdfast/pipeline'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { expect, it } from 'vitest'

const onFire = new StorageError('The disk is on fire.', 'Call for help.', { reason: 'io', written: 'nothing' })

const written: string[] = []
const notes = pipeline({
  name: 'notes',
  version: '1.0.0',
  source: ['one', 'two', 'three'].map((id) => ({ id, content: id })),
  stages: [{ name: 'whole', split: ({ text }) => [text] }],
  sink: {
    write: async (rows) => void written.push(...rows.map(({ document }) => document)),
    remove: async () => {},
  },
})

it('says what went wrong when a document could not be recorded, and goes on with it the next time', async () => {
  const driver = await openMemory()
  let isBroken = true
  const broken: Driver = {
    ...driver,
    append: async (batch) => {
      if (isBroken && batch.some(({ log }) => log.thread.includes('two'))) throw onFire
      return driver.append(batch)
    },
  }
  const hf = new Holdfast(new LogStore(broken))
  await expect(openPipeline(hf, notes).run()).rejects.toThrow('The disk is on fire.')
  expect(written).not.toContain('two')
  isBroken = false
  expect(await openPipeline(hf, notes).run()).toMatchObject({ status: 'completed', failed: 0 })
  // One that was under way may be written again, under the same ids.
  expect(new Set(written)).toEqual(new Set(['one', 'two', 'three']))
  await hf.close()
})
