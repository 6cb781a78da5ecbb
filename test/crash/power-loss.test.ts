import { describe, expect, it } from 'vitest'
import { powerLossRound, whyNoPowerLoss } from '../../scripts/torture/power-loss.mjs'
import { rounds } from '../support/scale.js'

const reason = whyNoPowerLoss()

// The copied image lacks what the kernel had not written: acknowledged entries must not be among it.
describe.skipIf(reason !== undefined)(`power loss${reason ? ` (skipped: ${reason})` : ''}`, () => {
  const stores = {
    'SQLite, synchronous=full': (folder: string) => `sqlite:${folder}/store.db`,
    'file, fsync on': (folder: string) => `file:${folder}/store`,
  }
  for (const [name, url] of Object.entries(stores)) {
    it(`loses nothing acknowledged on ${name}`, { timeout: 600_000 }, async () => {
      for (let i = 0; i < rounds(3); i++) {
        const { acknowledged, lost } = await powerLossRound({ url })
        expect(acknowledged).toBeGreaterThan(0)
        expect(lost).toBe(0)
      }
    })
  }

  it('would notice: without disk syncs acknowledged entries do get lost', { timeout: 600_000 }, async () => {
    // Until something is lost: the kernel may happen to write all of it in time, though not every time.
    const url = (folder: string) => `sqlite:${folder}/store.db?synchronous=normal`
    while ((await powerLossRound({ url })).lost === 0);
  })
})
