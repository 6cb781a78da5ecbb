// The world outside: a shop that knows nothing of Holdfast. Each call leaves a line in its journal, so tests can count.
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Order {
  readonly id: string
  readonly item: string
  readonly price: number
  readonly status: string
}

const ORDERS: readonly Order[] = [
  { id: 'ORD-1', item: 'socks', price: 12, status: 'delivered on Monday' },
  { id: 'ORD-2', item: 'a coat', price: 240, status: 'delivered on Tuesday' },
]

export function findOrder(id: string): Order | undefined {
  return ORDERS.find((order) => order.id === id)
}

/** The same key opens the same return, however often it is asked: most payment and shop APIs take such a key. */
export async function openReturn(orderId: string, key: string): Promise<{ readonly label: string }> {
  const known = readJournal().find((line) => line.key === key)
  if (known) return { label: known.label }
  const label = `RET-${orderId}-${readJournal().length + 1}`
  appendFileSync(journal(), `${JSON.stringify({ key, label })}\n`)
  console.error(`shop: opened ${label}`)
  // The reply takes a while: long enough to be killed before it is recorded.
  await sleep(Number(process.env['SHOP_DELAY_MS'] ?? 50))
  return { label }
}

function readJournal(): readonly { readonly key: string; readonly label: string }[] {
  if (!existsSync(journal())) return []
  const lines = readFileSync(journal(), 'utf8').trim().split('\n')
  return lines.map((line) => JSON.parse(line) as { key: string; label: string })
}

function journal(): string {
  return process.env['SHOP_JOURNAL'] ?? 'shop.jsonl'
}
