// A graph of LangGraph.js as it is: nothing in it knows of Holdfast.
//   npm run example:langgraph       serves it on http://127.0.0.1:8787, with its states in returns.db
// Start a run with LangGraph's own client, kill the server while it asks, start it again, and answer.
import { Annotation, END, interrupt, START, StateGraph } from '@langchain/langgraph'

const State = Annotation.Root({
  orderId: Annotation<string>,
  amount: Annotation<number>,
  decision: Annotation<string>,
})

const ORDERS: Readonly<Record<string, number>> = { 'ORD-1': 89.9, 'ORD-2': 420 }

export const graph = new StateGraph(State)
  .addNode('find', ({ orderId }) => ({ amount: ORDERS[orderId] ?? 0 }))
  .addNode('approve', ({ orderId, amount }) => {
    const answer = interrupt<object, string>({ ask: `Refund ${amount} for ${orderId}?` })
    return { decision: answer }
  })
  .addNode('refund', ({ amount }) => ({ decision: `refunded ${amount}` }))
  .addEdge(START, 'find')
  .addConditionalEdges('find', ({ amount }) => (amount > 100 ? 'approve' : 'refund'), ['approve', 'refund'])
  .addConditionalEdges('approve', ({ decision }) => (decision === 'yes' ? 'refund' : END), ['refund', END])
  .addEdge('refund', END)
  .compile()
