import type { KeyObject } from 'node:crypto'
import { type DataKey, decrypt, deriveDataKey, deriveKey, encrypt } from './data-key.js'

/** A key that the operator holds and that is never stored. It only wraps data keys and authenticates their log. */
export interface MasterKey {
  readonly id: string
  readonly wrapKey: KeyObject
  /** Chains the entries of key logs. */
  readonly chainKey: DataKey
}

const CHAIN_PREFIX = 'master:'

export function deriveMasterKey(id: string, secret: Uint8Array): MasterKey {
  return {
    id,
    wrapKey: deriveKey(secret, 'wrap'),
    chainKey: deriveDataKey(`${CHAIN_PREFIX}${id}`, deriveKey(secret, 'key log').export()),
  }
}

/** The same master, whose wrapped keys can be unwrapped only together with the tenant's own secret. */
export function joinSecret(master: MasterKey, secret: Uint8Array): MasterKey {
  const both = Buffer.concat([master.wrapKey.export(), secret])
  return { ...master, wrapKey: deriveKey(both, 'wrap with vault') }
}

/** The master key that an entry of a key log names, or undefined if it names none. */
export function masterIdOf(chainKeyId: string): string | undefined {
  return chainKeyId.startsWith(CHAIN_PREFIX) ? chainKeyId.slice(CHAIN_PREFIX.length) : undefined
}

/** Whose data key it is. Authenticated with it, so that a wrapped key can't be unwrapped anywhere else. */
export interface WrapPlace {
  readonly tenant: string
  readonly id: string
}

export function wrapSecret(master: MasterKey, secret: Uint8Array, place: WrapPlace): Uint8Array {
  return new Uint8Array(encrypt(master.wrapKey, secret, context(master, place)))
}

export function unwrapSecret(master: MasterKey, wrapped: Uint8Array, place: WrapPlace): Uint8Array {
  return decrypt(master.wrapKey, wrapped, context(master, place))
}

function context(master: MasterKey, { tenant, id }: WrapPlace): Buffer {
  return Buffer.from(`holdfast/1 data key\n${JSON.stringify([tenant, id, master.id])}`)
}
