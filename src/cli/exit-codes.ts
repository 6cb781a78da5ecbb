/**
 * What a script can tell from how a command ended. Documented in docs/cli.md; numbers are never reused for something
 * else.
 */
export const EXIT = {
  ok: 0,
  /** The command did its work and the answer is no: a run failed, a replay differs, a check of `doctor` failed. */
  failed: 1,
  /** The command line, or a value on it, is wrong. Nothing was done. */
  usage: 2,
  notFound: 3,
  /** Somebody else was first, or holds the thread. */
  conflict: 4,
  /** The backend can't be reached or refuses. */
  unavailable: 5,
  /** What is stored does not verify. */
  corrupt: 6,
  /** The run waits for somebody or something. */
  paused: 7,
  /** The thread was recorded by a program that this one does not continue. */
  incompatible: 8,
  /** A limit of the program ended the run before it was done. */
  limited: 9,
  interrupted: 130,
} as const

const BY_CODE: Readonly<Record<string, number>> = {
  'invalid-id': EXIT.usage,
  'invalid-value': EXIT.usage,
  'invalid-option': EXIT.usage,
  'invalid-program': EXIT.usage,
  'missing-context': EXIT.usage,
  'too-large': EXIT.usage,
  'not-found': EXIT.notFound,
  conflict: EXIT.conflict,
  fenced: EXIT.conflict,
  held: EXIT.conflict,
  'pause-closed': EXIT.conflict,
  unavailable: EXIT.unavailable,
  storage: EXIT.unavailable,
  closed: EXIT.unavailable,
  'schema-too-new': EXIT.unavailable,
  'missing-dependency': EXIT.unavailable,
  'missing-key': EXIT.unavailable,
  corrupt: EXIT.corrupt,
  'data-loss': EXIT.corrupt,
  incompatible: EXIT.incompatible,
}

/** The exit code for the stable code of an error. */
export function exitCodeFor(code: string): number {
  return BY_CODE[code] ?? EXIT.failed
}

/** The exit code for how a run ended. */
export function exitCodeOf(outcome: { readonly status: string; readonly ended?: string }): number {
  switch (outcome.status) {
    case 'completed':
      return EXIT.ok
    case 'paused':
      return EXIT.paused
    case 'busy':
      return EXIT.conflict
    case 'incompatible':
      return EXIT.incompatible
    case 'limited':
      return EXIT.limited
    case 'pruned':
      return outcome.ended === 'cancelled' ? EXIT.failed : EXIT.ok
    default:
      return EXIT.failed
  }
}
