import { type FieldPath, fieldAt } from '../../codec/item-field.js'
import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { encodeValue, type Value } from '../../codec/value.js'
import { checkWhole } from '../../core/wording/choices.js'
import { InvalidOptionError, InvalidValueError } from '../../core/errors.js'
import { checkOptionNames } from '../../core/wording/option-names.js'
import { type FieldInput, parseField } from './field.js'

/** How vectors are computed, for searches by meaning. */
export interface EmbedOptions {
  /** How many numbers a vector has. */
  readonly dims: number
  /** The fields whose text represents an item. Default: the whole value. */
  readonly fields?: readonly FieldInput[]
  /** One vector per text, in the same order. */
  embed(texts: readonly string[]): Promise<readonly (readonly number[] | Float32Array)[]>
}

export interface ParsedEmbed {
  readonly dims: number
  readonly fields: readonly FieldPath[] | undefined
  embed(texts: readonly string[]): Promise<readonly Float32Array[]>
}

const MAX_DIMS = 16_384

export function parseEmbed(options: EmbedOptions): ParsedEmbed {
  // The instance of a class may have fields of its own.
  if (Object.getPrototypeOf(options ?? null) === Object.prototype)
    checkOptionNames('the option embed', options, { dims: true, fields: true, embed: true })
  const { dims, fields } = options
  checkWhole('embed.dims', dims, MAX_DIMS, 'Pass how many numbers a vector of your model has.')
  if (typeof options.embed !== 'function') {
    throw new InvalidOptionError('embed.embed', 'must be a function', 'Pass a function that turns texts into vectors.')
  }
  if (fields !== undefined && (!Array.isArray(fields) || fields.length === 0)) {
    throw new InvalidOptionError(
      'embed.fields',
      'must be a list of fields',
      'Name fields, or leave it out for the whole value.',
    )
  }
  return {
    dims,
    fields: fields?.map((field) => parseField('embed.fields', field)),
    embed: async (texts) => (texts.length === 0 ? [] : checkVectors(await options.embed(texts), texts.length, dims)),
  }
}

/** Vectors for values, all in one call; undefined for a value without any text. */
export async function embedValues(
  { fields, embed }: ParsedEmbed,
  values: readonly Value[],
): Promise<readonly (Float32Array | undefined)[]> {
  const texts = values.map((value) => textOf(value, fields))
  const vectors = await embed(texts.filter((text) => text !== ''))
  let next = 0
  return texts.map((text) => (text === '' ? undefined : vectors[next++]))
}

/** Cosine of the angle between two vectors, -1 to 1; 0 if one of them has no length. */
export function similarity(a: Float32Array, b: Float32Array): number {
  let [product, left, right] = [0, 0, 0]
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] as number, b[i] as number]
    product += x * y
    left += x * x
    right += y * y
  }
  return left === 0 || right === 0 ? 0 : product / Math.sqrt(left * right)
}

function textOf(value: Value, fields: readonly FieldPath[] | undefined): string {
  if (fields === undefined) return render(value)
  return fields
    .map((path) => fieldAt(value, path))
    .filter((part) => part !== undefined)
    .map(render)
    .join('\n')
}

// `[value]` or `[value,types]`: readable enough for a model, and defined for every value.
function render(value: Value): string {
  return typeof value === 'string' ? value : encodeValue(value, DEFAULT_LIMITS).json
}

function checkVectors(vectors: unknown, count: number, dims: number): readonly Float32Array[] {
  if (!Array.isArray(vectors) || vectors.length !== count) {
    throw new InvalidValueError(
      'embed',
      `did not return one vector for each of ${count} texts`,
      'Return them in the order of the texts.',
    )
  }
  return vectors.map((vector: readonly number[] | Float32Array) => {
    const floats = vector !== null && typeof vector === 'object' ? Float32Array.from(vector) : new Float32Array(0)
    if (floats.length === dims && floats.every((number) => Number.isFinite(number))) return floats
    throw new InvalidValueError(
      'embed',
      `returned a vector that is not ${dims} finite numbers`,
      'Set embed.dims to what your model returns.',
    )
  })
}
