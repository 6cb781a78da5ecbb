import { append, END, graph, last, merge, openHoldfast, reduced, START } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { applyOp, type Op } from '#src/log/entry/ops.js'
import { resultIn, withRecords } from '#src/runtime/engine/closings.js'

const state = {
  notes: append<string>(),
  count: last<number>(undefined, { initial: 0 }),
  facts: merge<Record<string, number>>(undefined, { initial: () => ({}) }),
  sum: reduced<number, number>(undefined, (old, more) => old + more, { initial: 0 }),
}

const inner = graph({ name: 'inner', version: '1.0.0', state: { notes: append<string>() } })
  .node('think', () => ({ notes: ['thought'] }))
  .edge(START, 'think')
  .edge('think', END)

/** Every way in which a super-step closes: alone, by a reducer, side by side, with a subgraph, with steps of its own. */
const desk = graph({ name: 'desk', version: '1.0.0', state })
  .node('alone', () => ({ notes: ['a', 'b'], count: 1, facts: { x: 1, y: 2 } }))
  .node('same', ({ count }) => ({ count, notes: [] }))
  .node('adds', () => ({ sum: 3, notes: 'c' }))
  .node('left', () => ({ notes: 'left' }))
  .node('right', () => ({ notes: 'right' }))
  .node('sub', inner, { input: () => ({}), output: ({ notes }) => ({ notes }) })
  .node('steps', async (_, ctx) => ({ notes: await ctx.step('read', () => 'read') }))
  .edge(START, 'alone')
  .edge('alone', 'same')
  .edge('same', 'adds')
  .edge('adds', 'left')
  .edge('adds', 'right')
  .edge(['left', 'right'], 'sub')
  .edge('sub', 'steps')
  .edge('steps', END)

async function entriesOf(frequency: 'step' | 'boundary') {
  const hf = await openHoldfast('memory:')
  const thread = hf.thread(desk, 't')
  const outcome = await thread.run({ input: {}, frequency })
  const entries = []
  for await (const { body, fold } of (await hf.log('t')).entries()) entries.push({ ops: body.ops ?? [], fold })
  const replay = await thread.replay()
  await hf.close()
  return { outcome, entries, replay }
}

describe.each(['step', 'boundary'] as const)('super-steps that are written at every %s', (frequency) => {
  it('lead to the same state with and without the records of their results', async () => {
    const { entries, outcome, replay } = await entriesOf(frequency)
    expect(outcome).toMatchObject({
      status: 'completed',
      state: { notes: ['a', 'b', 'c', 'left', 'right', 'thought', 'read'], count: 1, facts: { x: 1, y: 2 }, sum: 3 },
    })
    let before = {}
    for (const { ops, fold } of entries) {
      const whole = withRecords(ops, before)
      expect(whole.reduce((after, op) => applyOp(after, op), before)).toEqual(fold.state)
      before = fold.state
    }
    expect(replay).toMatchObject({ status: 'identical' })
  })

  it('tell what each node returned', async () => {
    const { entries } = await entriesOf(frequency)
    const results: Record<string, unknown> = {}
    let before = {}
    for (const { ops, fold } of entries) {
      for (const op of withRecords(ops, before)) {
        const [kind, path, record] = op as readonly ['set', readonly string[], { result?: unknown }]
        const id = path.at(-1) as string
        if (kind !== 'set' || path.at(-2) !== 'steps' || !/^\d+:[a-z]+$/.test(id)) continue
        const where = path.filter((_, i) => i % 2 === 1).join('/')
        results[where] = record.result
        expect(resultIn(ops, where) ?? record.result).toEqual(record.result)
      }
      before = fold.state
    }
    expect(results).toMatchObject({
      '0:alone': { notes: ['a', 'b'], count: 1, facts: { x: 1, y: 2 } },
      '2:adds': { sum: 3, notes: ['c'] },
      '3:left': { notes: ['left'] },
      '3:right': { notes: ['right'] },
      '4:sub': { notes: ['thought'] },
      '4:sub/0:think': { notes: ['thought'] },
      '5:steps': { notes: ['read'] },
    })
  })
})

it('a closing that other changes come between is left as it is', () => {
  const before = { state: { n: 0 }, tasks: [{ id: '0:a', node: 'a' }], run: { count: 0 } }
  const ops: Op[] = [
    ['set', ['run', 'count'], 1],
    ['set', ['pauses', 'p'], {}],
    ['set', ['tasks'], []],
  ]
  expect(withRecords(ops, before)).toEqual(ops)
})
