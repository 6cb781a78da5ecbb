// @ts-check
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runDemo } from '#src/demo/run-demo.js'

/** @typedef {{ url: string, sessions: number, workers?: number, seed?: number, killEveryMs?: number, leaseMs?: number, latencyMs?: number, onProgress?: (done: number, kills: number) => void }} FleetOptions */

/**
 * The work of the demo, on any store: long conversations with an agent whose tools return goods, while one worker after
 * the other is killed. Throws unless every customer was answered, in order, and every return was opened once.
 * @param {FleetOptions} options
 */
export async function fleetRound({
  url,
  sessions,
  workers = 3,
  seed = 1,
  killEveryMs = 2000,
  leaseMs = 2000,
  latencyMs = 100,
  onProgress,
}) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-fleet-'))
  try {
    const report = await runDemo({
      store: url,
      tenant: 'fleet',
      folder,
      sessions,
      workers,
      killEveryMs,
      leaseMs,
      latencyMs,
      seed,
      onProgress: ({ done, kills }) => onProgress?.(done, kills),
    })
    const { completed, lost, doubled, problems, chainsVerified, chainsSampled } = report
    assert.deepEqual({ completed, lost, doubled, problems }, { completed: sessions, lost: 0, doubled: 0, problems: [] })
    assert.equal(chainsVerified, chainsSampled, 'every hash that was looked at is right')
    return report
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
