import assert from 'node:assert/strict'
import { decodeHeader, type EntryHeader } from '#src/codec/header.js'
import { DEFAULT_LIMITS } from '#src/codec/limits.js'
import { encodeValue } from '#src/codec/value.js'
import { openMemory } from '#src/drivers/memory/memory-driver.js'
import type { Driver } from '#src/log/contract.js'
import { emptyFold, type Fold } from '#src/log/entry/fold.js'
import { isKeyframeDue } from '#src/log/entry/keyframe-body.js'
import { type Op, push, remove, set, splice } from '#src/log/entry/ops.js'
import { virtualClock } from '#src/testing/virtual-clock.js'
import fc from 'fast-check'
import { describe, it } from 'vitest'
import { randomly, rounds } from '../support/scale.js'
import { codecFor, logKey } from './entry-codec-setup.js'

// No keyframe is written below 64 KB of deltas; with it comes the entry that passes them, and the keyframe before.
const SMALL = (64 + 32) * 1024

interface Written {
  readonly header: EntryHeader
  readonly fold: Fold
  /** JSON bytes of the change alone, had it been a delta. */
  readonly delta: number
  /** Everything written so far, keyframes included. */
  readonly stored: number
  /** What reading this state takes: its keyframe and all entries after it. */
  readonly tail: number
}

/** Seals entries one after another and reports what each costs, in bytes before compression. */
async function* write(driver: Driver, entries: Iterable<readonly Op[]>): AsyncGenerator<Written> {
  const codec = codecFor(driver, logKey())
  let fold = emptyFold('i')
  let stored = 0
  let tail = 0
  for (const ops of entries) {
    const sealed = await codec.seal(fold, { kind: 'step', ops }, { appendId: 'a', epoch: 0, at: 0 })
    const header = decodeHeader(sealed.entry.header)
    fold = sealed.fold
    stored += header.size
    tail = header.keyframe === header.seq ? header.size : tail + header.size
    yield { header, fold, delta: sizeOf({ ops }), stored, tail }
  }
}

function sizeOf(value: unknown): number {
  return Buffer.byteLength(encodeValue(value, DEFAULT_LIMITS).json)
}

const text = (size: number, seed: number): string =>
  String(seed)
    .padStart(8, '0')
    .repeat(Math.ceil(size / 8))
    .slice(0, size)

const sizes = fc.constantFrom([20, 200], [200, 900], [20, 900])
const steps = (length: number) => fc.array(fc.nat(), { minLength: length, maxLength: length })

function sizeFrom([min, max]: readonly number[], random: number): number {
  return (min as number) + (random % ((max as number) - (min as number)))
}

describe('keyframes', () => {
  it('cost a growing log at most 2.4 times its data, at every entry', async () => {
    await fc.assert(
      fc.asyncProperty(sizes, steps(rounds(500, 2000)), async (range, randoms) => {
        const driver = await openMemory({ clock: virtualClock() })
        let raw = 0
        let keyframes = 0
        for await (const { header, delta, stored } of write(
          driver,
          randoms.map((random, i) => [push('messages', text(sizeFrom(range, random), i))]),
        )) {
          raw += delta
          if (header.keyframe === header.seq) keyframes++
          assert(stored <= raw * 2.4 + 1024, `entry ${header.seq}: ${stored} bytes stored for ${raw}`)
        }
        assert(keyframes < 12, `${keyframes} keyframes`)
      }),
      randomly(rounds(8)),
    )
  })

  it('keep reading within about twice the state when values are replaced, and storing within 2.4 times what was written', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(1, 5, 50, 200),
        sizes,
        steps(rounds(400, 2000)),
        async (names, range, randoms) => {
          const driver = await openMemory({ clock: virtualClock() })
          const entries = randoms.map((random, i) => [set(`k${random % names}`, text(sizeFrom(range, random), i))])
          let raw = 0
          for await (const { fold, header, delta, stored, tail } of write(driver, entries)) {
            raw += delta
            assert(stored <= raw * 2.4 + SMALL, `entry ${header.seq}: ${stored} bytes stored for ${raw}`)
            if (header.seq % 10 === 0) {
              const state = sizeOf(fold.state)
              assert(tail <= state * 2.2 + SMALL, `entry ${header.seq}: ${tail} bytes to read for a state of ${state}`)
            }
          }
        },
      ),
      randomly(rounds(8)),
    )
  })

  it('keep both bounds when a list is cut as it grows, and when values come and go', async () => {
    await fc.assert(
      fc.asyncProperty(steps(rounds(600, 2000)), async (randoms) => {
        const driver = await openMemory({ clock: virtualClock() })
        let length = 0
        const entries = randoms.map((random, i): readonly Op[] => {
          const item = text(sizeFrom([20, 900], random), i)
          if (random % 7 === 0) return [set(['map', `k${random % 30}`], item)]
          if (random % 7 === 1) return [remove(['map', `k${random % 30}`])]
          if (length > 40 && random % 3 === 0) {
            length -= 19
            return [splice('list', 0, 20, 'a summary of what was cut')]
          }
          length++
          return [push('list', item)]
        })
        let raw = 0
        for await (const { fold, header, delta, stored, tail } of write(driver, entries)) {
          raw += delta
          assert(stored <= raw * 2.4 + SMALL)
          if (header.seq % 10 === 0) assert(tail <= sizeOf(fold.state) * 2.2 + SMALL)
        }
      }),
      randomly(rounds(8)),
    )
  })

  it('count a value in a blob as the pointer that it is', async () => {
    const driver = await openMemory({ clock: virtualClock() })
    const replaced = Array.from({ length: 200 }, (_, i) => [
      set('page', text(5000, i)),
      set('json', { parts: [text(600, i), text(600, i)] }),
    ])
    for await (const { header, stored } of write(driver, replaced)) {
      assert(header.size < 500, `entry ${header.seq} has ${header.size} bytes`)
      assert(header.blobs.length === 2)
      assert(stored < 200 * 500)
    }
    const grown = Array.from({ length: 600 }, (_, i) => [
      push('pages', text(2000, i), { parts: [text(1200, i)] }),
      set('count', i),
    ])
    let keyframes = 0
    for await (const { header, fold } of write(driver, grown)) {
      if (header.keyframe !== header.seq || header.seq === 0) continue
      keyframes++
      const pointers = (fold.state['pages'] as unknown[]).length
      assert(header.size < pointers * 100 + 1000, `a keyframe of ${header.size} bytes for ${pointers} pointers`)
    }
    assert(keyframes > 0)
  })

  it('are due by weight alone: never for little, always when the deltas outweigh what is alive', () => {
    const weight = (keyframeBytes: number, deltaBytes: number, liveBytes: number) => ({
      keyframe: 0,
      keyframeBytes,
      deltaBytes,
      liveBytes,
    })
    assert.equal(isKeyframeDue(weight(10, 64 * 1024 - 1, 0)), false)
    assert.equal(isKeyframeDue(weight(10, 64 * 1024, 10)), true)
    assert.equal(isKeyframeDue(weight(100_000, 100_000, 200_000)), false)
    assert.equal(isKeyframeDue(weight(100_000, 300_000, 400_000)), false)
    assert.equal(isKeyframeDue(weight(100_000, 300_001, 400_001)), true)
    assert.equal(isKeyframeDue(weight(100_000, 100_001, 100_000)), true)
  })
})
