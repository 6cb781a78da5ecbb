import { flow } from 'holdfast'

/** Two charges of a service outside that honors keys, around a rest; each can be held open by the service. */
export function makeOrders(service, name) {
  const charge = async (step, order, idempotencyKey, signal) => {
    const body = JSON.stringify({ step, order, key: idempotencyKey, by: name })
    const response = await fetch(`${service}/charge`, { method: 'POST', body, signal })
    return response.json()
  }
  return flow({ name: 'order', version: '1.0.0' }, async (ctx, order) => {
    const policy = { effect: 'idempotent' }
    await ctx.step('deposit', policy, (step) => charge('deposit', order, step.idempotencyKey, step.abortSignal))
    await ctx.sleep(1)
    await ctx.step('rest', policy, (step) => charge('rest', order, step.idempotencyKey, step.abortSignal))
    return order
  })
}
