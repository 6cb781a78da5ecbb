import type { RunLimit, Waiting } from './run-state.js'

/** How far a program came. */
export type Drive =
  | { readonly status: 'completed'; readonly output: unknown; readonly limit?: RunLimit | undefined }
  | { readonly status: 'failed'; readonly error: unknown; readonly others?: readonly unknown[] }
  | { readonly status: 'suspended'; readonly waiting: readonly Waiting[] }
