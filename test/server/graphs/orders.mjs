// Graphs of LangGraph.js that the tests serve. A node waits until the file that its input names is there.
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { AIMessage } from '@langchain/core/messages'
import { Annotation, END, interrupt, MessagesAnnotation, Send, START, StateGraph } from '@langchain/langgraph'

const list = () => Annotation({ reducer: (a, b) => a.concat(b), default: () => [] })
const State = Annotation.Root({
  ...MessagesAnnotation.spec,
  gate: Annotation(),
  trail: Annotation(),
  log: list(),
  by: list(),
})

const note = (state, line) => state.trail && appendFileSync(state.trail, `${line}\n`)

// Asks twice in one node: both questions have one id.
const approval = new StateGraph(State)
  .addNode('ask', (state, config) => {
    const amount = interrupt({ ask: 'How much?' })
    const really = interrupt({ ask: 'Really?', amount })
    note(state, `asked ${amount} ${really}`)
    config.writer?.({ heard: [amount, really] })
    return { log: [`${amount} ${really}`] }
  })
  .addEdge(START, 'ask')
  .compile()

export const orders = new StateGraph(State)
  .addNode('find', (state) => {
    note(state, 'find')
    return { log: ['found'], by: [process.pid], messages: [new AIMessage({ id: 'm-found', content: 'Found it.' })] }
  })
  .addNode('wait', async (state, { signal }) => {
    while (state.gate && !existsSync(state.gate)) await sleep(20, undefined, { signal })
    note(state, 'wait')
    return { log: ['waited'], by: [process.pid] }
  })
  .addNode('approve', async (state, config) => {
    const { log } = await approval.invoke({ ...state, log: [] }, config)
    return { log }
  })
  .addNode('done', (state) => {
    note(state, 'done')
    return { log: ['done'], by: [process.pid] }
  })
  .addEdge(START, 'find')
  .addEdge('find', 'wait')
  .addConditionalEdges('wait', (state) => (state.log.includes('skip') ? 'done' : 'approve'), ['approve', 'done'])
  .addEdge('approve', 'done')
  .addEdge('done', END)

/** Two questions at a time, in a subgraph that is a node. */
const one = new StateGraph(Annotation.Root({ name: Annotation(), answers: list() }))
  .addNode('question', ({ name }) => ({ answers: [`${name}: ${interrupt({ name })}`] }))
  .addEdge(START, 'question')
  .compile()

export const survey = new StateGraph(Annotation.Root({ names: list(), answers: list() }))
  .addNode('one', one)
  .addNode('sum', ({ answers }) => ({ answers: [`${answers.length} answers`] }))
  .addConditionalEdges(START, ({ names }) => names.map((name) => new Send('one', { name })), ['one'])
  .addEdge('one', 'sum')
  .compile()

/** Remembers in the store, knows who asks. */
export const memory = () =>
  new StateGraph(Annotation.Root({ fact: Annotation(), known: Annotation(), user: Annotation() }))
    .addNode('keep', async ({ fact }, { store, configurable }) => {
      const before = await store.search(['facts'])
      if (fact === 'fail') throw new Error('no such fact')
      await store.put(['facts'], fact, { fact })
      return { known: before.map(({ key }) => key).sort(), user: configurable.langgraph_auth_user_id }
    })
    .addEdge(START, 'keep')
    .compile()
