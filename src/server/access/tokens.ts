import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { InvalidOptionError } from '../../errors.js'
import { checkOptionNames, type OptionNames } from '../../core/wording/option-names.js'
import { checkText, MAX_ID_BYTES, parseTenantId } from '../../core/ids.js'
import { type Principal, ROLES, type Role } from './principal.js'

/** A token that the server accepts, and whom it represents. */
export interface ServerToken {
  /** At least 16 characters. Sent as `Authorization: Bearer …` or `x-api-key`, never in a URL. */
  readonly token: string
  /** Default: `default`. */
  readonly tenant?: string
  /** Default: `token`. */
  readonly subject?: string
  /** Default: all of them. */
  readonly roles?: readonly Role[]
  /** Other tenants that it may act for, one per request, named by the header `x-holdfast-tenant`; `*`: any. */
  readonly tenants?: readonly string[] | '*'
}

/** Who makes a request; undefined, or null, for an unknown caller. */
export type Authenticate = (request: Request) => Principal | undefined | null | Promise<Principal | undefined | null>

const SHORTEST = 16
/** A token with `role` instead of `roles` would have all of them. */
const FIELDS: OptionNames<ServerToken> = { token: true, tenant: true, subject: true, roles: true, tenants: true }

/** A token that can't be guessed. */
export function makeToken(): string {
  return `hf_${randomBytes(24).toString('base64url')}`
}

/** Recognizes callers by their token. */
export function authenticateByToken(tokens: readonly ServerToken[]): Authenticate {
  const known = tokens.map((given, i) => {
    checkOptionNames(`tokens[${i}]`, given, FIELDS)
    return { hash: hashOf(checkToken(given.token, i)), principal: principalOf(given, i) }
  })
  return (request) => {
    const token = tokenOf(request)
    if (token === undefined) return undefined
    const hash = hashOf(token)
    let found: Principal | undefined
    // All of them, and hashes of one length: timing reveals nothing about how close a guess was.
    for (const { hash: other, principal } of known) if (timingSafeEqual(hash, other)) found = principal
    return found
  }
}

/** The token of a request. Headers only: URLs end up in logs, histories and `Referer`. */
export function tokenOf({ headers }: Request): string | undefined {
  const authorization = headers.get('authorization')
  if (authorization !== null) return /^Bearer +(\S+) *$/i.exec(authorization)?.[1]
  return headers.get('x-api-key') ?? undefined
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

function checkToken(token: unknown, i: number): string {
  if (typeof token === 'string' && token.length >= SHORTEST && /^[\x21-\x7e]+$/.test(token)) return token
  const given = typeof token === 'string' ? `${token.length} characters` : `a ${typeof token}`
  throw new InvalidOptionError(
    `tokens[${i}].token`,
    `must be at least ${SHORTEST} printable ASCII characters without spaces, not ${given}`,
    'Make one with `openssl rand -hex 24`.',
  )
}

function principalOf(given: ServerToken, i: number): Principal {
  const { tenant = 'default', subject = 'token', roles = ROLES, tenants } = given
  return checkPrincipal({ tenant, subject, roles, ...(tenants === undefined ? {} : { tenants }) }, `tokens[${i}]`)
}

/** Refuses a principal that could do something other than what was intended. */
export function checkPrincipal(principal: Principal, field: string): Principal {
  const { tenant, subject, roles, tenants = [] } = principal
  parseTenantId(tenant)
  if (tenants !== '*' && !Array.isArray(tenants)) {
    throw new InvalidOptionError(`${field}.tenants`, `can't be ${String(tenants)}`, "Pass a list of tenants, or '*'.")
  }
  for (const other of tenants === '*' ? [] : tenants) parseTenantId(other)
  checkText(`${field}.subject`, subject, MAX_ID_BYTES)
  const unknown = Array.isArray(roles) ? roles.find((role) => !ROLES.includes(role)) : String(roles)
  if (unknown !== undefined) {
    throw new InvalidOptionError(`${field}.roles`, `can't hold "${unknown}"`, `Use any of: ${ROLES.join(', ')}.`)
  }
  return principal
}
