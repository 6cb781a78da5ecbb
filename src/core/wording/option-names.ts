import { InvalidOptionError } from '../errors.js'
import { findSimilarNames } from './similar.js'

/** Every name that an options object may have. A missing or extra name does not compile. */
export type OptionNames<Options> = { readonly [Name in keyof Required<Options>]: true }

/**
 * Refuses names that nobody reads. A misspelled option would otherwise do nothing at all, which can be costly: a key
 * that encrypts nothing, a limit that limits nothing. Types catch it only in TypeScript, and not behind a spread.
 */
export function checkOptionNames(owner: string, options: unknown, names: object): void {
  if (typeof options !== 'object' || options === null) {
    if (options === undefined) return
    const given = options === null ? 'null' : `a ${typeof options}`
    throw new InvalidOptionError(`argument of ${owner}`, `must be an object, not ${given}`, 'Pass { name: value }.')
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(names, name)) continue
    const remedy = suggestName(name, Object.keys(names).sort())
    throw new InvalidOptionError(JSON.stringify(name), `is not recognized by ${owner}`, remedy, { name, owner })
  }
}

/** What to do about a name that nobody reads: the one that was probably meant, and all that there are. */
export function suggestName(given: string, known: readonly string[]): string {
  if (known.length === 0) return 'Leave it out: there are no options.'
  const [likest] = findSimilarNames(given, known)
  const all = `Use one of: ${known.join(', ')}.`
  return likest === undefined ? all : `Did you mean ${likest}? ${all}`
}
