import type { KeyObject } from 'node:crypto'
import { chainHash, sameHash } from '../chain.js'

/** 64 hex digits and a line break. */
const SEAL_BYTES = 65

/**
 * The stored body of a keyframe that stands in for an entry: its seal, a line break, and the body itself. The entry's
 * own hash, under which the chain knows it, covers bytes that are gone; the seal covers what is there instead, and
 * which entry of which log it stands for.
 */
export function sealStandIn(
  identity: string,
  hash: string,
  header: Uint8Array,
  body: Uint8Array,
  macKey: KeyObject | undefined,
): Buffer {
  return Buffer.concat([Buffer.from(`${chainHash(identity, hash, header, body, macKey)}\n`), body])
}

/** The body without its seal; undefined if the seal does not match. */
export function openStandIn(
  identity: string,
  hash: string,
  header: Uint8Array,
  stored: Uint8Array,
  macKey: KeyObject | undefined,
): Uint8Array | undefined {
  if (stored.length < SEAL_BYTES || stored[SEAL_BYTES - 1] !== 0x0a) return undefined
  const seal = Buffer.from(stored.subarray(0, SEAL_BYTES - 1)).toString('latin1')
  const body = stored.subarray(SEAL_BYTES)
  return sameHash(chainHash(identity, hash, header, body, macKey), seal) ? body : undefined
}
