/** Bounds on one stored value. Checked while writing, and again on the raw bytes before anything is parsed. */
export interface Limits {
  /** Bytes of JSON, before compression. */
  readonly maxBytes: number
  /** Arrays and objects inside each other. */
  readonly maxDepth: number
  /** Array items and object properties, all together. */
  readonly maxKeys: number
}

export const DEFAULT_LIMITS: Limits = { maxBytes: 64 * 1024 * 1024, maxDepth: 128, maxKeys: 2_000_000 }
