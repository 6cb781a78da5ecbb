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
      let acknowledged = 0
      for (let i = 0; i < rounds(3); i++) {
        const round = await powerLossRound({ url })
        expect(round.lost).toBe(0)
        acknowledged += round.acknowledged
      }
      expect(acknowledged).toBeGreaterThan(0)
    })
  }

  it('would notice: without disk syncs acknowledged entries do get lost', { timeout: 600_000 }, async () => {
    let lost = 0
    for (let i = 0; i < 5 && lost === 0; i++)
      lost += (await powerLossRound({ url: (folder) => `sqlite:${folder}/store.db?synchronous=normal` })).lost
    expect(lost).toBeGreaterThan(0)
  })
})
