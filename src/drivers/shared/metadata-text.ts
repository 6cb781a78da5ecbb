import type { IndexFields } from '../../log/contract.js'

/**
 * Metadata as JSON text: a list of pairs, because names hold any character, and JSON.parse of V8 since Node 24 misreads
 * some keys with escapes (nodejs/node#63785). Values are never affected.
 */
export function metadataToText(metadata: IndexFields['metadata']): string {
  return JSON.stringify(Object.entries(metadata))
}

export function metadataFromText(text: string): IndexFields['metadata'] {
  // fromEntries defines own properties, `__proto__` included.
  return Object.fromEntries(JSON.parse(text) as [string, IndexFields['metadata'][string]][])
}
