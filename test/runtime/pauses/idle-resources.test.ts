import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { END, graph, last, openHoldfast, START } from 'holdfast'
import { afterAll, describe, expect, it } from 'vitest'
import { rounds } from '../../support/scale.js'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-crowd-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const program = graph({ name: 'crowd', version: '1.0.0', state: { said: last<string>() } })
  .node('ask', {
    timeoutMs: 3_600_000,
    run: async (_, ctx) => ({ said: await ctx.pause<string>('well?', { expiresInMs: 3_600_000 }) }),
  })
  .edge(START, 'ask')
  .edge('ask', END)

/** What keeps this process alive, by kind: timers, sockets, files. */
async function resources(): Promise<Record<string, number>> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve))
  const counts: Record<string, number> = {}
  for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

// Without a disk sync per append: what is looked at is what stays behind in the process.
const crowds = [
  { name: 'memory', url: 'memory:', count: rounds(1000, 10_000) },
  { name: 'SQLite', url: `sqlite:${join(folder, 'crowd.db')}?synchronous=normal`, count: rounds(300, 10_000) },
]

describe.each(crowds)('$count paused threads on $name', ({ url, count }) => {
  it('hold no timer and no connection', { timeout: 600_000 }, async () => {
    const hf = await openHoldfast(url)
    await hf.thread(program, 'first').run({ input: {} })
    const before = await resources()
    let next = 0
    const walk = async () => {
      for (let i = next++; i < count; i = next++) {
        const { status } = await hf.thread(program, `t${i}`).run({ input: {} })
        if (status !== 'paused') throw new Error(`Thread ${i} is ${status}.`)
      }
    }
    await Promise.all(Array.from({ length: 200 }, walk))
    // What is left behind stays; a timer of whoever runs the tests goes again.
    const more = async () => Object.entries(await resources()).filter(([kind, n]) => n > (before[kind] ?? 0))
    // Not by `expect.poll`, whose own timer would be found each time.
    while ((await more()).length > 0) await new Promise((resolve) => setTimeout(resolve, 20))
    // The last of them is as alive as the first.
    const [{ id }] = await hf.inspect(`t${count - 1}`).pauses()
    await hf.inspect(`t${count - 1}`).answer(id, 'fine')
    expect(await hf.thread(program, `t${count - 1}`).run()).toMatchObject({ status: 'completed' })
    await hf.close()
  })
})
