/** The slice of a SQLite client that the shop uses. */
interface Database {
  exec(sql: string): void
  prepare(sql: string): {
    run(...values: (string | number | null)[]): unknown
    get(...values: (string | number | null)[]): unknown
    all(...values: (string | number | null)[]): unknown[]
  }
  close(): void
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

export interface Order {
  readonly id: string
  readonly customer: string
  readonly status: string
  readonly placed: string
  readonly carrier: string | null
  readonly tracking: string | null
  readonly expected: string | null
  readonly delivered: string | null
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

const SCHEMA = `
  CREATE TABLE products (sku TEXT PRIMARY KEY, name TEXT, kind TEXT, color TEXT, size TEXT, price REAL, stock INTEGER);
  CREATE TABLE orders (id TEXT PRIMARY KEY, customer TEXT, status TEXT, placed TEXT, carrier TEXT, tracking TEXT,
    expected TEXT, delivered TEXT);
  CREATE TABLE order_lines (order_id TEXT, sku TEXT, quantity INTEGER, price REAL);
  CREATE TABLE returns (id INTEGER PRIMARY KEY, request TEXT UNIQUE, order_id TEXT, sku TEXT, quantity INTEGER,
    amount REAL, reason TEXT, exchange_sku TEXT);
`

const MODELS: readonly [
  prefix: string,
  name: string,
  kind: string,
  price: number,
  colors: string[],
  sizes: string[],
][] = [
  ['BOOT-FJ', 'Fjellvind hiking boots', 'boots', 189, ['brown', 'black'], ['39', '40', '41', '42', '43']],
  ['BOOT-CT', 'City Trail ankle boots', 'boots', 139, ['black', 'tan'], ['38', '39', '40', '41']],
  ['RUN-AL', 'Alba running shoes', 'shoes', 119, ['blue', 'white'], ['38', '39', '40', '41', '42']],
  ['SAN-KY', 'Kyst sandals', 'shoes', 59, ['tan'], ['38', '39', '40', '41']],
  ['JKT-RG', 'Regn rain jacket', 'jacket', 129, ['yellow', 'navy'], ['S', 'M', 'L', 'XL']],
  ['JKT-DN', 'Dun winter jacket', 'jacket', 249, ['navy', 'red'], ['S', 'M', 'L']],
  ['SWT-UL', 'Ull wool sweater', 'sweater', 95, ['grey', 'green'], ['S', 'M', 'L']],
  ['SOCK-MR', 'Merino hiking socks', 'socks', 18, ['grey'], ['36-40', '41-45']],
  ['PACK-24', 'Dagstur backpack 24 l', 'backpack', 79, ['green', 'black'], ['one size']],
  ['BOTT-TH', 'Termo bottle 0.75 l', 'bottle', 29, ['steel', 'red'], ['one size']],
]

const OUT_OF_STOCK = ['BOOT-FJ-brown-42', 'JKT-RG-yellow-M', 'JKT-DN-red-S', 'RUN-AL-white-40']

const ORDERS: readonly [Omit<Order, 'lines'>, readonly [sku: string, quantity: number][]][] = [
  [
    {
      id: 'ORD-2024-8847',
      customer: 'maya@example.com',
      status: 'in transit',
      placed: '2024-11-18',
      carrier: 'PostNord',
      tracking: 'PN-4471-0093',
      expected: '2024-11-25',
      delivered: null,
    },
    [
      ['SWT-UL-green-M', 1],
      ['SOCK-MR-grey-36-40', 3],
    ],
  ],
  [
    {
      id: 'ORD-2024-8102',
      customer: 'maya@example.com',
      status: 'delivered',
      placed: '2024-11-04',
      carrier: 'DHL',
      tracking: 'DHL-88120',
      expected: null,
      delivered: '2024-11-08',
    },
    [
      ['BOOT-FJ-brown-41', 1],
      ['JKT-RG-navy-M', 1],
      ['BOTT-TH-steel-one size', 2],
    ],
  ],
  [
    {
      id: 'ORD-2024-7719',
      customer: 'maya@example.com',
      status: 'delivered',
      placed: '2024-10-11',
      carrier: 'DHL',
      tracking: 'DHL-80244',
      expected: null,
      delivered: '2024-10-15',
    },
    [['RUN-AL-blue-40', 1]],
  ],
  [
    {
      id: 'ORD-2024-8790',
      customer: 'jonas@example.com',
      status: 'packing',
      placed: '2024-11-17',
      carrier: null,
      tracking: null,
      expected: '2024-11-27',
      delivered: null,
    },
    [['JKT-DN-navy-L', 1]],
  ],
]

/** A shop in a SQLite file: orders, stock and returns. Opens the file, and fills it when it is new. */
export async function openShop(path: string): Promise<Shop> {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const engine = major > 22 || (major === 22 && minor >= 13) ? 'node:sqlite' : '@photostructure/sqlite'
  const { DatabaseSync } = (await import(engine)) as { DatabaseSync: new (path: string) => Database }
  const db = new DatabaseSync(path)
  const filled = db.prepare(`SELECT name FROM sqlite_master WHERE name = 'orders'`).get() !== undefined
  if (!filled) fill(db)
  return new Shop(db)
}

function fill(db: Database): void {
  db.exec(SCHEMA)
  const addProduct = db.prepare('INSERT INTO products VALUES (?, ?, ?, ?, ?, ?, ?)')
  for (const [prefix, name, kind, price, colors, sizes] of MODELS) {
    for (const color of colors) {
      for (const [i, size] of sizes.entries()) {
        const sku = `${prefix}-${color}-${size}`
        const stock = OUT_OF_STOCK.includes(sku) ? 0 : 2 + ((sku.length * 7 + i * 5) % 19)
        addProduct.run(sku, name, kind, color, size, price, stock)
      }
    }
  }
  const addOrder = db.prepare('INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?)')
  const addLine = db.prepare('INSERT INTO order_lines SELECT ?, sku, ?, price FROM products WHERE sku = ?')
  for (const [order, lines] of ORDERS) {
    const { id, customer, status, placed, carrier, tracking, expected, delivered } = order
    addOrder.run(id, customer, status, placed, carrier, tracking, expected, delivered)
    for (const [sku, quantity] of lines) addLine.run(id, quantity, sku)
  }
}

export class Shop {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  ordersOf(customer: string): readonly Order[] {
    const rows = this.#db.prepare('SELECT id FROM orders WHERE customer = ? ORDER BY placed DESC').all(customer)
    return (rows as { id: string }[]).flatMap(({ id }) => this.order(id) ?? [])
  }

