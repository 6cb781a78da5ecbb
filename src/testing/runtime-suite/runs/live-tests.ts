import assert from 'node:assert/strict'
import { flow, type Holdfast, type RunEvent } from '../../../index.js'
import { expectStatus, named, type RuntimeTest } from '../runtime-context.js'

/** Emits a number each time it is told to, until it is told to stop. */
function counter() {
  const state = { isOver: false, emitted: 0 }
  const program = flow<string, number>(named('counter'), (ctx) =>
    ctx.step('count', async (step) => {
      while (!state.isOver) {
        step.emit({ n: state.emitted++ })
        await pause(20)
      }
      return state.emitted
    }),
  )
  return { state, program }
}

async function listen(hf: Holdfast, enough: (events: readonly RunEvent[]) => boolean): Promise<readonly RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of hf.inspect('t').events({ live: true })) {
    events.push(event)
    if (enough(events)) break
  }
  return events
}

const customs = (events: readonly RunEvent[]) => events.flatMap((event) => (event.type === 'custom' ? [event] : []))

export const liveTests: readonly RuntimeTest[] = [
  {
    name: 'of a run reach those who listen in its process, in order and behind the records before them',
    async run({ hf }) {
      const { state, program } = counter()
      const running = hf.thread(program, 't').run({ input: 'go' })
      const events = await listen(hf, (all) => customs(all).length >= 5)
      state.isOver = true
      expectStatus(await running, 'completed')
      const numbers = customs(events).map(({ value }) => (value as { n: number }).n)
      assert.deepEqual(
        numbers,
        numbers.map((_, i) => (numbers[0] as number) + i),
      )
      const first = events.findIndex(({ type }) => type === 'custom')
      const record = events.findIndex(({ type, id }) => type === 'checkpoint' && id === events[first]?.id)
      assert.ok(record >= 0 && record < first, 'the record that a live event names comes before it')
    },
  },
  {
    name: 'of a run reach those who listen in another process, where the backend carries them',
    timeoutMs: 300_000,
    async run({ hf, other }) {
      // SQLite and files tell at most that something changed.
      if (!hf.capabilities.messages) return
      const { state, program } = counter()
      const running = hf.thread(program, 't').run({ input: 'go' })
      const events = await listen(await other(), (all) => customs(all).length >= 5)
      const heard = customs(events).map(({ value }) => (value as { n: number }).n)
      assert.deepEqual(
        heard,
        [...heard].sort((a, b) => a - b),
      )
      state.isOver = true
      expectStatus(await running, 'completed')
    },
  },
]

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
