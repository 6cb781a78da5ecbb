import { randomBytes } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { END, graph, last, openHoldfast, START } from 'holdfast'
import { describe, expect, it } from 'vitest'

const STEPS = 200
const BYTES = 10_000

// The engine keeps some functions until the next full collection, with all they lead to: if each step made one, what all
// steps since then had in hand would be in memory.
describe('what a step had in hand', () => {
  it('is let go of with the step, and not only when everything is collected', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void
    await using hf = await openHoldfast('memory:')
    const state = { count: last<number>(undefined, { initial: 0 }), text: last<string>() }
    const loop = graph({ name: 'loop', version: '1.0.0', state })
      .node('again', ({ count }) => ({ count: count + 1, text: randomBytes(BYTES / 2).toString('hex') }))
      .edge(START, 'again')
      .branch('again', ({ count }) => (count < STEPS ? 'again' : END), ['again', END])
    const run = (id: string) => hf.thread(loop, id).run({ input: {}, frequency: 'none' })
    // What is compiled on first use is no part of it.
    await run('warm-up')
    collect()
    const before = process.memoryUsage().heapUsed
    expect(await run('measured')).toMatchObject({ status: 'completed', state: { count: STEPS } })
    for (let i = 0; i < 3; i++) collect({ type: 'minor' })
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(STEPS * BYTES)
  })
})
