import { type Holdfast, type Message, openHoldfast, textOf } from '../index.js'
import type { Customer, CustomerTurn } from './shop/customers.js'
import { rollDice } from './dice.js'
import { openShop, type Shop } from './shop/shop.js'

/** What is found when the day is over, by someone who took no part in it. */
export interface Findings {
  readonly completed: number
  /** What is wrong, one line for each conversation that is. */
  readonly problems: readonly string[]
  readonly doubled: number
  readonly effects: number
  readonly turns: number
  readonly chainsVerified: number
  readonly chainsSampled: number
}

const AT_ONCE = 8
const CHAINS = 50

/**
 * Opens the store again and compares every conversation with what its customer said and with the shop's own database.
 */
export async function readBack(
  customers: readonly Customer[],
  where: { readonly store: string; readonly tenant: string; readonly shop: string; readonly seed: number },
  onStep: (done: number) => void = () => {},
): Promise<Findings> {
  const opened = await openHoldfast(where.store)
  const shop = await openShop(where.shop)
  try {
    const hf = opened.tenant(where.tenant)
    const problems: string[] = []
    let turns = 0
    let done = 0
    await eachOf(customers, async (customer) => {
      const { answered, problem } = await checkConversation(hf, customer, shop)
      turns += answered
      if (problem !== undefined) problems.push(`${customer.thread}: ${problem}`)
      onStep(++done)
    })
    const completed = customers.length - problems.length
    const sample = rollDice(where.seed, 'verify').shuffle(customers).slice(0, CHAINS)
    let chainsVerified = 0
    await eachOf(sample, async ({ thread }) => {
      const result = await hf.verify(thread)
      if (result?.ok) chainsVerified++
      else problems.push(`${thread}: its chain does not verify`)
    })
    // A conversation whose words are right and whose chain is not is not complete either.
    const broken = sample.length - chainsVerified
    const { doubled, effects } = { doubled: shop.countDoubles(), effects: shop.countReturns() }
    return {
      completed: completed - broken,
      problems,
      doubled,
      effects,
      turns,
      chainsVerified,
      chainsSampled: sample.length,
    }
  } finally {
    shop.close()
    await opened.close()
  }
}

async function eachOf<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  let next = 0
  const walk = async () => {
    for (let at = next++; at < items.length; at = next++) await work(items[at] as Item)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, walk))
}

async function checkConversation(
  hf: Holdfast,
  { thread, turns }: Customer,
  shop: Shop,
): Promise<{ readonly answered: number; readonly problem?: string }> {
  const log = await hf.log(thread)
  if (!log.exists) return { answered: 0, problem: 'is not in the store' }
  const { run, state } = log.fold.state as unknown as {
    readonly run?: { readonly status: string }
    readonly state?: { readonly messages?: readonly Message[] }
  }
  const segments = splitTurns(state?.messages ?? [])
  let answered = 0
  for (const [i, turn] of turns.entries()) {
    const problem = checkTurn(segments[i], turn, shop)
    if (problem !== undefined) return { answered, problem: `turn ${i + 1} of ${turns.length} ${problem}` }
    answered++
  }
  if (segments.length > turns.length)
    return { answered, problem: `has ${segments.length - turns.length} turns too many` }
  if (run?.status !== 'completed') return { answered, problem: `its last run is ${run?.status}` }
  return { answered }
}

/** The messages of each turn: what the customer said, and everything until they speak again. */
function splitTurns(messages: readonly Message[]): readonly (readonly Message[])[] {
  const segments: Message[][] = []
  for (const message of messages) {
    if (message.role === 'user') segments.push([message])
    else segments.at(-1)?.push(message)
  }
  return segments
}

function checkTurn(segment: readonly Message[] | undefined, turn: CustomerTurn, shop: Shop): string | undefined {
  const [said, ...rest] = segment ?? []
  if (said === undefined) return 'is missing'
  if (textOf(said) !== turn.text) return 'is not what the customer said'
  const parts = rest.flatMap((message) => message.parts)
  const calls = parts.flatMap((part) => (part.type === 'tool-call' ? [part.name] : []))
  if (calls.join() !== turn.tools.join()) return `called ${calls.join(', ') || 'no tool'}`
  const results = parts.flatMap((part) => (part.type === 'tool-result' ? [part.output.type] : []))
  if (results.length !== calls.length) return `has ${results.length} results of ${calls.length} calls`
  if (results.some((type) => type !== 'json')) return 'has a result that is an error'
  const last = rest.at(-1)
  const reply = last?.role === 'assistant' ? textOf(last) : ''
  if (reply === '') return 'has no reply'
  if (turn.returns === undefined) return undefined
  const opened = shop.findReturn(turn.returns.orderId, turn.returns.sku)
  if (opened === undefined) return 'was promised a return that the shop does not know'
  return reply.includes(opened.rma) ? undefined : `was told another return than ${opened.rma}`
}
