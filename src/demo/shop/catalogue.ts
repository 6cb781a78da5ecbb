/** One article of the shop in one color and size. */
export interface Article {
  readonly sku: string
  readonly name: string
  readonly kind: string
  readonly color: string
  readonly size: string
  readonly price: number
}

/** A line of articles: what differs between its articles is color and size. */
interface Model {
  readonly prefix: string
  readonly name: string
  readonly kind: string
  readonly price: number
  readonly colors: readonly string[]
  readonly sizes: readonly string[]
}

const model = (
  prefix: string,
  name: string,
  kind: string,
  price: number,
  colors: readonly string[],
  sizes: readonly string[],
): Model => ({ prefix, name, kind, price, colors, sizes })

const MODELS: readonly Model[] = [
  model('BOOT-FJ', 'Fjellvind hiking boots', 'boots', 189, ['brown', 'black'], ['39', '40', '41', '42', '43']),
  model('BOOT-CT', 'City Trail ankle boots', 'boots', 139, ['black', 'tan'], ['38', '39', '40', '41']),
  model('RUN-AL', 'Alba running shoes', 'shoes', 119, ['blue', 'white'], ['38', '39', '40', '41', '42']),
  model('SAN-KY', 'Kyst sandals', 'shoes', 59, ['tan'], ['38', '39', '40', '41']),
  model('JKT-RG', 'Regn rain jacket', 'jacket', 129, ['yellow', 'navy'], ['S', 'M', 'L', 'XL']),
  model('JKT-DN', 'Dun winter jacket', 'jacket', 249, ['navy', 'red'], ['S', 'M', 'L']),
  model('SWT-UL', 'Ull wool sweater', 'sweater', 95, ['grey', 'green'], ['S', 'M', 'L']),
  model('SOCK-MR', 'Merino hiking socks', 'socks', 18, ['grey'], ['36-40', '41-45']),
  model('PACK-24', 'Dagstur backpack 24 l', 'backpack', 79, ['green', 'black'], ['one size']),
  model('BOTT-TH', 'Termo bottle 0.75 l', 'bottle', 29, ['steel', 'red'], ['one size']),
]

/** Everything that the shop sells. */
export function listArticles(): readonly Article[] {
  return MODELS.flatMap(({ prefix, name, kind, price, colors, sizes }) =>
    colors.flatMap((color) =>
      sizes.map((size) => ({ sku: `${prefix}-${color}-${size}`, name, kind, color, size, price })),
    ),
  )
}
