import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadSqlite, type SqliteLike } from '#src/drivers/sqlite/connection/engine.js'
import { buildItemScan } from '#src/drivers/sqlite/items/item-reads.js'
import { openSqlite } from '#src/drivers/sqlite/open-sqlite.js'
import { makeAppend } from '#src/testing/entries.js'
import type { Driver, ItemDriver, LogKey, NewItem } from 'holdfast/driver'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const log = { tenant: 't', thread: 'a', branch: 'main' } as LogKey
const { tenant } = log

let folder: string
let driver: Driver & ItemDriver
/** Another connection to the same file. */
let sqlite: SqliteLike

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-sqlite-'))
  const file = join(folder, 'test.db')
  driver = (await openSqlite(file, { busyTimeoutMs: 50 })) as Driver & ItemDriver
  sqlite = (await loadSqlite())(file)
})

afterEach(async () => {
  sqlite.close()
  await driver.close()
  await rm(folder, { recursive: true, force: true })
})

function itemOf(options: Partial<NewItem> = {}): NewItem {
  return { value: new Uint8Array(), version: 'v', at: 0, expiresAt: null, fields: [], ...options }
}

describe('queries of items', () => {
  const where = [['a', ['x', 'y']]] as const

  it.each([
    ['a space', { limit: 10 }],
    ['a prefix', { prefix: 'p', limit: 10 }],
    ['a later page', { prefix: 'p', after: 'pq', limit: 10 }],
    ['fields', { where, limit: 10 }],
  ])('read %s as one range of the index, in its order', (_, scan) => {
    const { sql, values } = buildItemScan('t', 's', scan, 5)
    const plan = sqlite.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values) as { detail: string }[]
    const steps = plan.map(({ detail }) => detail)
    expect(steps[0]).toBe('SEARCH items USING INDEX items_place (tenant=? AND space=? AND key>? AND key<?)')
    expect(steps.join('\n')).not.toContain('TEMP B-TREE')
  })

  it('narrow by names and tokens that carry quotes, line breaks, NUL and lone surrogates, by nothing else', async () => {
    const odd = [
      'a',
      '"a"',
      'a":"x',
      'a\n',
      '\na',
      'a\0',
      'a\0b',
      '\ud800',
      '\udc00',
      '\ufffd',
      '%',
      "'",
      '\\',
      '__proto__',
      '',
    ]
    for (const space of ['names', 'tokens']) {
      const writes = odd.map((text, i) => {
        const field = space === 'names' ? ([text, 'x'] as const) : (['f', text] as const)
        return { space, key: String(i).padStart(2, '0'), item: itemOf({ fields: [field] }) }
      })
      await driver.writeItems(tenant, writes, 0)
    }
    for (const [i, text] of odd.entries()) {
      const scan = async (space: string, filter: readonly [string, readonly string[]]): Promise<number[]> => {
        const found = await driver.scanItems(tenant, space, { limit: 100, where: [filter] }, 0)
        return found.map(({ key }) => Number(key))
      }
      expect(await scan('tokens', ['f', [text]])).toEqual([i])
      // Items without a field of this name stay; the one that has it holds another token.
      expect(await scan('names', [text, ['y']])).toEqual(odd.map((_, j) => j).filter((j) => j !== i))
    }
  })
})

describe('items in a transaction', () => {
  it('are rolled back with the batch of appends that carries them', async () => {
    const carried = [{ seq: 0, space: 's', key: 'k', item: itemOf(), at: 0 }]
    const broken = makeAppend({ ...log, thread: 'b' } as LogKey, null, { index: { createdAt: Number.NaN } })
    await expect(driver.append([{ ...makeAppend(log, null), carried }, broken])).rejects.toMatchObject({
      code: 'invalid-value',
      data: { written: 'nothing' },
    })
    expect(await driver.readItems(tenant, 's', ['k'], { now: 0 })).toEqual([])
    expect(await driver.head(log)).toBeUndefined()
  })

  it('take their entries down with them when SQLite refuses one', async () => {
    const carried = [itemOf(), itemOf({ at: Number.NaN })].map((item, i) => {
      return { seq: 0, space: 's', key: `k${i}`, item, at: 0 }
    })
    await expect(driver.append([{ ...makeAppend(log, null), carried }])).rejects.toMatchObject({
      code: 'invalid-value',
      data: { written: 'nothing' },
    })
    expect(await driver.head(log)).toBeUndefined()
    expect(await driver.scanItems(tenant, 's', { limit: 10 }, 0)).toEqual([])
  })

  it('wait for another writer only when reading moves an expiry', async () => {
    const writes = [
      { space: 's', key: 'forever', item: itemOf() },
      { space: 's', key: 'later', item: itemOf({ expiresAt: 900 }) },
      { space: 's', key: 'soon', item: itemOf({ expiresAt: 100 }) },
    ]
    await driver.writeItems(tenant, writes, 0)
    sqlite.exec('BEGIN IMMEDIATE')
    const found = await driver.readItems(tenant, 's', ['forever', 'later'], { now: 0, extendTo: 500 })
    expect(found.map(({ key, expiresAt }) => [key, expiresAt])).toEqual([
      ['forever', null],
      ['later', 900],
    ])
    const moving = driver.readItems(tenant, 's', ['forever', 'soon'], { now: 0, extendTo: 500 })
    await expect(moving).rejects.toMatchObject({ code: 'unavailable', data: { written: 'nothing' } })
    sqlite.exec('ROLLBACK')
    const moved = await driver.readItems(tenant, 's', ['soon'], { now: 0, extendTo: 500 })
    expect(moved[0]?.expiresAt).toBe(500)
  })
})
