// The programs that the tests of the command line run.
import { append, END, flow, graph, last, START } from 'holdfast'

export const returns = flow({ name: 'returns', version: '1.0.0' }, async (ctx, input) => {
  const order = await ctx.step('find order', () => ({ id: input.orderId, price: input.price ?? 10 }))
  if (input.fail)
    await ctx.step('break', { retry: { attempts: 1 } }, () => Promise.reject(new Error('the shop is closed')))
  if (input.wait) return { got: await ctx.receive('parcel') }
  if (order.price > 100) {
    const answer = await ctx.pause({ ask: 'Open a return?', order })
    if (!answer.approved) return { rejected: answer.reason ?? 'no reason' }
  }
  return { opened: `RET-${order.id}` }
})

export const counter = graph({
  name: 'counter',
  version: '1.0.0',
  state: { count: last(undefined, { initial: 0 }), seen: append() },
})
  .node('one', (state) => ({ count: state.count + 1, seen: ['one'] }))
  .node('two', (state) => ({ count: state.count * 10, seen: ['two'] }))
  .edge(START, 'one')
  .edge('one', 'two')
  .edge('two', END)
