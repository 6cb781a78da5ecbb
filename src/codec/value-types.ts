/** What can be stored and comes back exactly: JSON, Date, bigint and bytes, including NaN, infinities and -0. */
export type Value =
  | null
  | boolean
  | number
  | string
  | bigint
  | Date
  | Uint8Array
  | readonly Value[]
  | { readonly [key: string]: Value }

/** Whether a value is an object with names of its own. */
export function isRecord(value: Value | undefined): value is { readonly [key: string]: Value } {
  if (typeof value !== 'object' || value === null) return false
  return !Array.isArray(value) && !(value instanceof Date) && !(value instanceof Uint8Array)
}

/** The types that JSON lacks. Listed next to the JSON with the path to each, so no key or string is ever magic. */
export type TypeName = 'date' | 'bigint' | 'bytes' | 'number' | 'text-blob' | 'bytes-blob' | 'json-blob'
export type PathPart = string | number
export type TypeEntry = readonly [TypeName, ...PathPart[]]

/** Marks a value whose large parts may be moved to blobs, or all of it if it is large itself. Never stored itself. */
export class Whole {
  readonly value: unknown
  constructor(value: unknown) {
    this.value = value
  }
}

/** Where large values go. The encoder passes the bytes and writes the number it gets into the JSON. */
export interface BlobSink {
  /** Values whose JSON is at least this long are handed over. */
  readonly threshold: number
  /** The number of a subtree that is in a blob already, so that it is not written again. */
  known(subtree: object): number | undefined
  /** The number of a text that is in a blob already. */
  knownText?(text: string): number | undefined
  /** Takes content and returns its place in the entry's list of blobs. `from` is the text or subtree that it is of. */
  add(content: Uint8Array, from?: object | string): number
  /** Forgets what was added with this number and later: it became part of something larger. */
  drop(from: number): void
}

/** Renders a path for messages: $.messages[3].at */
export function renderPath(path: readonly PathPart[]): string {
  let text = '$'
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else text += /^[A-Za-z_$][\w$]*$/.test(part) ? `.${part}` : `[${JSON.stringify(part)}]`
  }
  return text
}

/** Sets an own property even when the key is `__proto__`, where plain assignment would set the prototype. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
  } else {
    target[key] = value
  }
}
