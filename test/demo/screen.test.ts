import { stripVTControlCharacters } from 'node:util'
import { DemoScreen } from '#src/cli/screen/demo-screen.js'
import { Output } from '#src/cli/screen/output.js'
import { expect, it } from 'vitest'

/** What one picture of the demo looks like on a terminal of this size, line by line. */
function draw(columns: number, rows: number, workers: number): readonly string[] {
  let written = ''
  const stream = { isTTY: true, columns, rows, write: (text: string) => void (written += text) }
  const output = new Output({ stdout: stream, stderr: stream, json: false, terminal: true, color: true })
  const screen = new DemoScreen(output, { sessions: 847, workers, killEveryMs: 5000, store: 'sqlite:a.db' })
  const members = Array.from({ length: workers }, (_, i) => ({
    name: `worker-${i + 100}`,
    pid: 4_194_304,
    startedAt: Date.now() - 125_000,
    ready: i % 2 === 0,
    holds: new Set(Array.from({ length: 32 }, (_, n) => `bf-${n}`)),
  }))
  screen.show({
    phase: 'open',
    elapsedMs: 125_000,
    sessions: 847,
    done: 612,
    active: 192,
    turns: 18_371,
    turnsInAll: 18_972,
    turnsPerSecond: 163,
    workers: members,
    kills: 24,
    takeovers: 1483,
    orphans: 32,
    takeoverMsP50: 2312,
    takeoverMsP99: 4415,
    lastKill: { name: 'worker-112', pid: 4_194_304, held: 32 },
    checked: 0,
  })
  const picture = written
  screen.end()
  return stripVTControlCharacters(picture).replace(/^\r/, '').trimEnd().split('\n')
}

it.each([
  [80, 24, 3],
  [60, 20, 3],
  [60, 20, 40],
])('draws a picture that fits %i columns and %i rows, with %i workers', (columns, rows, workers) => {
  const lines = draw(columns, rows, workers)
  for (const line of lines) expect([...line].length, line).toBeLessThanOrEqual(columns)
  // One more than fits would be drawn again and again further down.
  expect(lines.length).toBeLessThan(rows)
  expect(lines[2]).toMatch(/^█+░+ +96 % {2}18,371 of 18,972 turns {2}163\/s$/)
  expect(lines).toContainEqual(expect.stringMatching(/^worker-100 +pid 4194304 +125 s {2}▪+ 32 held$/))
  if (workers > 3) expect(lines.at(-1)).toMatch(/^and \d+ more$/)
})
