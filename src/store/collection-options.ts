import type { FieldPath } from '../codec/item-field.js'
import { checkWhole, describeGiven } from '../core/wording/choices.js'
import { InvalidOptionError } from '../core/errors.js'
import { checkOptionNames, type OptionNames } from '../core/wording/option-names.js'
import { MAX_INDEXED_FIELDS } from '../log/items/store-write.js'
import { type EmbedOptions, parseEmbed, type ParsedEmbed } from './search/embedding.js'
import { type FieldInput, parseField } from './search/field.js'
import { checkSchema, type StandardSchema } from './standard-schema.js'

/** How the items of a collection are validated, kept and found. */
export interface CollectionOptions {
  /** Any Standard Schema. Values are checked when written, and types are inferred from it. */
  readonly schema?: StandardSchema
  /** How long an item lives that is put without its own `ttlMs`. Default: forever. */
  readonly ttlMs?: number
  /** Each `get` extends the life of an expiring item by another `ttlMs` from then on. */
  readonly refreshOnRead?: boolean
  /** Fields, at most 16, whose exact values a backend may use to narrow a search. Never changes what is found. */
  readonly index?: readonly FieldInput[]
  /** Finds items by meaning, with vectors that this function computes. */
  readonly embed?: EmbedOptions
  /** The most bytes of JSON in one value. Default 1 MiB. */
  readonly maxBytes?: number
}

const OPTIONS: OptionNames<CollectionOptions> = {
  schema: true,
  ttlMs: true,
  refreshOnRead: true,
  index: true,
  embed: true,
  maxBytes: true,
}

export interface ParsedOptions {
  readonly schema: StandardSchema | undefined
  readonly ttlMs: number | null
  readonly refreshOnRead: boolean
  readonly index: readonly FieldPath[]
  readonly embed: ParsedEmbed | undefined
  readonly maxBytes: number
}

const DEFAULT_MAX_BYTES = 1024 * 1024
/** A thousand years: anything longer means forever. */
const MAX_TTL_MS = 1000 * 366 * 24 * 60 * 60 * 1000

export function parseOptions(options: CollectionOptions, storeMaxBytes: number): ParsedOptions {
  checkOptionNames('a collection', options, OPTIONS)
  const {
    schema,
    ttlMs,
    refreshOnRead = false,
    index = [],
    embed,
    maxBytes = Math.min(DEFAULT_MAX_BYTES, storeMaxBytes),
  } = options
  if (schema !== undefined) checkSchema(schema)
  const ttl = ttlMs === undefined ? null : checkTtl(ttlMs)
  if (refreshOnRead && ttl === null) {
    throw new InvalidOptionError(
      'refreshOnRead',
      'needs ttlMs',
      'Say with ttlMs how long items live after they were read.',
    )
  }
  if (!Array.isArray(index) || index.length > MAX_INDEXED_FIELDS) {
    throw new InvalidOptionError(
      'index',
      `must be a list of at most ${MAX_INDEXED_FIELDS} fields`,
      'Index what you search by.',
    )
  }
  checkWhole('maxBytes', maxBytes, storeMaxBytes, 'Pass a number of bytes within the limits of the store.')
  const paths = new Map(index.map((field) => parseField('index', field)).map((path) => [JSON.stringify(path), path]))
  return {
    schema,
    ttlMs: ttl,
    refreshOnRead,
    index: [...paths.values()],
    embed: embed === undefined ? undefined : parseEmbed(embed),
    maxBytes,
  }
}

export function checkTtl(ttlMs: unknown): number {
  if (typeof ttlMs === 'number' && Number.isSafeInteger(ttlMs) && ttlMs >= 1 && ttlMs <= MAX_TTL_MS) return ttlMs
  throw new InvalidOptionError(
    'ttlMs',
    `must be a whole number of milliseconds, 1 or more, not ${describeGiven(ttlMs)}`,
    'Leave it out for an item that stays.',
  )
}

/** The version that must be current: null for no item, undefined for anything. */
export function checkExpect(expect: unknown): string | null | undefined {
  if (expect === undefined || expect === null || typeof expect === 'string') return expect
  throw new InvalidOptionError(
    'expect',
    `is not a version: ${describeGiven(expect)}`,
    'Pass the version that was read, or null if there must be no item.',
  )
}
