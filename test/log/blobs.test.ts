import assert from 'node:assert/strict'
import { decodeHeader } from '#src/codec/header.js'
import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import { writeValue } from '#src/codec/value.js'
import { isHoldfastError } from '#src/core/errors.js'
import type { BranchId } from '#src/core/ids.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import { push, set } from '#src/log/entry/ops.js'
import { virtualClock } from '#src/testing/virtual-clock.js'
import { describe, it } from 'vitest'
import { BLOB_THRESHOLD, logKey, openStore, rows, tampering } from './entry-codec-setup.js'

const log = logKey('blobs')
const TEXT = 'a long text. '.repeat(100)
const BYTES = new Uint8Array(2000).map((_, i) => i)
const WHOLE = { parts: Array.from({ length: 20 }, (_, i) => ({ i, at: new Date(i), text: 'x'.repeat(80) })) }

async function headers(driver: Awaited<ReturnType<typeof openMemory>>, of = log) {
  return (await rows(driver, of)).entries.map(({ header }) => decodeHeader(header))
}

describe('large values', () => {
  it('are spared by the clock of the store that dates them, not by one here that runs ahead', async () => {
    const clock = virtualClock()
    const driver = await openMemory({ clock })
    const dated = { ...driver, now: async () => clock.now() }
    const ahead = virtualClock({ now: clock.now() + 86_400_000 })
    await driver.putBlobs(log.tenant, [{ hash: 'ab'.repeat(32), bytes: BYTES }])
    assert.equal((await openStore(dated, { clock: ahead }).collectBlobs(log.tenant)).removed, 0)
    await clock.advance(2 * 3_600_000)
    assert.equal((await openStore(dated, { clock: ahead }).collectBlobs(log.tenant)).removed, 1)
  })

  it('are stored once, pointed to from their entry, its keyframes and its forks, and come back exactly', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const store = openStore(driver)
    const handle = await store.open(log)
    await handle.update(() => [
      { kind: 'step', ops: [set('text', TEXT), set('bytes', BYTES), push('list', WHOLE, 1)], data: WHOLE },
    ])
    const stored = await driver.listBlobs(log.tenant, { limit: 100 })
    assert.equal(stored.length, 3)
    await handle.update(() => [{ kind: 'step', keyframe: true }])
    const again = await openStore(driver).open(log)
    await again.update(() => [{ kind: 'step', keyframe: true }])
    const fork = await again.fork({ branch: 'fork' as BranchId })
    assert.deepStrictEqual(
      await driver.listBlobs(log.tenant, { limit: 100 }).then((list) => list.map(({ hash }) => hash)),
      stored.map(({ hash }) => hash),
    )
    for (const { blobs, size } of [...(await headers(driver)), ...(await headers(driver, fork.key))]) {
      assert.deepStrictEqual(new Set(blobs), new Set(stored.map(({ hash }) => hash)))
      assert(size < 1000, `an entry of ${size} bytes`)
    }
    const expected = { text: TEXT, bytes: BYTES, list: [WHOLE, 1] }
    for (const key of [log, fork.key]) assert.deepStrictEqual((await openStore(driver).open(key)).fold.state, expected)
    for await (const { body } of again.entries(0, 0)) assert.deepStrictEqual(body.data, WHOLE)
  })

  it('are stored once however they are wrapped', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const handle = await openStore(driver).open(log)
    const written = writeValue({ read: { text: TEXT, whole: WHOLE } }, DEFAULT_LIMITS)
    await handle.update(() => [
      { kind: 'step', ops: [set('text', TEXT), set('whole', WHOLE), set('bytes', BYTES)] },
      {
        kind: 'step',
        ops: [set('a', { text: TEXT }), set('b', { deep: [{ text: TEXT, n: 1 }, WHOLE, BYTES] })],
        data: { events: [], said: TEXT },
      },
      { kind: 'step', ops: [push('list', [WHOLE], { doc: WHOLE, at: new Date(5) }), set('c', written)] },
    ])
    await handle.update(() => [{ kind: 'step', keyframe: true }])
    const stored = await driver.listBlobs(log.tenant, { limit: 100 })
    assert.equal(stored.length, 3)
    for (const { size } of await headers(driver)) assert(size < 1500, `an entry of ${size} bytes`)
    const expected = {
      text: TEXT,
      whole: WHOLE,
      bytes: BYTES,
      a: { text: TEXT },
      b: { deep: [{ text: TEXT, n: 1 }, WHOLE, BYTES] },
      list: [[WHOLE], { doc: WHOLE, at: new Date(5) }],
      c: { read: { text: TEXT, whole: WHOLE } },
    }
    const again = await openStore(driver).open(log)
    assert.deepStrictEqual(again.fold.state, expected)
    await again.update(() => [{ kind: 'step', keyframe: true }])
    assert.deepStrictEqual((await openStore(driver).open(log)).fold.state, expected)
    assert.equal((await driver.listBlobs(log.tenant, { limit: 100 })).length, 3)
  })

  it('stay one blob where what wraps them is large itself', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const handle = await openStore(driver).open(log)
    const wide = {
      text: TEXT,
      ...Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`row ${i}`, `of many ${i}`])),
      inner: { whole: WHOLE },
    }
    await handle.update(() => [{ kind: 'step', ops: [set('wide', wide), set('outer', { wide, n: 1 })] }])
    assert.equal((await driver.listBlobs(log.tenant, { limit: 100 })).length, 1)
    assert.deepStrictEqual((await openStore(driver).open(log)).fold.state, { wide, outer: { wide, n: 1 } })
  })

  it('move out from the threshold on', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const handle = await openStore(driver).open(log)
    await handle.update(() => [
      { kind: 'step', ops: [set('a', 'x'.repeat(BLOB_THRESHOLD - 1)), set('b', new Uint8Array(BLOB_THRESHOLD - 1))] },
    ])
    await handle.update(() => [
      { kind: 'step', ops: [set('a', 'x'.repeat(BLOB_THRESHOLD)), set('b', new Uint8Array(BLOB_THRESHOLD))] },
    ])
    assert.deepStrictEqual(
      (await headers(driver)).map(({ blobs }) => blobs.length),
      [0, 2],
    )
  })

  it('stay inside when they have no UTF-8 form', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const handle = await openStore(driver).open(log)
    const lone = `${'x'.repeat(2000)}\ud800`
    await handle.update(() => [{ kind: 'step', ops: [set('lone', lone), set('whole', [lone])] }])
    assert.deepStrictEqual((await openStore(driver).open(log)).fold.state, { lone, whole: [lone] })
  })

  it('are copied: what the writer does to them afterwards changes nothing', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const handle = await openStore(driver).open(log)
    const whole = structuredClone(WHOLE)
    const bytes = BYTES.slice()
    await handle.update(() => [{ kind: 'step', ops: [set('whole', whole), set('bytes', bytes)] }])
    whole.parts.pop()
    bytes.fill(0)
    assert.deepStrictEqual(handle.fold.state, { whole: WHOLE, bytes: BYTES })
    await handle.update(() => [{ kind: 'step', keyframe: true }])
    assert.deepStrictEqual((await openStore(driver).open(log)).fold.state, { whole: WHOLE, bytes: BYTES })
  })

  it('that were changed by a later operation are written as they are then', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const handle = await openStore(driver).open(log)
    await handle.update(() => [{ kind: 'step', ops: [set('whole', WHOLE)] }])
    await handle.update(() => [{ kind: 'step', ops: [set(['whole', 'parts', 0, 'text'], 'changed')], keyframe: true }])
    const { state } = (await openStore(driver).open(log)).fold
    assert.deepStrictEqual(state, handle.fold.state)
    assert.equal((state as { whole: typeof WHOLE }).whole.parts[0]?.text, 'changed')
  })

  it('are missed by name: an entry without one of its blobs is corrupt, and the others are read', async () => {
    const driver = tampering(await openMemory({ clock: virtualClock() }))
    const handle = await openStore(driver).open(log)
    await handle.update(() => [{ kind: 'step', ops: [set('a', 1)] }])
    await handle.update(() => [{ kind: 'step', ops: [set('text', TEXT)] }])
    driver.tamper = { blob: () => undefined }
    const [blob] = (await headers(driver))[1]?.blobs ?? []
    await assert.rejects(openStore(driver).open(log), (error) => {
      assert(isHoldfastError(error, 'corrupt'))
      assert.equal(error.data['blob'], blob)
      assert.equal(error.data['lastGood'], `main~0~${String(error.data['lastGood']).slice(-12)}`)
      return true
    })
    assert.deepStrictEqual((await handle.at(0)).state, { a: 1 })
  })

  it('over the limit of bytes are refused with nothing written', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const handle = await openStore(driver, { limits: { maxBytes: 10_000 } }).open(log)
    for (const value of ['x'.repeat(10_001), new Uint8Array(10_001), { deep: ['x'.repeat(9000), 'y'.repeat(9000)] }]) {
      await assert.rejects(
        handle.update(() => [{ kind: 'step', ops: [set('a', value)] }]),
        (error) => isHoldfastError(error, 'too-large'),
      )
    }
    assert.deepEqual(await driver.listBlobs(log.tenant, { limit: 10 }), [])
    assert.equal(handle.exists, false)
  })
})
