import { listArticles } from './catalog.js'
import type { ShopStock } from './shop.js'

const OUT_OF_STOCK = ['BOOT-FJ-brown-42', 'JKT-RG-yellow-M', 'JKT-DN-red-S', 'RUN-AL-white-40']

/** What Maya and Jonas have ordered, and what the shelves hold on that day. */
export const STOCK: ShopStock = {
  articles: listArticles().map((article, i) => ({
    ...article,
    stock: OUT_OF_STOCK.includes(article.sku) ? 0 : 2 + ((article.sku.length * 7 + i * 5) % 19),
  })),
  orders: [
    {
      id: 'ORD-2024-8847',
      customer: 'maya@example.com',
      status: 'in transit',
      placed: '2024-11-18',
      carrier: 'PostNord',
      tracking: 'PN-4471-0093',
      expected: '2024-11-25',
      delivered: null,
      lines: [
        { sku: 'SWT-UL-green-M', quantity: 1 },
        { sku: 'SOCK-MR-grey-36-40', quantity: 3 },
      ],
    },
    {
      id: 'ORD-2024-8102',
      customer: 'maya@example.com',
      status: 'delivered',
      placed: '2024-11-04',
      carrier: 'DHL',
      tracking: 'DHL-88120',
      expected: null,
      delivered: '2024-11-08',
      lines: [
        { sku: 'BOOT-FJ-brown-41', quantity: 1 },
        { sku: 'JKT-RG-navy-M', quantity: 1 },
        { sku: 'BOTT-TH-steel-one size', quantity: 2 },
      ],
    },
    {
      id: 'ORD-2024-7719',
      customer: 'maya@example.com',
      status: 'delivered',
      placed: '2024-10-11',
      carrier: 'DHL',
      tracking: 'DHL-80244',
      expected: null,
      delivered: '2024-10-15',
      lines: [{ sku: 'RUN-AL-blue-40', quantity: 1 }],
    },
    {
      id: 'ORD-2024-8790',
      customer: 'jonas@example.com',
      status: 'packing',
      placed: '2024-11-17',
      carrier: null,
      tracking: null,
      expected: '2024-11-27',
      delivered: null,
      lines: [{ sku: 'JKT-DN-navy-L', quantity: 1 }],
    },
  ],
}
