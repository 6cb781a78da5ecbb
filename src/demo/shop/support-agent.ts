import { setTimeout as sleep } from 'node:timers/promises'
import { agent, type Effect, type LanguageModel, NotExecutedError, type Reconciled, tool } from '../../index.js'
import { emailOf } from './customers.js'
import type { OpenedReturn, Order, ReturnRequest, Shop } from './shop.js'
import { textSchema } from './tool-schema.js'

export interface SupportOptions {
  readonly model: LanguageModel
  readonly shop: Shop
  /** How long the shop thinks before it acts, and how long its reply is on its way. */
  readonly shopMs?: { readonly before: number; readonly after: number }
  /** What the tools that send articles back say of themselves; another value than the default is a mistake to show. */
  readonly effect?: Effect
}

const POLICY = `You are the support agent of Nordvei, a shop for outdoor clothes and equipment. You help customers with the status of their orders, with returns and exchanges, and with finding articles. Use the tools for every fact: never guess a date, a price or whether something is in stock. Look at the order before you open a return or an exchange, and open one only when the customer has asked for it. Articles can be sent back within 30 days of delivery, refunds take 3 to 5 days from the arrival of the parcel, standard delivery is free from €80 and costs €6.90 below that. Be brief and friendly, and offer further help at the end.`

/** Enough to offer; what a tool gives back stays in the conversation, and is sent with every call that follows. */
const MOST_FOUND = 4

/**
 * The agent of the Black Friday demo. Returns and exchanges are `reconcilable`: the shop opens one each time it is
 * asked, so after a crash it is first asked about the outcome of the request.
 */
export function makeSupport({ model, shop, shopMs = { before: 0, after: 0 }, effect }: SupportOptions) {
  const read = async <Result>(look: () => Result): Promise<Result> => {
    await sleep(shopMs.before / 4)
    return look()
  }
  const takeBack = async (request: ReturnRequest, signal: AbortSignal): Promise<OpenedReturn> => {
    await sleep(shopMs.before)
    // Whoever lost the conversation in the meantime must not act on it anymore.
    if (signal.aborted) throw new NotExecutedError('Another worker has taken over.')
    const opened = openOrRefuse(shop, request)
    // From here on it has happened, and a kill keeps us from ever recording that.
    await sleep(shopMs.after)
    return opened
  }
  const lookUp = ({ orderId, sku }: { readonly orderId: string; readonly sku: string }): Reconciled<OpenedReturn> => {
    const result = shop.findReturn(orderId, sku)
    return result === undefined ? { outcome: 'not-executed' } : { outcome: 'executed', result }
  }
  const declared =
    effect === undefined || effect === 'reconcilable'
      ? ({
          effect: 'reconcilable',
          reconcile: (_: string, input: Parameters<typeof lookUp>[0]) => lookUp(input),
        } as const)
      : { effect }

  return agent({
    name: 'black-friday-support',
    version: '1.0.0',
    model,
    stream: false,
    instructions: ({ thread }) => `${POLICY} The customer is ${emailOf(thread)}.`,
    tools: {
      listOrders: tool({
        description: 'All orders of the customer, newest first',
        inputSchema: textSchema(['email']),
        effect: 'read',
        execute: ({ email }) => read(() => shop.ordersOf(email).map(outline)),
      }),
      getOrderStatus: tool({
        description: 'One order with its articles, carrier and dates',
        inputSchema: textSchema(['orderId']),
        effect: 'read',
        execute: ({ orderId }) => read(() => shop.order(orderId) ?? { error: `There is no order ${orderId}.` }),
      }),
      searchInventory: tool({
        description: 'Finds articles by words such as kind, name and color, and by size',
        inputSchema: textSchema(['words'], ['size']),
        effect: 'read',
        execute: ({ words, size }) => read(() => shop.search(words.split(','), size).slice(0, MOST_FOUND)),
      }),
      initiateReturn: tool({
        description: 'Opens a return of an article and refunds it when it arrives',
        inputSchema: textSchema(['orderId', 'sku', 'reason']),
        ...declared,
        execute: (input, { abortSignal }) => takeBack({ ...input, quantity: 1 }, abortSignal),
      }),
      exchangeItem: tool({
        description: 'Exchanges an article of an order for another of the same price, which is sent at once',
        inputSchema: textSchema(['orderId', 'sku', 'reason', 'newSku']),
        ...declared,
        execute: ({ newSku, ...input }, { abortSignal }) =>
          takeBack({ ...input, quantity: 1, exchangeFor: newSku }, abortSignal),
      }),
    },
    maxTurns: 12,
    prices: { '*': { input: 0.27, output: 1.1 } },
  })
}

/** An order as a list shows it. */
function outline({ id, status, placed, lines }: Order) {
  return { id, status, placed, lines: lines.map(({ name, quantity }) => ({ name, quantity })) }
}

/** The shop decides in one transaction: what it refuses did not happen, and the model may correct itself. */
function openOrRefuse(shop: Shop, request: ReturnRequest): OpenedReturn {
  try {
    return shop.openReturn(request)
  } catch (error) {
    throw new NotExecutedError(error instanceof Error ? error.message : String(error))
  }
}
