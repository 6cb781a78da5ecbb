import { checkLength, checkText, decodeParts, encodeParts } from '../core/ids.js'
import { MAX_KEY_BYTES, MAX_SPACE_BYTES } from '../log/items/store-write.js'

/** Whose memory it is: named parts, such as `{ user: 'user-42' }`. The tenant is always part of it. */
export type ScopeInput = Readonly<Record<string, string>>

/** `{user=user-42}`: no part contains a brace, so the first closing one ends the scope. */
export function encodeScope(scope: unknown): string {
  return encodeParts('scope', scope, MAX_SPACE_BYTES)
}

/** `{user=user-42}preferences`. */
export function encodeSpace(scope: string, collection: unknown): string {
  return checkLength(
    'scope with collection',
    scope + checkText('collection', collection, MAX_SPACE_BYTES),
    MAX_SPACE_BYTES,
  )
}

export function decodeSpace(space: string): { readonly scope: ScopeInput; readonly collection: string } {
  const end = space.indexOf('}') + 1
  return { scope: decodeParts(space.slice(0, end)), collection: space.slice(end) }
}

export function checkKey(key: unknown): string {
  return checkText('key', key, MAX_KEY_BYTES)
}
