import type { Append, AppendResult, Driver, LogKey } from 'holdfast/driver'
import { GroupCommit } from '#src/log/write/group-commit.js'
import { makeAppend } from '#src/testing/entries.js'
import { describe, expect, it } from 'vitest'

/** Takes every batch at once, and notes how many appends each had. */
function countingDriver(parallelBatches: number): { readonly driver: Driver; readonly batches: number[] } {
  const batches: number[] = []
  const append = async (batch: readonly Append[]): Promise<AppendResult[]> => {
    batches.push(batch.length)
    return batch.map(() => ({ status: 'appended' }))
  }
  const driver = { capabilities: { parallelBatches, maxBatch: 512 }, append } as unknown as Driver
  return { driver, batches }
}

function appends(count: number): Append[] {
  return Array.from({ length: count }, (_, i) =>
    makeAppend({ tenant: 't', thread: `t${i}`, branch: 'main' } as LogKey, null),
  )
}

/** Takes nothing until `answer`; after `answerAll`, whatever comes then. */
function slowDriver(parallelBatches: number) {
  const batches: number[] = []
  const open: (() => void)[] = []
  let isQuick = false
  const append = async (batch: readonly Append[]): Promise<AppendResult[]> => {
    batches.push(batch.length)
    if (!isQuick) await new Promise<void>((resolve) => open.push(resolve))
    return batch.map(() => ({ status: 'appended' }))
  }
  return {
    driver: { capabilities: { parallelBatches, maxBatch: 512 }, append } as unknown as Driver,
    batches,
    answer: () => open.forEach((resolve) => resolve()),
    answerAll: () => {
      isQuick = true
    },
  }
}

const NOW = Promise.resolve()
const turn = () => new Promise(setImmediate)

/** One commit, and then a pause that is longer than it took. */
async function commitAndRest(commit: GroupCommit): Promise<void> {
  const began = performance.now()
  await commit.submit(appends(1)[0] as Append)
  const ended = performance.now()
  while (performance.now() - ended <= ended - began) await new Promise(setImmediate)
}

describe('group commit', () => {
  it('sends what came together as one batch', async () => {
    const { driver, batches } = countingDriver(2)
    const commit = new GroupCommit(driver)
    await Promise.all(appends(64).map((each) => commit.submit(each)))
    expect(batches).toEqual([64])
  })

  it('divides many that took longer to come than a commit takes, so that half prepare while half commit', async () => {
    const { driver, batches } = countingDriver(2)
    const commit = new GroupCommit(driver)
    await commitAndRest(commit)
    await Promise.all(appends(63).map((each) => commit.submit(each)))
    expect(batches).toEqual([1, 31, 32])
  })

  it('divides neither a few nor what a store takes one batch at a time', async () => {
    const two = countingDriver(2)
    const few = new GroupCommit(two.driver)
    await commitAndRest(few)
    await Promise.all(appends(15).map((each) => few.submit(each)))
    expect(two.batches).toEqual([1, 15])

    const one = countingDriver(1)
    const many = new GroupCommit(one.driver)
    await commitAndRest(many)
    await Promise.all(appends(64).map((each) => many.submit(each)))
    expect(one.batches).toEqual([1, 64])
  })

  it('sends a further batch once it is as large as what is in progress, whatever connections are free', async () => {
    const { driver, batches, answer } = slowDriver(4)
    const commit = new GroupCommit(driver)
    const [a, b, c, d, e] = appends(5) as [Append, Append, Append, Append, Append]
    const first = commit.submit(a)
    await turn()
    const rest = [b, c].map((each) => commit.submit(each))
    await turn()
    expect(batches).toEqual([1, 2])
    rest.push(commit.submit(d))
    // In the same turn, so that nobody's patience ends in between.
    await NOW
    await NOW
    expect(batches).toEqual([1, 2])
    rest.push(commit.submit(e), commit.submit(makeAppend({ tenant: 't', thread: 'f', branch: 'main' } as LogKey, null)))
    await turn()
    expect(batches).toEqual([1, 2, 3])
    answer()
    expect(await Promise.all([first, ...rest])).toHaveLength(6)
  })

  it('lets a few go all the same when what is in progress takes long, as behind a lock', async () => {
    const { driver, batches, answer, answerAll } = slowDriver(4)
    const commit = new GroupCommit(driver)
    const [last, ...stuck] = appends(6) as [Append, ...Append[]]
    const waiting = stuck.map((each) => commit.submit(each))
    await turn()
    expect(batches).toEqual([5])
    answerAll()
    expect(await commit.submit(last)).toEqual({ status: 'appended' })
    expect(batches).toEqual([5, 1])
    answer()
    await Promise.all(waiting)
  })
})
