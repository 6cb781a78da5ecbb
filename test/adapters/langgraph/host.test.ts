import { Annotation, interrupt, Send, START, StateGraph } from '@langchain/langgraph'
import { Holdfast, type OpenPause } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { hostGraph } from 'holdfast/langgraph'
import { virtualClock } from 'holdfast/testing'
import { describe, expect, it } from 'vitest'
import { full } from '../../support/scale.js'
import { mortalDriver } from '../../support/mortal-driver.js'

const list = () => Annotation<string[]>({ reducer: (a, b) => a.concat(b), default: () => [] })

/** Two branches that ask at once, one of them twice in one node and inside a subgraph. */
function makeGraph() {
  const twice = new StateGraph(Annotation.Root({ log: list() }))
    .addNode('ask', () => {
      const one = interrupt<unknown, string>({ ask: 'one' })
      const two = interrupt<unknown, string>({ ask: 'two' })
      return { log: [`${one}+${two}`] }
    })
    .addEdge(START, 'ask')
    .compile()
  return new StateGraph(Annotation.Root({ log: list() }))
    .addNode('begin', () => ({ log: ['begin'] }))
    .addNode('twice', async () => ({ log: (await twice.invoke({ log: [] })).log }))
    .addNode('once', () => ({ log: [interrupt<unknown, string>({ ask: 'three' })] }))
    .addNode('end', () => ({ log: ['end'] }))
    .addEdge(START, 'begin')
    .addConditionalEdges('begin', () => [new Send('twice', {}), new Send('once', {})], ['twice', 'once'])
    .addEdge('twice', 'end')
    .addEdge('once', 'end')
    .compile()
}

const LEASE_MS = 10_000
/** Every call in `test:full`, some of them otherwise. */
const STRIDE = full ? 1 : 5
const ANSWERS: Readonly<Record<string, string>> = { one: '1', two: '2', three: '3' }
const askOf = ({ question }: OpenPause) => (question as unknown as { value: { ask: string } }).value.ask

describe('a hosted graph', () => {
  it('comes to the same state whenever its process dies, and gives each answer to its own question', async () => {
    const graph = makeGraph()
    let deaths = 0
    // A process that dies at its nth call of the store, until one lives to the end.
    for (let dieAt = 1; ; dieAt += STRIDE) {
      const clock = virtualClock({ now: Date.now() })
      const store = await openDriver('memory:', { clock })
      const live = async (driver: Driver) => {
        const hf = new Holdfast(new LogStore(driver, { clock }))
        const program = hostGraph(hf, graph, { name: 'g' })
        const thread = hf.thread(program, 't')
        let outcome = await thread.run({ input: { input: { log: ['in'] } }, key: 'k' })
        while (outcome.status === 'paused') {
          for (const pause of outcome.pauses) await thread.answer(pause.id, ANSWERS[askOf(pause)])
          outcome = await thread.run()
        }
        return { outcome, state: await program.hosted.state('default', 't') }
      }
      const mortal = mortalDriver(store)
      mortal.dieAt(dieAt, dieAt % 2 === 0 ? 'before' : 'after')
      const ended = await Promise.race([mortal.died, live(mortal.driver)])
      if (ended === 'died') {
        deaths++
        await clock.advance(LEASE_MS + 1)
      }
      const { outcome, state } = ended === 'died' ? await live(store) : ended
      expect(outcome, `died at call ${dieAt}`).toMatchObject({ status: 'completed' })
      expect(state?.values['log'], `died at call ${dieAt}`).toEqual(['in', 'begin', '1+2', '3', 'end'])
      if (ended !== 'died') break
    }
    expect(deaths).toBeGreaterThan(5)
  })
})
