import type { RunnableConfig } from '@langchain/core/runnables'
import { Holdfast } from 'holdfast'
import { LogStore } from 'holdfast/log'
import { HoldfastSaver, HoldfastStore } from 'holdfast/langgraph'
import { faultyDriver } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { loop, makeCheckpoint, put, start } from './support.js'

async function counted() {
  const driver = faultyDriver(await openMemory())
  const hf = new Holdfast(new LogStore(driver))
  const queries = async (work: () => Promise<unknown>) => {
    const before = driver.calls
    await work()
    return driver.calls - before
  }
  return { hf, queries }
}

describe('what the saver asks of its backend', () => {
  it('is one query for a thread that does not exist', async () => {
    const { hf, queries } = await counted()
    const saver = new HoldfastSaver(hf)
    expect(await queries(() => saver.getTuple(start('nobody')))).toBe(1)
    const named = { configurable: { thread_id: 'nobody', checkpoint_id: makeCheckpoint({}).id } }
    expect(await queries(() => saver.getTuple(named))).toBe(1)
  })

  it('is one query for the newest checkpoint of a thread that nobody else changed, and one for the next', async () => {
    const { hf, queries } = await counted()
    const saver = new HoldfastSaver(hf)
    const first = await put(saver, start('t'), { n: 1 })
    expect(await queries(() => saver.getTuple(start('t')))).toBe(1)
    expect(await queries(() => saver.getTuple(first))).toBe(1)
    expect(await queries(() => put(saver, first, { n: 2 }, 2))).toBe(1)
  })

  it('is the index and the log in a process that does not know the thread, and what others wrote is seen', async () => {
    const { hf, queries } = await counted()
    const one = new HoldfastSaver(hf)
    const other = new HoldfastSaver(hf)
    const first = await put(one, start('t'), { n: 1 })
    expect(await queries(() => other.getTuple(start('t')))).toBe(2)
    await put(one, first, { n: 2 }, 2)
    expect((await other.getTuple(start('t')))?.checkpoint.channel_values).toEqual({ n: 2 })
  })
})

describe('what is no id', () => {
  const NOT_IDS: [string, unknown][] = [
    ['a number', 7],
    ['an object', { id: 'x' }],
    ['an array', ['x']],
  ]

  it.each(NOT_IDS)('is refused as a checkpoint id, by name: %s', async (what, id) => {
    const { hf } = await counted()
    const saver = new HoldfastSaver(hf)
    const config = { configurable: { thread_id: 't', checkpoint_ns: '', checkpoint_id: id } } as RunnableConfig
    const refusal = { code: 'invalid-id', message: expect.stringContaining(`must be a string, not ${what}`) }
    await expect(saver.getTuple(config)).rejects.toMatchObject(refusal)
    await expect(saver.put(config, makeCheckpoint({}), loop(), {})).rejects.toMatchObject(refusal)
    await expect(saver.putWrites(config, [['c', 1]], 'task')).rejects.toMatchObject(refusal)
    await expect(saver.list(config).next()).rejects.toMatchObject(refusal)
    await expect(saver.list(start('t'), { before: config }).next()).rejects.toMatchObject(refusal)
    expect((await hf.threads()).threads).toEqual([])
  })

  it.each([...NOT_IDS, ['empty', ''], ['undefined', undefined]] as [string, unknown][])(
    'is refused as the id of a task: %s',
    async (_, task) => {
      const { hf } = await counted()
      const saver = new HoldfastSaver(hf)
      const at = await put(saver, start('t'), { n: 1 })
      await expect(saver.putWrites(at, [['c', 1]], task as string)).rejects.toMatchObject({
        code: 'invalid-id',
        message: expect.stringContaining('taskId must be a non-empty string'),
      })
      expect((await saver.getTuple(at))?.pendingWrites).toEqual([])
    },
  )
})

describe('HoldfastStore', () => {
  it('shows how it was configured to search, as the stores of LangGraph do', async () => {
    const { hf } = await counted()
    const index = { dims: 2, embeddings: { embedDocuments: async () => [], embedQuery: async () => [] } as never }
    expect(new HoldfastStore(hf, { index }).indexConfig).toBe(index)
    expect(new HoldfastStore(hf).indexConfig).toBeUndefined()
  })
})
