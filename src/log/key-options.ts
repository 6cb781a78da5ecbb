import { SECRET_BYTES } from '../codec/data-key.js'
import { deriveMasterKey, type MasterKey } from '../codec/master-key.js'
import { InvalidOptionError } from '../core/errors.js'

/** Turns on authentication and encryption of all that is stored. */
export interface KeyOptions {
  /** The id of the master key that wraps new data keys. */
  readonly current: string
  /** Master keys by their ids: 32 random bytes each, or the same in base64. Keep old ones until `rewrap` is done. */
  readonly masters: Readonly<Record<string, Uint8Array | string>>
  /** Default true: AES-256-GCM. False: HMAC-SHA-256 only, so that what is stored is protected but can be read. */
  readonly encrypt?: boolean
  /**
   * Default true: what a tenant wrote before it had keys stays readable. False refuses every entry without a key,
   * whatever the store says of the past.
   */
  readonly acceptPlain?: boolean
}

/** The options, checked and made into keys. */
export interface Masters {
  readonly current: MasterKey
  readonly all: ReadonlyMap<string, MasterKey>
  readonly encrypt: boolean
  readonly acceptPlain: boolean
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const FIELDS: ReadonlySet<string> = new Set(['current', 'masters', 'encrypt', 'acceptPlain'])

/** Refuses keys that would fail later, before anything is opened. No message ever holds a part of a secret. */
export function parseKeyOptions(input: unknown): Masters {
  const options = record('keys', input, "Pass { current: 'k1', masters: { k1: <32 bytes> } }.")
  for (const field of Object.keys(options)) {
    if (!FIELDS.has(field)) throw invalid(`keys.${show(field)}`, 'is unknown', `Use ${[...FIELDS].join(', ')}.`)
  }
  const masters = record('keys.masters', options.masters, 'Pass master keys by their ids, such as { k1: <32 bytes> }.')
  const ids = Object.keys(masters)
  if (ids.length === 0) throw invalid('keys.masters', 'is empty', 'Give at least one master key.')
  const all = new Map(ids.map((id) => [id, readMaster(id, masters[id])]))
  const current = typeof options.current === 'string' ? all.get(options.current) : undefined
  if (current === undefined) {
    throw invalid('keys.current', 'names no key of keys.masters', `Pass one of: ${ids.join(', ')}.`)
  }
  return {
    current,
    all,
    encrypt: readSwitch('keys.encrypt', options.encrypt),
    acceptPlain: readSwitch('keys.acceptPlain', options.acceptPlain),
  }
}

function readMaster(id: string, secret: unknown): MasterKey {
  if (!ID.test(id)) {
    const remedy = 'Use 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit.'
    throw invalid(`keys.masters.${show(id)}`, 'has an id with other characters than allowed', remedy)
  }
  const field = `keys.masters.${id}`
  const bytes = typeof secret === 'string' ? readBase64(field, secret) : secret
  if (!(bytes instanceof Uint8Array)) throw invalid(field, 'is neither bytes nor text', HOW_TO_MAKE)
  if (bytes.length !== SECRET_BYTES) {
    throw invalid(field, `has ${bytes.length} bytes where ${SECRET_BYTES} are needed`, HOW_TO_MAKE)
  }
  return deriveMasterKey(id, bytes)
}

const HOW_TO_MAKE = "Make one with crypto.randomBytes(32), or as text with crypto.randomBytes(32).toString('base64')."

// Buffer skips what is not base64, so a key with a typing error would silently become another key.
function readBase64(field: string, text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64')
  const plain = text.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '')
  if (bytes.toString('base64').replace(/=+$/, '') !== plain) throw invalid(field, 'is not base64', HOW_TO_MAKE)
  return bytes
}

function readSwitch(field: string, value: unknown): boolean {
  if (value === undefined) return true
  if (typeof value !== 'boolean') throw invalid(field, 'is not a boolean', 'Pass true or false, or leave it out.')
  return value
}

function record(field: string, value: unknown, remedy: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array)) {
    return value as Record<string, unknown>
  }
  throw invalid(field, 'is not an object', remedy)
}

// A key pasted in place of its id must not end up in an error log.
function show(id: string): string {
  return id.length <= 20 && /^[\w.-]+$/.test(id) ? id : '<id>'
}

function invalid(field: string, problem: string, remedy: string): InvalidOptionError {
  return new InvalidOptionError(field, problem, remedy)
}
