import type { IndexConfig } from '@langchain/langgraph-checkpoint'
import { InvalidOptionError, InvalidValueError } from '../../../errors.js'
import { textsAt } from './store-text.js'

/** A value to be found by meaning, and by which of its fields; `false`: by none. */
export interface Indexed {
  readonly value: Record<string, unknown>
  readonly index: false | readonly string[] | undefined
}

/** Makes the vectors of values by LangGraph's index configuration. */
export class SemanticIndex {
  readonly #config: IndexConfig

  constructor(config: IndexConfig) {
    if (!Number.isSafeInteger(config.dims) || config.dims < 1) {
      throw new InvalidOptionError(
        'index.dims',
        'must be a whole number, 1 or more',
        'Pass the number of dimensions of a vector.',
      )
    }
    if (typeof config.embeddings?.embedDocuments !== 'function') {
      throw new InvalidOptionError('index.embeddings', 'makes no vectors', 'Pass a LangChain Embeddings object.')
    }
    this.#config = config
  }

  /** The vectors of each value, one for each of its texts, all made in one call. */
  async vectors(values: readonly Indexed[]): Promise<Float32Array[][]> {
    const texts = values.map((one) => this.#texts(one))
    const distinct = [...new Set(texts.flat())]
    if (distinct.length === 0) return texts.map(() => [])
    const made = await this.#config.embeddings.embedDocuments(distinct)
    const byText = new Map(distinct.map((text, i) => [text, this.#check(made[i])]))
    return texts.map((own) => own.map((text) => byText.get(text) as Float32Array))
  }

  async queryVector(query: string): Promise<Float32Array> {
    return this.#check(await this.#config.embeddings.embedQuery(query))
  }

  #texts({ value, index }: Indexed): string[] {
    if (index === false) return []
    return (index ?? this.#config.fields ?? ['$']).flatMap((path) => textsAt(value, path))
  }

  #check(vector: readonly number[] | undefined): Float32Array {
    if (Array.isArray(vector) && vector.length === this.#config.dims && vector.every(Number.isFinite)) {
      return Float32Array.from(vector)
    }
    throw new InvalidValueError(
      'index.embeddings',
      `made something that is not a vector of ${this.#config.dims} finite numbers`,
      'Set index.dims to what your model returns.',
    )
  }
}

/** The highest cosine between a vector and any of several; undefined if there are none. */
export function bestScore(query: Float32Array, vectors: readonly Float32Array[]): number | undefined {
  if (vectors.length === 0) return undefined
  return Math.max(...vectors.map((vector) => cosine(query, vector)))
}

function cosine(a: Float32Array, b: Float32Array): number {
  let [product, left, right] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] ?? 0, b[i] ?? 0]
    product += x * y
    left += x * x
    right += y * y
  }
  return left === 0 || right === 0 ? 0 : product / Math.sqrt(left * right)
}
