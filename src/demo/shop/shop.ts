import type { Article } from './catalogue.js'

type SqlValue = string | number | null

/** The part of a SQLite client that the shop uses. */
interface Database {
  exec(sql: string): void
  prepare(sql: string): Statement
  close(): void
}

interface Statement {
  run(...values: SqlValue[]): unknown
  get(...values: SqlValue[]): unknown
  all(...values: SqlValue[]): unknown[]
}

interface OrderHead {
  readonly id: string
  readonly customer: string
  readonly status: string
  readonly placed: string
  readonly carrier: string | null
  readonly tracking: string | null
  readonly expected: string | null
  readonly delivered: string | null
}

export interface OrderLine {
  readonly sku: string
  readonly name: string
  readonly size: string
  readonly color: string
  readonly quantity: number
  readonly price: number
  readonly returned: number
}

export interface Order extends OrderHead {
  readonly lines: readonly OrderLine[]
}

export interface Product {
  readonly sku: string
  readonly name: string
  readonly color: string
  readonly size: string
  readonly price: number
  readonly stock: number
}

/** What an order is made of; names and prices come from the shelves. */
export interface NewOrder extends OrderHead {
  readonly lines: readonly { readonly sku: string; readonly quantity: number }[]
}

/** What a new shop begins with. */
export interface ShopStock {
  readonly articles: readonly (Article & { readonly stock: number })[]
  readonly orders: readonly NewOrder[]
}

export interface ReturnRequest {
  readonly orderId: string
  readonly sku: string
  readonly quantity: number
  readonly reason: string
  /** Sent in exchange, at once. */
  readonly exchangeFor?: string
  /** A reference of the caller's own, by which the return can be found again. */
  readonly reference?: string
}

export interface OpenedReturn {
  readonly rma: string
  readonly amount: number
  /** The article that was sent in exchange. */
  readonly sent?: string
}

// Nothing here is unique but ids: a return that is asked for twice is opened twice, as in many a shop.
const SCHEMA = `
  CREATE TABLE products (sku TEXT PRIMARY KEY, name TEXT, kind TEXT, color TEXT, size TEXT, price REAL, stock INTEGER);
  CREATE TABLE orders (id TEXT PRIMARY KEY, customer TEXT, status TEXT, placed TEXT, carrier TEXT, tracking TEXT,
    expected TEXT, delivered TEXT);
  CREATE TABLE order_lines (order_id TEXT, sku TEXT, quantity INTEGER, price REAL);
  CREATE TABLE returns (id INTEGER PRIMARY KEY, order_id TEXT, sku TEXT, quantity INTEGER, amount REAL, reason TEXT,
    exchange_sku TEXT, reference TEXT);
  CREATE INDEX orders_of ON orders (customer);
  CREATE INDEX lines_of ON order_lines (order_id);
  CREATE INDEX returns_of ON returns (order_id, sku);
  CREATE INDEX returns_by ON returns (reference);
`
// Several processes use the file; what one has committed survives its death.
const SETTINGS = 'PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL'
const FIRST_RMA = 10_400

/** A shop in a SQLite file: orders, stock and returns. It has never heard of Holdfast. A new one is given its stock. */
export async function openShop(path: string, stock?: ShopStock): Promise<Shop> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const engine = major > 22 || (major === 22 && minor >= 13) ? 'node:sqlite' : '@photostructure/sqlite'
  const { DatabaseSync } = (await import(engine)) as { DatabaseSync: new (path: string) => Database }
  const db = new DatabaseSync(path)
  db.exec(SETTINGS)
  if (stock !== undefined) fill(db, stock)
  return new Shop(db)
}

