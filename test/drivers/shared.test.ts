import { isHoldfastError } from '#src/core/errors.js'
import { parseBranchId, parseTenantId, parseThreadId } from '#src/core/ids.js'
import { checkBatch } from '#src/drivers/shared/checks.js'
import { encodeCursor, parseCursor } from '#src/drivers/shared/cursor.js'
import { selectHeads } from '#src/drivers/shared/head-query.js'
import { takeSmallest } from '#src/drivers/shared/take-smallest.js'
import type { Append, Head } from '#src/log/contract.js'
import { makeAppend, makeHash, makeIndex } from '#src/testing/entries.js'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'

const log = { tenant: parseTenantId('t'), thread: parseThreadId('thread'), branch: parseBranchId('main') }

function head(name: string, createdAt: number, updatedAt = createdAt): Head {
  return {
    log: { ...log, thread: parseThreadId(name) },
    incarnation: 'i',
    seq: 0,
    hash: makeHash(name),
    epoch: 0,
    base: { seq: 0, hash: makeHash(name) },
    lease: null,
    index: makeIndex({ createdAt, updatedAt }),
  }
}

describe('cursor', () => {
  it('leads back to the place it was made from, whatever the ids', () => {
    const id = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter((text) => !text.includes('\0'))
    fc.assert(
      fc.property(fc.integer(), id, id, id, (value, tenant, thread, branch) => {
        const position = { value, log: { tenant, thread, branch } as Append['log'] }
        expect(parseCursor(encodeCursor(position))).toEqual(position)
      }),
    )
  })

  it('refuses anything else, naming the option', () => {
    const good = encodeCursor({ value: 1, log })
    const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const bad: unknown[] = [
      ...['', ' ', `${good} `, `${good}=`, `${good}!`, good.slice(1), good.slice(0, -3), 'null'],
      ...[json(null), json({}), json([1, 't', 't']), json([1, 't', 't', 'b', 'x']), json(['1', 't', 't', 'b'])],
      ...[json([1, '', 't', 'b']), json([1, 't', 't', 'b\0']), json([1, 't', 2, 'b']), json([null, 't', 't', 'b'])],
      ...[undefined, null, 5, {}, [good]],
    ]
    for (const cursor of bad) {
      expect(() => parseCursor(cursor)).toThrow(
        expect.objectContaining({ code: 'invalid-option', data: expect.objectContaining({ field: 'cursor' }) }),
      )
    }
  })

  it('never takes random bytes for a place, nor fails in another way', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseCursor(text)
          return false
        } catch (error) {
          return isHoldfastError(error, 'invalid-option')
        }
      }),
    )
  })
})

describe('selectHeads', () => {
  it('returns the same logs in the same order over pages of any size', () => {
    const times = fc.array(fc.tuple(fc.nat(5), fc.nat(5)), { maxLength: 60 })
    fc.assert(
      fc.property(
        times,
        fc.integer({ min: 1, max: 8 }),
        fc.constantFrom('created' as const, 'updated' as const),
        fc.constantFrom('asc' as const, 'desc' as const),
        (pairs, limit, order, direction) => {
          const heads = pairs.map(([created, updated], i) => head(`t${i}`, created, updated))
          const paged: Head[] = []
          let cursor: string | undefined
          do {
            const query = { order, direction, limit, ...(cursor === undefined ? {} : { cursor }) }
            const page = selectHeads(heads, query, 0)
            paged.push(...page.heads)
            cursor = page.cursor
          } while (cursor !== undefined)
          const time = ({ index }: Head) => (order === 'created' ? index.createdAt : index.updatedAt)
          const sorted = heads.toSorted((a, b) => time(a) - time(b) || (a.log.thread < b.log.thread ? -1 : 1))
          expect(paged).toEqual(direction === 'asc' ? sorted : sorted.reverse())
        },
      ),
    )
  })

  it('gives a cursor exactly when another log follows', () => {
    const heads = [head('a', 1), head('b', 2), head('c', 3)]
    expect(selectHeads(heads, { limit: 2 }, 0).cursor).toBeTypeOf('string')
    expect(selectHeads(heads, { limit: 3 }, 0).cursor).toBeUndefined()
    expect(selectHeads([], { limit: 3 }, 0)).toEqual({ heads: [] })
  })
})

describe('takeSmallest', () => {
  it('is a sort that is cut short', () => {
    fc.assert(
      fc.property(fc.array(fc.integer(), { maxLength: 500 }), fc.nat(20), (numbers, count) => {
        const compare = (a: number, b: number) => a - b
        expect(takeSmallest(numbers, count, compare)).toEqual(numbers.toSorted(compare).slice(0, count))
      }),
    )
  })
})

describe('checkBatch', () => {
  it('passes what a correct caller sends', () => {
    const at = { incarnation: 'i', seq: 4, hash: makeHash('h'), epoch: 2 }
    const other = { ...log, branch: parseBranchId('other') }
    const claim = { kind: 'claim', owner: 'w', ms: 1, force: false } as const
    checkBatch([])
    checkBatch([makeAppend(log, at, { count: 3 }), makeAppend(other, null, { lease: claim })])
    checkBatch([makeAppend(log, at, { keyframe: 0, count: 3 })])
    checkBatch([makeAppend(log, at, { lease: claim }), makeAppend({ ...log, tenant: parseTenantId('u') }, at)])
    checkBatch([makeAppend(log, at, { lease: { kind: 'release' } })])
  })

  it('names the log and says that nothing was written', () => {
    const append = { ...makeAppend(log, null), entries: [] }
    expect(() => checkBatch([append])).toThrow(
      expect.objectContaining({
        code: 'invalid-value',
        message: expect.stringContaining('thread "thread" of tenant "t" has no entries'),
        data: expect.objectContaining({ written: 'nothing' }),
      }),
    )
  })
})
