import { SECRET_BYTES } from '../../codec/secret/data-key.js'
import { deriveMasterKey, type MasterKey } from '../../codec/secret/master-key.js'
import { InvalidOptionError } from '../../core/errors.js'
import { suggestName } from '../../core/wording/option-names.js'
import { looksSecret, showName } from '../../core/wording/secrets.js'

/** Turns on authentication and encryption of everything that is stored. */
export interface KeyOptions {
  /** The id of the master key that wraps new data keys. */
  readonly current: string
  /** Master keys by id: 32 random bytes each, as bytes or base64. Keep old ones until `rewrap` is done. */
  readonly masters: Readonly<Record<string, Uint8Array | string>>
  /** Default true: AES-256-GCM. False: HMAC-SHA-256 only, so that what is stored is protected but can be read. */
  readonly encrypt?: boolean
  /**
   * Accepts what the named tenants wrote before they had keys, for a while. Without it, data without a key is refused,
   * because anyone who can write to the store could have planted it. Call `hf.keys.adopt()` for each tenant, then
   * remove it.
   */
  readonly adoptPlain?: PlainAdoption
  /**
   * Where each tenant's own secret is kept, without which its data keys can't be unwrapped. `hf.keys.destroy()` removes
   * it, which makes every copy of the tenant's data unreadable, including backups.
   */
  readonly vault?: KeyVault
}

/** The decision to trust plain data: whose, how old it must be, and how long the decision is valid. */
export interface PlainAdoption {
  /** The tenants that have plain data; 'all' trusts anyone who can write to the store with every tenant. */
  readonly tenants: readonly string[] | 'all'
  /** When keys came into use, as a Date or ISO text: plain data dated later is refused. */
  readonly writtenBefore: Date | string
  /** From this moment on the decision is void and all plain data is refused again, as a Date or ISO text. */
  readonly acceptUntil: Date | string
}

/** The options, checked and made into keys. */
export interface Masters {
  readonly current: MasterKey
  readonly all: ReadonlyMap<string, MasterKey>
  readonly encrypt: boolean
  readonly adoption: Adoption | undefined
  readonly vault: KeyVault | undefined
}

/** `adoptPlain`, checked. */
export interface Adoption {
  readonly covers: (tenant: string) => boolean
  readonly writtenBefore: number
  readonly acceptUntil: number
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const FIELDS: ReadonlySet<string> = new Set(['current', 'masters', 'encrypt', 'adoptPlain', 'vault'])
const ADOPTION_FIELDS: ReadonlySet<string> = new Set(['tenants', 'writtenBefore', 'acceptUntil'])

/** Refuses keys that would fail later, before anything is opened. No message ever contains any part of a secret. */
export function parseKeyOptions(input: unknown): Masters {
  const options = record('keys', input, "Pass { current: 'k1', masters: { k1: <32 bytes> } }.")
  if ('acceptPlain' in options) {
    throw invalid('keys.acceptPlain', 'is gone: plain data is refused by default', `To keep some, ${HOW_TO_ADOPT}`)
  }
  refuseUnknown('keys', options, FIELDS)
  const masters = record('keys.masters', options.masters, 'Pass master keys by their ids, such as { k1: <32 bytes> }.')
  const ids = Object.keys(masters)
  if (ids.length === 0) throw invalid('keys.masters', 'is empty', 'Give at least one master key.')
  const all = new Map(ids.map((id) => [id, readMaster(id, masters[id])]))
  const current = typeof options.current === 'string' ? all.get(options.current) : undefined
  if (current === undefined) {
    throw invalid('keys.current', 'names no key of keys.masters', `Pass one of: ${ids.map(showName).join(', ')}.`)
  }
  return {
    current,
    all,
    encrypt: readSwitch('keys.encrypt', options.encrypt),
    vault: options.vault === undefined ? undefined : checkVault(options.vault),
    adoption: options.adoptPlain === undefined ? undefined : readAdoption(options.adoptPlain),
  }
}

/** What to do with data from before there were keys, for messages. */
export const HOW_TO_ADOPT =
  "set keys.adoptPlain to { tenants: ['acme'], writtenBefore: '2026-01-31', acceptUntil: '2026-03-01' } and call hf.keys.adopt()."

function readAdoption(input: unknown): Adoption {
  const field = 'keys.adoptPlain'
  const given = record(field, input, `To keep data from before there were keys, ${HOW_TO_ADOPT}`)
  refuseUnknown(field, given, ADOPTION_FIELDS)
  const { tenants } = given
  const isList = Array.isArray(tenants) && tenants.length > 0 && tenants.every((tenant) => typeof tenant === 'string')
  if (tenants !== 'all' && !isList) {
    throw invalid(`${field}.tenants`, 'is not a list of tenant ids', "Name the tenants with plain data, or pass 'all'.")
  }
  const named = new Set<string>(isList ? tenants : [])
  return {
    covers: (tenant) => tenants === 'all' || named.has(tenant),
    writtenBefore: readTime(`${field}.writtenBefore`, given.writtenBefore),
    acceptUntil: readTime(`${field}.acceptUntil`, given.acceptUntil),
  }
}

function readTime(field: string, value: unknown): number {
  const time = value instanceof Date ? value.getTime() : typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(time)) throw invalid(field, 'is not a date', "Pass a Date or ISO text such as '2026-01-31'.")
  return time
}

