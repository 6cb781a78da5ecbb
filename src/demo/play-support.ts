import type { ModelServerRequest, ScriptedReply, ScriptedToolCall } from '../testing/index.js'
import type { Order, OrderLine, Product } from './shop/shop.js'

type Message = ModelServerRequest['messages'][number]

/**
 * Plays the model: reads the conversation like a model would, decides by what the customer says, calls tools, and
 * answers from what they give back. Nothing of the shop's data is written here.
 */
export function playSupport({ messages }: ModelServerRequest): ScriptedReply {
  const since = messages.slice(messages.findLastIndex(({ role }) => role === 'user'))
  const said = String(since[0]?.['content'] ?? '')
  const results = since.filter(({ role }) => role === 'tool').map(readResult)
  return results.length === 0 ? begin(said, messages) : goOn(said, results, messages)
}

function begin(said: string, messages: readonly Message[]): ScriptedReply {
  const orderId = /ORD-\d{4}-\d+/.exec(said)?.[0]
  if (messages.filter(({ role }) => role === 'user').length === 1 && !/[?]/.test(said)) {
    return 'Good morning, and welcome to Nordvei! I can tell you where an order is, open a return, arrange an exchange for another size, or look for something in our shop. What can I do for you today?'
  }
  if (/\b(approved|supervisor|status of (my|the) return)\b/i.test(said)) return recallReturns(messages)
  if (/how (long|many days)|refund take|until when/i.test(said)) {
    return 'You can send articles back within 30 days of delivery. Once a parcel reaches us, we look at it on the same day, and the refund is on your account in 3 to 5 days. You will get an e-mail when it is on its way.'
  }
  if (/shipping|delivery cost|postage/i.test(said)) {
    return 'Standard delivery is free from €80; below that it is €6.90. Returns and exchanges are free of charge: the label comes by e-mail, and you can hand the parcel in at any post office. Express delivery is €14.90.'
  }
  if (/\b(thank|bye|that's all|great day)/i.test(said)) return farewell(messages)
  if (/my orders|what (have|did) I order/i.test(said)) return use('listOrders', { email: customerIn(messages) })
  if (/exchange|swap|(bigger|larger|smaller) size/i.test(said)) return lookUpLine(said, messages)
  if (/\b(return|send back|refund)\b/i.test(said)) return lookUpLine(said, messages)
  if (orderId !== undefined) return use('getOrderStatus', { orderId })
  if (/where|when|arrive|track/i.test(said) && lastOrder(messages)) {
    return use('getOrderStatus', { orderId: lastOrder(messages) })
  }
  const words = searchWords(said)
  if (words.length > 0) return use('searchInventory', { words: words.join(','), ...sizeIn(said) })
  return 'Of course. Is it about an order, a return or exchange, or are you looking for something?'
}

/** Whom the instructions name as the customer. */
function customerIn(messages: readonly Message[]): string {
  const instructions = messages.find(({ role }) => role === 'system')?.['content']
  return /[\w.+-]+@[\w-]+\.\w+/.exec(String(instructions))?.[0] ?? 'unknown'
}

/** A return or an exchange begins with a look at the order. */
function lookUpLine(said: string, messages: readonly Message[]): ScriptedReply {
  const orderId = /ORD-\d{4}-\d+/.exec(said)?.[0] ?? findOrderWith(said, messages) ?? lastOrder(messages)
  if (orderId === undefined) return use('listOrders', { email: customerIn(messages) })
  return use('getOrderStatus', { orderId })
}

interface Result {
  readonly name: string
  readonly value: unknown
  readonly text: string
}

function goOn(said: string, results: readonly Result[], messages: readonly Message[]): ScriptedReply {
  const last = results.at(-1) as Result
  if (isError(last))
    return `I am sorry, that is not possible: ${plainError(last.text)} Is there something else that would help?`
  switch (last.name) {
    case 'listOrders':
      return listOrders(last.value as readonly Order[])
    case 'getOrderStatus':
      return afterOrder(said, last.value as Order & { error?: string }, messages)
    case 'searchInventory':
      return afterSearch(said, results, last.value as readonly Product[])
    case 'initiateReturn': {
      const { rma, amount } = last.value as { rma: string; amount: number }
      return `Done: your return is ${rma}. Print the label from the e-mail, hand the parcel in at any post office, and ${euro(amount)} will be refunded when it arrives. That takes 3 to 5 days as a rule. Please pack the article as it came; the box it was sent in will do.`
    }
    default: {
      const { rma, sent = '' } = last.value as { rma: string; sent?: string }
      return `The exchange is arranged (${rma}). The new one, ${describeSku(sent)}, leaves our warehouse tomorrow; please send the old one back with the label in your e-mail. You have 30 days for that, and nothing more to pay, because both cost the same.`
    }
  }
}

function afterOrder(said: string, order: Order & { error?: string }, messages: readonly Message[]): ScriptedReply {
  if (order.error !== undefined) return `I can't find that order. Could you check the number in your confirmation?`
  const exchange = /exchange|swap|(bigger|larger|smaller) size/i.test(said)
  if (!exchange && !/\b(return|send back|refund)\b/i.test(said)) return describeOrder(order)
  const line = lineIn(said, order) ?? lineIn(lastUserWords(messages), order)
  if (line === undefined) {
    return `Order ${order.id} has ${list(order.lines.map(({ name }) => `the ${name}`))}. Which of them is it about?`
  }
  if (order.status !== 'delivered') {
    return `Order ${order.id} is still ${order.status}. Once it has arrived I can take back ${line.name} right away.`
  }
  if (exchange) return use('searchInventory', { words: `${line.name},${line.color}`, size: wantedSize(said, line) })
  return use('initiateReturn', { orderId: order.id, sku: line.sku, reason: reasonIn(said) })
}

function afterSearch(said: string, results: readonly Result[], found: readonly Product[]): ScriptedReply {
  const order = results.find(({ name }) => name === 'getOrderStatus')?.value as Order | undefined
  const line = order && lineIn(said, order)
  if (order && line) {
    const wanted = found.find(({ stock }) => stock > 0)
    if (wanted === undefined) {
      return `I am sorry, ${line.name} in ${line.color}, size ${wantedSize(said, line)}, is sold out. Shall I open a return instead, or look for another color?`
    }
    const { id: orderId } = order
    return use('exchangeItem', { orderId, sku: line.sku, reason: 'another size', newSku: wanted.sku })
  }
  const there = found.filter(({ stock }) => stock > 0)
  if (there.length === 0)
    return 'I am sorry, we have nothing like that in stock at the moment. Shall I look for something similar?'
  const offers = there.slice(0, 3).map(({ name, color, size, price, stock }) => {
    const few = stock <= 3 ? ', only a few left' : ''
    return `${name} in ${color}, ${size === 'one size' ? size : `size ${size}`}, for ${euro(price)}${few}`
  })
  const more = offers.length > 1 ? 'Would you like to know more about one of them?' : 'Shall I tell you more about it?'
  return `Yes, we have ${list(offers)}. ${more}`
}

function describeOrder(order: Order): string {
  const what = list(order.lines.map(({ name, quantity }) => (quantity > 1 ? `${quantity} × ${name}` : name)))
  if (order.status === 'delivered')
    return `Order ${order.id} (${what}) was delivered on ${order.delivered} by ${order.carrier}. You can send articles of it back within 30 days of that day; tell me which one, and I will open the return for you right away.`
  const way = order.carrier ? ` with ${order.carrier}, tracking number ${order.tracking}` : ''
  return `Order ${order.id} (${what}) is ${order.status}${way}, and should be with you by ${order.expected}. The carrier sends a message on the morning of the delivery, and you can have the parcel left with a neighbour or at a pick-up point.`
}

function listOrders(orders: readonly Order[]): string {
  if (orders.length === 0) return 'I see no orders under your address.'
  const lines = orders.map(
    ({ id, status, placed, lines: l }) =>
      `${id} of ${placed} (${l[0]?.name}${l.length > 1 ? ' and more' : ''}): ${status}`,
  )
  return `You have ${orders.length} orders with us: ${list(lines)}. Shall I look into one of them, or is there something that you would like to send back?`
}

function recallReturns(messages: readonly Message[]): string {
  const done = messages.filter(({ role }) => role === 'tool').map(readResult)
  const rmas = done.flatMap(({ value }) => (value as { rma?: string } | null)?.rma ?? [])
  if (rmas.length === 0) return 'There is no return open for you at the moment.'
  return `Yes: ${list(rmas)} ${rmas.length > 1 ? 'are' : 'is'} open. You will get an e-mail as soon as a parcel has reached us, and another one when the money is on its way back to you.`
}

function farewell(messages: readonly Message[]): string {
  const goodbye = messages.filter(({ role }) => role === 'user').length > 12
  return goodbye
    ? 'You are welcome, and enjoy the trip! If something comes up, write to us at any time; this conversation stays open for you.'
    : 'You are welcome, that is what I am here for! Is there anything else I can do for you: another order to look at, something to send back, or something you are looking for?'
}

function use(name: string, args: Readonly<Record<string, unknown>>): ScriptedReply {
  return { toolCalls: [{ name, arguments: args } satisfies ScriptedToolCall] }
}

function readResult(message: Message): Result {
  const text = String(message['content'] ?? '')
  const name = String(message['name'] ?? '')
  try {
    return { name: name || guessName(text), value: JSON.parse(text), text }
  } catch {
    return { name, value: null, text }
  }
}

// Tool messages carry only the id of their call, so the shape of a result tells which tool gave it.
function guessName(text: string): string {
  const value = JSON.parse(text) as Readonly<Record<string, unknown>> | readonly Readonly<Record<string, unknown>>[]
  if (Array.isArray(value)) return value.some((item) => 'lines' in item) ? 'listOrders' : 'searchInventory'
  if ('sent' in value) return 'exchangeItem'
  return 'rma' in value ? 'initiateReturn' : 'getOrderStatus'
}

function isError({ value, text }: Result): boolean {
  return value === null && text !== ''
}

function plainError(text: string): string {
  return text.replace(/Nothing was done:.*$/s, '').trim()
}

/** The article that the customer speaks of, by the words that only its name or kind has. */
function lineIn(said: string, order: Order): OrderLine | undefined {
  const words = said.toLowerCase()
  return order.lines.find(({ name }) =>
    name
      .toLowerCase()
      .split(/\s+/)
      .some((word) => word.length > 3 && words.includes(word.replace(/s$/, ''))),
  )
}

function findOrderWith(said: string, messages: readonly Message[]): string | undefined {
  for (const message of messages.toReversed()) {
    if (message.role !== 'tool') continue
    const { value } = readResult(message)
    const orders = (Array.isArray(value) ? value : [value]) as readonly Partial<Order>[]
    const found = orders.find((order) => order?.lines && lineIn(said, order as Order))
    if (found?.id !== undefined) return found.id
  }
  return undefined
}

function lastOrder(messages: readonly Message[]): string | undefined {
  for (const message of messages.toReversed()) {
    const { role } = message
    const found = role === 'user' || role === 'assistant' ? /ORD-\d{4}-\d+/.exec(String(message['content'])) : undefined
    if (found) return found[0]
  }
  return undefined
}

function lastUserWords(messages: readonly Message[]): string {
  return messages
    .filter(({ role }) => role === 'user')
    .slice(-3)
    .map((message) => String(message['content']))
    .join(' ')
}

function wantedSize(said: string, line: OrderLine): string {
  const named = /size (\d+|XS|S|M|L|XL)\b/i.exec(said)?.[1]
  if (named !== undefined) return named.toUpperCase()
  const step = /smaller/i.test(said) ? -1 : 1
  const letters = ['XS', 'S', 'M', 'L', 'XL']
  const at = letters.indexOf(line.size)
  return at >= 0 ? (letters[at + step] ?? line.size) : String(Number(line.size) + step)
}

function sizeIn(said: string): { readonly size?: string } {
  const size = /size (\d+|XS|S|M|L|XL)\b/i.exec(said)?.[1]
  return size === undefined ? {} : { size: size.toUpperCase() }
}

const KINDS = [
  'boots',
  'sandals',
  'socks',
  'sweater',
  'backpack',
  'bottle',
  'jacket',
  'shoes',
  'rain',
  'winter',
  'running',
]
const COLORS = ['brown', 'black', 'tan', 'blue', 'white', 'yellow', 'navy', 'red', 'grey', 'green', 'steel']

function searchWords(said: string): string[] {
  const words = said.toLowerCase()
  return [...KINDS, ...COLORS].filter((word) => new RegExp(`\\b${word.replace(/s$/, '')}s?\\b`).test(words))
}

function reasonIn(said: string): string {
  if (/small|tight|big|large|fit/i.test(said)) return 'does not fit'
  if (/broken|leak|damage|fault/i.test(said)) return 'damaged'
  return 'changed their mind'
}

function describeSku(sku: string): string {
  const size = /^[A-Z]+-[A-Z0-9]+-[a-z]+-(.+)$/.exec(sku)?.[1]
  return size === undefined ? sku : `size ${size}`
}

function euro(amount: number): string {
  return `€${amount.toFixed(2)}`
}

function list(items: readonly string[]): string {
  return items.length <= 1 ? (items[0] ?? '') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`
}
