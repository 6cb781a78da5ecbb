import assert from 'node:assert/strict'
import type { TenantId } from '../../../core/ids.js'
import type { BlobInfo, Driver, Hash } from '../../../log/contract.js'
import { makeBytes, makeHash } from '../../entries.js'
import { assertBytes, newTenant, type SuiteTest } from '../suite-context.js'

export const blobTests: readonly SuiteTest[] = [
  {
    name: 'returns blobs byte for byte: empty, every byte value, one megabyte',
    async run({ driver, tenant, open }) {
      const blobs = [
        { hash: makeHash('empty'), bytes: new Uint8Array(0) },
        { hash: makeHash('every'), bytes: Uint8Array.from({ length: 256 }, (_, i) => i) },
        { hash: makeHash('large'), bytes: makeBytes('large', 1024 * 1024) },
        { hash: makeHash('view'), bytes: makeBytes('view', 500).subarray(100, 200) },
      ]
      await driver.putBlobs(tenant, blobs)
      for (const reader of [driver, await open()]) {
        const found = await reader.getBlobs(
          tenant,
          blobs.map((blob) => blob.hash),
        )
        assert.equal(found.size, blobs.length)
        for (const { hash, bytes } of blobs) assertBytes(found.get(hash), bytes, `the blob ${hash}`)
      }
    },
  },
  {
    name: 'leaves a missing blob out of the map and names it when touched',
    async run({ driver, tenant }) {
      const [there, missing] = [makeHash('there'), makeHash('missing')]
      await driver.putBlobs(tenant, [{ hash: there, bytes: makeBytes('there', 10) }])
      assert.deepEqual([...(await driver.getBlobs(tenant, [missing, there])).keys()], [there])
      assert.deepEqual(await driver.touchBlobs(tenant, [there, missing]), [missing])
      assert.deepEqual(await driver.touchBlobs(tenant, [there]), [])
      assert.equal((await driver.getBlobs(tenant, [missing])).size, 0)
      assert.deepEqual(await driver.touchBlobs(tenant, [missing]), [missing], 'touching creates nothing')
    },
  },
  {
    name: 'takes empty lists of blobs',
    async run({ driver, tenant }) {
      await driver.putBlobs(tenant, [])
      assert.deepEqual(await driver.touchBlobs(tenant, []), [])
      assert.equal((await driver.getBlobs(tenant, [])).size, 0)
      assert.deepEqual(await driver.listBlobs(tenant, { limit: 10 }), [])
    },
  },
  {
    name: 'finds nothing under hashes that were never given, however odd they are',
    async run({ driver, tenant }) {
      await driver.putBlobs(tenant, [{ hash: makeHash('a'), bytes: makeBytes('a', 5) }])
      const odd = [
        '__proto__',
        'constructor',
        'toString',
        '../../etc/passwd',
        '%',
        '_',
        '*',
        `' or 1=1 --`,
        '',
        'a'.repeat(300),
      ]
      assert.equal((await driver.getBlobs(tenant, odd)).size, 0)
      assert.deepEqual(new Set(await driver.touchBlobs(tenant, odd)), new Set(odd))
      for (const hash of odd) assert.equal(await driver.removeBlob(tenant, hash, 0), false)
      assert.equal((await driver.listBlobs(tenant, { limit: 10 })).length, 1)
    },
  },
  {
    name: 'only touches a blob that is put again: its first bytes stay',
    async run({ driver, tenant }) {
      const hash = makeHash('twice')
      const bytes = makeBytes('first', 30)
      await driver.putBlobs(tenant, [{ hash, bytes }])
      const before = await infoOf(driver, tenant, hash)
      await driver.putBlobs(tenant, [{ hash, bytes: makeBytes('second', 40) }])
      const after = await infoOf(driver, tenant, hash)
      assertBytes((await driver.getBlobs(tenant, [hash])).get(hash), bytes, 'the blob')
      assert.equal(after.size, 30)
      assert.ok(after.touchedAt > before.touchedAt)
    },
  },
  {
    name: 'is not affected by what writers and readers do to the bytes of a blob afterwards',
    async run({ driver, tenant }) {
      const hash = makeHash('shared')
      const bytes = makeBytes('shared', 50)
      await driver.putBlobs(tenant, [{ hash, bytes }])
      bytes.fill(0)
      const first = (await driver.getBlobs(tenant, [hash])).get(hash)
      assertBytes(first, makeBytes('shared', 50), 'the blob')
      first?.fill(1)
      assertBytes((await driver.getBlobs(tenant, [hash])).get(hash), makeBytes('shared', 50), 'the blob')
    },
  },
  {
    name: 'takes the same blob twice in one call',
    async run({ driver, tenant }) {
      const blob = { hash: makeHash('double'), bytes: makeBytes('double', 30) }
      await driver.putBlobs(tenant, [blob, blob])
      await driver.putBlobs(tenant, [blob, blob])
      assert.deepEqual(await driver.touchBlobs(tenant, [blob.hash, blob.hash]), [])
      assert.equal((await driver.getBlobs(tenant, [blob.hash, blob.hash])).size, 1)
      assert.equal((await driver.listBlobs(tenant, { limit: 10 })).length, 1)
    },
  },
  {
    name: 'makes touchedAt strictly later with every touch, also within one millisecond',
    async run({ driver, tenant, open }) {
      const other = await open()
      const blob = { hash: makeHash('touched'), bytes: makeBytes('touched', 10) }
      await driver.putBlobs(tenant, [blob])
      let last = (await infoOf(driver, tenant, blob.hash)).touchedAt
      for (let i = 0; i < 30; i++) {
        const toucher = i % 2 === 0 ? driver : other
        if (i % 3 === 0) await toucher.putBlobs(tenant, [blob])
        else assert.deepEqual(await toucher.touchBlobs(tenant, [blob.hash]), [])
        const { touchedAt } = await infoOf(driver, tenant, blob.hash)
        assert.ok(touchedAt > last, `${touchedAt} is later than ${last}`)
        last = touchedAt
      }
    },
  },
  {
    name: 'gives a blob that is put later a later touchedAt, so that collection can go by age',
    async run({ driver, tenant, advance }) {
      const [early, late] = [makeHash('early'), makeHash('late')]
      await driver.putBlobs(tenant, [{ hash: early, bytes: makeBytes('e', 5) }])
      await advance(100)
      await driver.putBlobs(tenant, [{ hash: late, bytes: makeBytes('l', 5) }])
      assert.ok((await infoOf(driver, tenant, late)).touchedAt > (await infoOf(driver, tenant, early)).touchedAt)
    },
  },
  {
    name: 'lists blobs by hash, in pages',
    async run({ driver, tenant }) {
      const blobs = Array.from({ length: 25 }, (_, i) => ({ hash: makeHash(`b${i}`), bytes: makeBytes(`b${i}`, i) }))
      await driver.putBlobs(tenant, blobs.slice(0, 20))
      await driver.putBlobs(tenant, blobs.slice(20))
      const expected = [...blobs].sort((a, b) => (a.hash < b.hash ? -1 : 1))
      for (const limit of [1, 7, 25, 100]) {
        const found: BlobInfo[] = []
        for (;;) {
          const after = found.at(-1)?.hash
          const page = await driver.listBlobs(tenant, after === undefined ? { limit } : { after, limit })
          if (page.length === 0) break
          assert.ok(page.length <= limit)
          found.push(...page)
          assert.ok(found.length <= blobs.length, 'the pages come to an end')
        }
        assert.deepEqual(
          found.map(({ hash, size }) => [hash, size]),
          expected.map(({ hash, bytes }) => [hash, bytes.length]),
        )
      }
    },
  },
  {
    name: 'removes a blob only if it was not touched since',
    async run({ driver, tenant, open }) {
      const other = await open()
      const blob = { hash: makeHash('collect'), bytes: makeBytes('collect', 10) }
      await driver.putBlobs(tenant, [blob])
      const old = await infoOf(driver, tenant, blob.hash)
      await other.touchBlobs(tenant, [blob.hash])
      assert.equal(await driver.removeBlob(tenant, blob.hash, old.touchedAt), false)
      const touched = await infoOf(driver, tenant, blob.hash)
      await other.putBlobs(tenant, [blob])
      assert.equal(await driver.removeBlob(tenant, blob.hash, touched.touchedAt), false)
      assertBytes((await driver.getBlobs(tenant, [blob.hash])).get(blob.hash), blob.bytes, 'the blob')
      const { touchedAt } = await infoOf(driver, tenant, blob.hash)
      assert.equal(await driver.removeBlob(tenant, blob.hash, touchedAt), true)
      assert.equal((await driver.getBlobs(tenant, [blob.hash])).size, 0)
      assert.deepEqual(await driver.listBlobs(tenant, { limit: 10 }), [])
      assert.equal(await driver.removeBlob(tenant, blob.hash, touchedAt), false)
      assert.deepEqual(await driver.touchBlobs(tenant, [blob.hash]), [blob.hash])
      await driver.putBlobs(tenant, [{ ...blob, bytes: makeBytes('anew', 20) }])
      assert.equal((await infoOf(driver, tenant, blob.hash)).size, 20)
    },
  },
  {
    name: 'either touches or removes a blob when both happen at once, and says which',
    timeoutMs: 300_000,
    async run({ driver, tenant, open, rounds }) {
      const other = await open()
      for (let round = 0; round < Math.ceil(rounds / 20); round++) {
        const blob = { hash: makeHash(`race-${round}`), bytes: makeBytes('race', 10) }
        await driver.putBlobs(tenant, [blob])
        const { touchedAt } = await infoOf(driver, tenant, blob.hash)
        const [missing, removed] = await Promise.all([
          driver.touchBlobs(tenant, [blob.hash]),
          other.removeBlob(tenant, blob.hash, touchedAt),
        ])
        assert.deepEqual(missing, removed ? [blob.hash] : [], 'a touched blob stays')
        assert.equal((await driver.getBlobs(tenant, [blob.hash])).size, removed ? 0 : 1)
      }
    },
  },
  {
    name: 'keeps a blob that is put while it is being removed',
    timeoutMs: 300_000,
    async run({ driver, tenant, open, rounds }) {
      const other = await open()
      for (let round = 0; round < Math.ceil(rounds / 20); round++) {
        const blob = { hash: makeHash(`race-${round}`), bytes: makeBytes('race', 10) }
        await driver.putBlobs(tenant, [blob])
        const { touchedAt } = await infoOf(driver, tenant, blob.hash)
        await Promise.all([driver.putBlobs(tenant, [blob]), other.removeBlob(tenant, blob.hash, touchedAt)])
        assertBytes((await driver.getBlobs(tenant, [blob.hash])).get(blob.hash), blob.bytes, 'the blob')
      }
    },
  },
  {
    name: 'never shows a blob of one tenant to another, nor lets it be touched or removed',
    async run({ driver, tenant }) {
      const stranger = newTenant()
      const hash = makeHash('mine')
      await driver.putBlobs(tenant, [{ hash, bytes: makeBytes('mine', 10) }])
      const { touchedAt } = await infoOf(driver, tenant, hash)
      assert.equal((await driver.getBlobs(stranger, [hash])).size, 0)
      assert.deepEqual(await driver.touchBlobs(stranger, [hash]), [hash])
      assert.deepEqual(await driver.listBlobs(stranger, { limit: 10 }), [])
      assert.equal(await driver.removeBlob(stranger, hash, touchedAt), false)
      await driver.putBlobs(stranger, [{ hash, bytes: makeBytes('theirs', 20) }])
      assert.equal((await infoOf(driver, tenant, hash)).touchedAt, touchedAt)
      assertBytes((await driver.getBlobs(tenant, [hash])).get(hash), makeBytes('mine', 10), 'my blob')
      assertBytes((await driver.getBlobs(stranger, [hash])).get(hash), makeBytes('theirs', 20), 'their blob')
    },
  },
]

async function infoOf(driver: Driver, tenant: TenantId, hash: Hash): Promise<BlobInfo> {
  const found = (await driver.listBlobs(tenant, { limit: 1000 })).find((blob) => blob.hash === hash)
  assert.ok(found, 'the blob is listed')
  return found
}