  order(id: string): Order | undefined {
    const row = this.#db.prepare('SELECT * FROM orders WHERE id = ?').get(id) as Omit<Order, 'lines'> | undefined
    if (row === undefined) return undefined
    const lines = this.#db
      .prepare(
        `SELECT p.sku, p.name, p.size, p.color, l.quantity, l.price,
           COALESCE((SELECT SUM(quantity) FROM returns r WHERE r.order_id = l.order_id AND r.sku = l.sku), 0) AS returned
         FROM order_lines l JOIN products p ON p.sku = l.sku WHERE l.order_id = ?`,
      )
      .all(id) as unknown as OrderLine[]
    return { ...row, lines: lines.map((line) => ({ ...line })) }
  }

  search(words: readonly string[], size?: string): readonly Product[] {
    const wheres = words.map(() => `(name || ' ' || kind || ' ' || color) LIKE ?`)
    const sql = `SELECT sku, name, color, size, price, stock FROM products WHERE ${[...wheres, ...(size ? ['size = ?'] : [])].join(' AND ') || '1'} ORDER BY stock = 0, price LIMIT 8`
    const values = [...words.map((word) => `%${word}%`), ...(size ? [size] : [])]
    return (this.#db.prepare(sql).all(...values) as unknown as Product[]).map((row) => ({ ...row }))
  }

  /** Opens a return once for each request: asked again with the same request, it gives back the same return. */
  openReturn(
    request: string,
    entry: { orderId: string; sku: string; quantity: number; reason: string; exchangeFor?: string },
  ): { readonly rma: string; readonly amount: number } {
    const line = this.order(entry.orderId)?.lines.find(({ sku }) => sku === entry.sku)
    if (line === undefined) throw new Error(`Order ${entry.orderId} has no ${entry.sku}.`)
    const amount = line.price * entry.quantity
    const { orderId, sku, quantity, reason, exchangeFor = null } = entry
    this.#db.exec('BEGIN IMMEDIATE')
    try {
      const known = this.#db.prepare('SELECT id FROM returns WHERE request = ?').get(request)
      if (known === undefined) {
        if (line.returned + quantity > line.quantity) throw new Error(`${line.name} was already returned.`)
        this.#db
          .prepare(
            'INSERT INTO returns (request, order_id, sku, quantity, amount, reason, exchange_sku) VALUES (?, ?, ?, ?, ?, ?, ?)',
          )
          .run(request, orderId, sku, quantity, amount, reason, exchangeFor)
        if (exchangeFor !== null) this.#take(exchangeFor, quantity)
      }
      this.#db.exec('COMMIT')
    } catch (error) {
      this.#db.exec('ROLLBACK')
      throw error
    }
    const { id } = this.#db.prepare('SELECT id FROM returns WHERE request = ?').get(request) as { id: number }
    return { rma: `RMA-${String(10_400 + id)}`, amount }
  }

  returns(): readonly unknown[] {
    return this.#db.prepare('SELECT order_id, sku, quantity, amount, exchange_sku FROM returns ORDER BY id').all()
  }

  close(): void {
    this.#db.close()
  }

  #take(sku: string, quantity: number): void {
    const row = this.#db.prepare('SELECT stock FROM products WHERE sku = ?').get(sku) as { stock: number } | undefined
    if (row === undefined || row.stock < quantity) throw new Error(`${sku} is not in stock.`)
    this.#db.prepare('UPDATE products SET stock = stock - ? WHERE sku = ?').run(quantity, sku)
  }
}
