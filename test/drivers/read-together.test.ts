import { CorruptError, UnavailableError } from 'holdfast/errors'
import { readTogether } from '#src/drivers/shared/read-together.js'
import { describe, expect, it } from 'vitest'

/** Requests that are answered when the test says so. */
function open() {
  const asked: { readonly keys: readonly string[]; answer(): void; fail(error: unknown): void }[] = []
  const read = readTogether<string, string>(
    (keys) =>
      new Promise((resolve, reject) => {
        asked.push({ keys, answer: () => resolve(keys.map((key) => () => `${key}!`)), fail: reject })
      }),
  )
  const requests = () => asked.map(({ keys }) => keys.join(' '))
  return { asked, read, requests }
}

/** By now whoever was told something has gone on. */
const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('reading together', () => {
  it('asks once for all who ask in the same turn, and answers each with its own', async () => {
    const { asked, read, requests } = open()
    const found = Promise.all([read('a'), read('b'), read('c')])
    await turn()
    expect(requests()).toEqual(['a b c'])
    asked[0]?.answer()
    expect(await found).toEqual(['a!', 'b!', 'c!'])
  })

  it('has whoever comes later wait only while four requests are in progress, and then share one', async () => {
    const { asked, read, requests } = open()
    const found: Promise<string>[] = []
    for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) {
      found.push(read(key))
      await turn()
    }
    expect(requests()).toEqual(['a', 'b', 'c', 'd'])
    asked[1]?.answer()
    expect(await found[1]).toBe('b!')
    await turn()
    expect(requests()).toEqual(['a', 'b', 'c', 'd', 'e f'])
    for (const { answer } of asked) answer()
    expect(await Promise.all(found)).toEqual(['a!', 'b!', 'c!', 'd!', 'e!', 'f!'])
  })

  it('asks for no more than sixteen at once', async () => {
    const { asked, read } = open()
    const found = Promise.all(Array.from({ length: 40 }, (_, i) => read(`${i}`)))
    await turn()
    expect(asked.map(({ keys }) => keys.length)).toEqual([16, 16, 8])
    for (const { answer } of asked) answer()
    expect(await found).toHaveLength(40)
  })

  it('asks again for each alone when a request fails, so that damage in one is reported to nobody else', async () => {
    const { asked, read, requests } = open()
    const found = Promise.allSettled([read('a'), read('b')])
    await turn()
    asked[0]?.fail(new CorruptError('b is damaged.', {}))
    await turn()
    const later = read('c')
    await turn()
    expect(requests()).toEqual(['a b', 'a', 'b', 'c'])
    asked[1]?.answer()
    asked[2]?.fail(new CorruptError('b is damaged.', {}))
    asked[3]?.answer()
    expect(await found).toMatchObject([
      { status: 'fulfilled', value: 'a!' },
      { status: 'rejected', reason: { code: 'corrupt' } },
    ])
    expect(await later).toBe('c!')
  })

  it('fails all of a request at once when the store does not answer, and goes on with the next', async () => {
    const { asked, read, requests } = open()
    const found = Promise.allSettled([read('a'), read('b')])
    await turn()
    asked[0]?.fail(new UnavailableError('The store is away.', { written: 'nothing' }))
    expect(await found).toMatchObject([{ reason: { code: 'unavailable' } }, { reason: { code: 'unavailable' } }])
    const later = read('c')
    await turn()
    expect(requests()).toEqual(['a b', 'c'])
    asked[1]?.answer()
    expect(await later).toBe('c!')
  })

  it('fails only the one whose answer makes no sense', async () => {
    const read = readTogether<string, string>(async (keys) =>
      keys.map((key) => () => {
        if (key === 'b') throw new CorruptError('b is damaged.', {})
        return `${key}!`
      }),
    )
    expect(await Promise.allSettled([read('a'), read('b')])).toMatchObject([
      { status: 'fulfilled', value: 'a!' },
      { status: 'rejected', reason: { code: 'corrupt' } },
    ])
  })
})
