import { LogStore, ops } from 'holdfast/log'
import { describe, expect, it } from 'vitest'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { createMemoryStore } from '#src/drivers/memory/memory-store.js'
import type { Driver } from '#src/log/contract.js'
import { logKey } from '../support/keyed-store.js'

const { set } = ops

const LOG = logKey('talk')

/** A handle that knows entry 0 of a log with three more, the last a keyframe, and another that can prune up to there. */
async function race(moment: 'head' | 'read') {
  const store = createMemoryStore()
  const other = await openMemory({ store })
  const driver = await openMemory({ store })
  let armed = false
  const prune = async <Result>(result: Promise<Result>): Promise<Result> => {
    const found = await result
    if (armed) {
      armed = false
      const head = await other.head(LOG)
      await other.prune(LOG, head?.incarnation as string, 3)
    }
    return found
  }
  const racing: Driver = {
    ...driver,
    head: (log) => (moment === 'head' ? prune(driver.head(log)) : driver.head(log)),
    read: (log, from, limit) =>
      moment === 'read' ? prune(driver.read(log, from, limit)) : driver.read(log, from, limit),
  }
  const handle = await new LogStore(racing).open(LOG)
  await handle.update(() => [{ kind: 'step', ops: [set('i', 0)] }])
  const writer = await new LogStore(other).open(LOG)
  for (const i of [1, 2, 3]) await writer.update(() => [{ kind: 'step', ops: [set('i', i)], keyframe: i === 3 }])
  armed = true
  return { handle, store }
}

describe('a prune while another reads on', () => {
  it.each(['head', 'read'] as const)(
    'right after its %s is no damage: it goes on from the keyframe',
    async (moment) => {
      const { handle } = await race(moment)
      expect((await handle.refresh()).state).toEqual({ i: 3 })
      await handle.update(({ state }) => [{ kind: 'step', ops: [set('sum', Number(state.i) + 1)] }])
      expect(handle.fold).toMatchObject({ seq: 4, state: { i: 3, sum: 4 } })
    },
  )

  it.each(['head', 'read'] as const)('right after its %s does not hinder an update', async (moment) => {
    const { handle } = await race(moment)
    await handle.update(({ state }) => [{ kind: 'step', ops: [set('sum', Number(state.i) + 1)] }])
    expect(handle.fold).toMatchObject({ seq: 4, state: { i: 3, sum: 4 } })
  })

  it('does not hide an entry that is really missing', async () => {
    const { handle, store } = await race('read')
    const log = store.threads.get(LOG.tenant)?.get(LOG.thread)?.branches.get(LOG.branch)
    log?.entries.splice(2, 1)
    await expect(handle.refresh()).rejects.toMatchObject({ code: 'corrupt' })
  })
})
