import { InvalidOptionError } from './errors.js'
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
    throw new InvalidOptionError(owner, `must be an object, not ${given}`, 'Pass options as { name: value }.')
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(names, name)) continue
    const [likest] = findSimilarNames(name, Object.keys(names))
    const known = Object.keys(names).sort().join(', ')
    throw new InvalidOptionError(
      JSON.stringify(name),
      `is not recognized by ${owner}`,
      likest === undefined ? `Use one of: ${known}.` : `Did you mean ${likest}? Known are: ${known}.`,
      { name, owner },
    )
  }
}