function fill(db: Database, { articles, orders }: ShopStock): void {
  db.exec(`BEGIN IMMEDIATE; ${SCHEMA}`)
  const addProduct = db.prepare('INSERT INTO products VALUES (?, ?, ?, ?, ?, ?, ?)')
  for (const { sku, name, kind, color, size, price, stock } of articles) {
    addProduct.run(sku, name, kind, color, size, price, stock)
  }
  const addOrder = db.prepare('INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  const addLine = db.prepare('INSERT INTO order_lines SELECT ?, sku, ?, price FROM products WHERE sku = ?')
  for (const { id, customer, status, placed, carrier, tracking, expected, delivered, lines } of orders) {
    addOrder.run(id, customer, status, placed, carrier, tracking, expected, delivered)
    for (const { sku, quantity } of lines) addLine.run(id, quantity, sku)
  }
  db.exec('COMMIT')
}

export class Shop {
  readonly #db: Database
  /** Each is parsed once: that takes longer than to run it. */
  readonly #statements = new Map<string, Statement>()

  constructor(db: Database) {
    this.#db = db
  }

  ordersOf(customer: string): readonly Order[] {
    const rows = this.#prepare('SELECT id FROM orders WHERE customer = ? ORDER BY placed DESC').all(customer)
    return (rows as { id: string }[]).flatMap(({ id }) => this.order(id) ?? [])
  }

  order(id: string): Order | undefined {
    const row = this.#prepare('SELECT * FROM orders WHERE id = ?').get(id) as OrderHead | undefined
    if (row === undefined) return undefined
    const lines = this.#prepare(
      `SELECT p.sku, p.name, p.size, p.color, l.quantity, l.price,
           COALESCE((SELECT SUM(quantity) FROM returns r WHERE r.order_id = l.order_id AND r.sku = l.sku), 0) AS returned
         FROM order_lines l JOIN products p ON p.sku = l.sku WHERE l.order_id = ?`,
    ).all(id) as unknown as OrderLine[]
    return { ...row, lines: lines.map((line) => ({ ...line })) }
  }

  search(words: readonly string[], size?: string): readonly Product[] {
    const wheres = words.map(() => `(name || ' ' || kind || ' ' || color) LIKE ?`)
    const sql = `SELECT sku, name, color, size, price, stock FROM products WHERE ${[...wheres, ...(size ? ['size = ?'] : [])].join(' AND ') || '1'} ORDER BY stock = 0, price LIMIT 8`
    const values = [...words.map((word) => `%${word}%`), ...(size ? [size] : [])]
    return (this.#prepare(sql).all(...values) as unknown as Product[]).map((row) => ({ ...row }))
  }

  /** Opens a return, each time it is asked. Throws before anything happens when it can't. */
  openReturn(request: ReturnRequest): OpenedReturn {
    const { orderId, sku, quantity, reason, exchangeFor = null, reference = null } = request
    const line = this.order(orderId)?.lines.find((one) => one.sku === sku)
    if (line === undefined) throw new Error(`Order ${orderId} has no ${sku}.`)
    const amount = line.price * quantity
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      this.#prepare(
        `INSERT INTO returns (order_id, sku, quantity, amount, reason, exchange_sku, reference)
           VALUES (?, ?, ?, ?, ?, ?, ?)`,
      ).run(orderId, sku, quantity, amount, reason, exchangeFor, reference)
      const { id } = this.#prepare('SELECT last_insert_rowid() AS id').get() as { id: number }
      if (exchangeFor !== null) this.#take(exchangeFor, quantity)
      this.#db.exec('COMMIT')
      return describeReturn(id, amount, exchangeFor)
    } catch (error) {
      this.#db.exec('ROLLBACK')
      throw error
    }
  }

  /** The first return of an article, if there is one. */
  findReturn(orderId: string, sku: string): OpenedReturn | undefined {
    return this.#find('order_id = ? AND sku = ?', orderId, sku)
  }

  /** The return with this reference, if there is one: how its caller finds out the outcome of a request. */
  findReference(reference: string): OpenedReturn | undefined {
    return this.#find('reference = ?', reference)
  }

  /** How many returns were opened for articles that had already been returned: what a customer would call a double. */
  countDoubles(): number {
    const sql = `SELECT COALESCE(SUM(extra), 0) AS doubles FROM (
      SELECT MAX(0, SUM(r.quantity) - (SELECT SUM(l.quantity) FROM order_lines l
        WHERE l.order_id = r.order_id AND l.sku = r.sku)) AS extra FROM returns r GROUP BY r.order_id, r.sku)`
    return (this.#prepare(sql).get() as { doubles: number }).doubles
  }

  countReturns(): number {
    return (this.#prepare('SELECT COUNT(*) AS count FROM returns').get() as { count: number }).count
  }

  close(): void {
    this.#db.close()
  }

  #prepare(sql: string): Statement {
    const known = this.#statements.get(sql)
    if (known !== undefined) return known
    const statement = this.#db.prepare(sql)
    this.#statements.set(sql, statement)
    return statement
  }

  #find(where: string, ...values: string[]): OpenedReturn | undefined {
    const sql = `SELECT id, amount, exchange_sku FROM returns WHERE ${where} ORDER BY id LIMIT 1`
    const row = this.#prepare(sql).get(...values) as
      | { id: number; amount: number; exchange_sku: string | null }
      | undefined
    return row && describeReturn(row.id, row.amount, row.exchange_sku)
  }

  #take(sku: string, quantity: number): void {
    const row = this.#prepare('SELECT stock FROM products WHERE sku = ?').get(sku) as { stock: number } | undefined
    if (row === undefined || row.stock < quantity) throw new Error(`${sku} is not in stock.`)
    this.#prepare('UPDATE products SET stock = stock - ? WHERE sku = ?').run(quantity, sku)
  }
}

function describeReturn(id: number, amount: number, exchangeFor: string | null): OpenedReturn {
  return { rma: `RMA-${FIRST_RMA + id}`, amount, ...(exchangeFor === null ? {} : { sent: exchangeFor }) }
}
