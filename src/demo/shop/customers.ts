import { type Article, listArticles } from './catalogue.js'
import { type Dice, rollDice } from '../dice.js'
import type { NewOrder, ShopStock } from './shop.js'

/** One thing that a customer says, and what a right answer to it takes. */
export interface CustomerTurn {
  readonly text: string
  /** The tools that have to be called for it, in this order. */
  readonly tools: readonly string[]
  /** The article that is sent back by it. */
  readonly returns?: { readonly orderId: string; readonly sku: string }
}

/** A customer with their orders, and everything they will say. */
export interface Customer {
  readonly thread: string
  readonly email: string
  readonly orders: readonly NewOrder[]
  readonly turns: readonly CustomerTurn[]
}

const LEAST_TURNS = 15
const MOST_TURNS = 30
/** Nobody hears "sold out" on this day: what a customer gets must not depend on who came first. */
const PLENTY = 1_000_000

const NAMES = ['Maya', 'Jonas', 'Linnea', 'Omar', 'Ingrid', 'Tomas', 'Aisha', 'Erik', 'Sofia', 'Noah', 'Freja', 'Luca']
const TALK = [
  'How long does a refund take once you have the parcel?',
  'What does shipping cost for a small order?',
  'Until when can I send something back if I change my mind?',
  'Great, thank you, that helps a lot.',
]

/** The customers of the day. The same seed gives the same ones. */
export function makeCustomers(sessions: number, seed: number): readonly Customer[] {
  const articles = listArticles()
  return Array.from({ length: sessions }, (_, i) => makeCustomer(i + 1, articles, rollDice(seed, 'customer', i + 1)))
}

/** What the shop holds before the day begins. */
export function stockFor(customers: readonly Customer[]): ShopStock {
  return {
    articles: listArticles().map((article) => ({ ...article, stock: PLENTY })),
    orders: customers.flatMap(({ orders }) => orders),
  }
}

/** The address under which the shop knows the customer of a conversation. */
export function emailOf(thread: string): string {
  return `${thread}@example.com`
}

function makeCustomer(number: number, articles: readonly Article[], dice: Dice): Customer {
  const thread = `bf-${number}`
  const email = emailOf(thread)
  const picked = differentKinds(articles, dice)
  const order = (at: number, fields: Partial<NewOrder>, chosen: readonly Article[]): NewOrder => ({
    id: `ORD-2024-${number * 10 + 10_000 + at}`,
    customer: email,
    status: 'delivered',
    placed: `2024-11-0${dice.between(1, 9)}`,
    carrier: dice.pick(['DHL', 'PostNord', 'Bring']),
    tracking: `TR-${dice.between(100_000, 999_999)}`,
    expected: null,
    delivered: `2024-11-${dice.between(10, 19)}`,
    ...fields,
    lines: chosen.map(({ sku }) => ({ sku, quantity: 1 })),
  })
  const delivered = order(1, {}, picked.slice(0, 3))
  const coming = order(2, { status: 'in transit', delivered: null, expected: '2024-12-02' }, picked.slice(3, 5))
  const count = dice.between(LEAST_TURNS, MOST_TURNS)
  const wishes = sendBack(delivered, picked.slice(0, 3), articles, dice)
  const talk = Array.from({ length: count - 2 - wishes.length }, () => askSomething(dice, delivered, coming, articles))
  const hello = { text: `Hi, ${dice.pick(NAMES)} here. I have a few questions about what I ordered.`, tools: [] }
  const bye = { text: 'Perfect, that is all for today. Thank you and goodbye!', tools: [] }
  return { thread, email, orders: [delivered, coming], turns: [hello, ...dice.shuffle([...wishes, ...talk]), bye] }
}

/** Articles of which no two could be meant by the same word. */
function differentKinds(articles: readonly Article[], dice: Dice): readonly Article[] {
  const seen = new Set<string>()
  return dice.shuffle(articles).filter(({ name }) => {
    const word = wordFor(name)
    if (seen.has(word)) return false
    seen.add(word)
    return true
  })
}

/** Two articles go back for good, or one of them in exchange for another size; each of them once. */
function sendBack(
  order: NewOrder,
  lines: readonly Article[],
  articles: readonly Article[],
  dice: Dice,
): readonly CustomerTurn[] {
  let exchanged = false
  return dice.shuffle(lines).flatMap((line, i): CustomerTurn[] => {
    if (i === 2) return []
    const what = wordFor(line.name)
    const returns = { orderId: order.id, sku: line.sku }
    const other = exchanged ? undefined : dice.pick(otherSizes(line, articles))
    if (other === undefined) {
      const why = dice.pick(['it is damaged', 'I changed my mind', 'it does not look as I thought'])
      const text = `I would like to return the ${what} from ${order.id}, because ${why}.`
      return [{ text, tools: ['getOrderStatus', 'initiateReturn'], returns }]
    }
    exchanged = true
    const text = `Could you swap the ${what} from ${order.id} for size ${other.size}, please?`
    return [{ text, tools: ['getOrderStatus', 'searchInventory', 'exchangeItem'], returns }]
  })
}

function otherSizes(line: Article, articles: readonly Article[]): readonly Article[] {
  const { name, color, size } = line
  return articles.filter(
    (one) => one.name === name && one.color === color && one.size !== size && /^(\d+|[SMLX]+)$/.test(one.size),
  )
}

function askSomething(dice: Dice, delivered: NewOrder, coming: NewOrder, articles: readonly Article[]): CustomerTurn {
  switch (dice.between(0, 9)) {
    case 0:
      return { text: `Where is ${coming.id}? I hoped to have it by the weekend.`, tools: ['getOrderStatus'] }
    case 1:
      return { text: `Can you check ${delivered.id} for me, too?`, tools: ['getOrderStatus'] }
    case 2:
      return { text: 'What have I ordered from you so far? I lost track of my orders.', tools: ['listOrders'] }
    case 3:
    case 4: {
      const { name, color } = dice.pick(articles)
      return { text: `Do you have ${wordFor(name)} in ${color} for next spring?`, tools: ['searchInventory'] }
    }
    default:
      return { text: dice.pick(TALK), tools: [] }
  }
}

/** What a customer calls an article. */
function wordFor(name: string): string {
  const word = /boots|shoes|sandals|jacket|sweater|socks|backpack|bottle/.exec(name)?.[0]
  return word ?? name
}