function refuseUnknown(parent: string, given: Readonly<Record<string, unknown>>, known: ReadonlySet<string>): void {
  for (const name of Object.keys(given)) {
    if (!known.has(name)) throw invalid(`${parent}.${show(name)}`, 'is unknown', suggestName(name, [...known]))
  }
}

function readMaster(id: string, secret: unknown): MasterKey {
  if (!ID.test(id)) {
    const remedy = 'Use 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit.'
    throw invalid(`keys.masters.${show(id)}`, 'has an id with other characters than allowed', remedy)
  }
  const field = `keys.masters.${showName(id)}`
  // Ids are stored in plain text: a key in place of its id would sit next to what it protects.
  if (typeof secret === 'string' && sameText(id, secret)) {
    throw invalid(
      'keys.masters',
      'has a key in the place of its id',
      "Give it a name of your own: { k1: '<the key>' }.",
    )
  }
  const bytes = typeof secret === 'string' ? readBase64(field, secret) : secret
  if (!(bytes instanceof Uint8Array)) throw invalid(field, 'is neither bytes nor text', HOW_TO_MAKE)
  if (ENCODINGS.some((encoding) => sameText(id, Buffer.from(bytes).toString(encoding)))) {
    throw invalid('keys.masters', 'has a key in the place of its id', 'Give it a name of your own: { k1: <the key> }.')
  }
  if (bytes.length !== SECRET_BYTES) {
    throw invalid(field, `has ${bytes.length} bytes where ${SECRET_BYTES} are needed`, HOW_TO_MAKE)
  }
  return deriveMasterKey(id, bytes)
}

const ENCODINGS = ['base64', 'base64url', 'hex'] as const

/** Up to case, padding and the two ways to write base64. */
function sameText(a: string, b: string): boolean {
  const plain = (text: string) => text.replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '').toLowerCase()
  return plain(a) === plain(b)
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
  return id.length <= 40 && /^[\w.-]+$/.test(id) && !looksSecret(id) ? id : '<id>'
}

function invalid(field: string, problem: string, remedy: string): InvalidOptionError {
  return new InvalidOptionError(field, problem, remedy)
}

/**
 * Where each tenant's own secret is kept, apart from the store and its backups. A tenant's data keys can be unwrapped
 * only with it, so that destroying it makes every copy of the store unreadable for that tenant. Create one with
 * `fileVault`, or from three functions over your secret manager.
 */
export interface KeyVault {
  /** The tenant's secret, 32 bytes; undefined if it has none, or it was destroyed. */
  read(tenant: string): Promise<Uint8Array | undefined>
  /**
   * Keeps a secret for a tenant that has none and returns the one that is kept, which may be another process's. Must
   * reject for a tenant whose secret was destroyed.
   */
  create(tenant: string, secret: Uint8Array): Promise<Uint8Array>
  /** Removes a tenant's secret for good, with every copy of it. */
  destroy(tenant: string): Promise<void>
}

function checkVault(given: unknown): KeyVault {
  const vault = (given ?? {}) as Partial<Record<keyof KeyVault, unknown>>
  const methods = ['read', 'create', 'destroy'] as const
  if (methods.every((name) => typeof vault[name] === 'function')) return given as KeyVault
  throw new InvalidOptionError(
    'keys.vault',
    'is not a vault',
    "Pass fileVault('/elsewhere/vault'), or { read, create, destroy } of your own.",
  )
}
