import { agent, append, type LanguageModel, NotExecutedError, type Reconciled, tool } from 'holdfast'
import { z } from 'zod'
import type { OpenedReturn, ReturnRequest, Shop } from './shop.js'

/** Returns above this amount need a person's agreement. */
const APPROVAL_ABOVE = 100

/** The support agent of the shop. */
export function makeSupport(model: LanguageModel, shop: Shop) {
  const returnSchema = z.object({
    orderId: z.string().describe('ORD-…'),
    sku: z.string().describe('The article, as the order lists it'),
    quantity: z.number().int().positive().default(1),
    reason: z.string(),
  })
  const amountOf = ({ orderId, sku, quantity }: z.output<typeof returnSchema>) =>
    (shop.order(orderId)?.lines.find((line) => line.sku === sku)?.price ?? 0) * quantity

  // The shop decides in one transaction: what it refuses did not happen, so the model may correct itself and call again.
  const open = (request: ReturnRequest): OpenedReturn => {
    try {
      return shop.openReturn(request)
    } catch (error) {
      throw new NotExecutedError(error instanceof Error ? error.message : String(error))
    }
  }

  // The shop opens a return each time it is asked. After a crash it is asked first what became of the request, by the key
  // that went with it: another return of the same article is not this one.
  const lookUp = (key: string): Reconciled<OpenedReturn> => {
    const result = shop.findReference(key)
    return result === undefined ? { outcome: 'not-executed' } : { outcome: 'executed', result }
  }

  return agent({
    name: 'customer-service',
    version: '1.0.0',
    model,
    instructions: ({ context }) =>
      `You are the support agent of Nordvei, a shop for outdoor clothes. You help with order status, returns, exchanges and finding articles. The customer is ${(context as { email?: string } | undefined)?.email ?? 'maya@example.com'}. Use the tools for every fact; be brief and friendly. Articles can be returned within 30 days; refunds take 3 to 5 days; standard delivery is free from €80.`,
    // Added to, not replaced: two returns may be opened side by side.
    state: { rmas: append<string>() },
    tools: {
      listOrders: tool({
        description: 'All orders of the customer, newest first',
        inputSchema: z.object({ email: z.string() }),
        effect: 'read',
        execute: ({ email }) => shop.ordersOf(email),
      }),
      getOrderStatus: tool({
        description: 'One order with its articles, carrier and dates',
        inputSchema: z.object({ orderId: z.string() }),
        effect: 'read',
        execute: ({ orderId }) => shop.order(orderId) ?? { error: `There is no order ${orderId}.` },
      }),
      searchInventory: tool({
        description: 'Finds articles by words such as kind, name and color, and by size',
        inputSchema: z.object({ words: z.string().describe('Parted by commas'), size: z.string().optional() }),
        effect: 'read',
        execute: ({ words, size }) => shop.search(words.split(','), size),
      }),
      initiateReturn: tool({
        description: 'Opens a return of an article and refunds it when it arrives',
        version: '1',
        inputSchema: returnSchema,
        effect: 'reconcilable',
        reconcile: lookUp,
        needsApproval: (input) => amountOf(input) > APPROVAL_ABOVE,
        execute: (input, { idempotencyKey, update }) => {
          const opened = open({ ...input, reference: idempotencyKey })
          update({ rmas: opened.rma })
          return opened
        },
      }),
      exchangeItem: tool({
        description: 'Exchanges an article of an order for another of the same price, which is sent at once',
        version: '1',
        inputSchema: returnSchema.extend({ newSku: z.string() }),
        effect: 'reconcilable',
        reconcile: lookUp,
        execute: ({ newSku, ...input }, { idempotencyKey, update }) => {
          const opened = open({ ...input, exchangeFor: newSku, reference: idempotencyKey })
          update({ rmas: opened.rma })
          return opened
        },
      }),
    },
    maxTurns: 12,
    prices: { '*': { input: 0.27, output: 1.1 } },
    onResume: ({ state }) => ({ openReturns: state.rmas.length }),
    compaction: { window: 32_000 },
  })
}
