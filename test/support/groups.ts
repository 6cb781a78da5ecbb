import { afterAll, describe, it } from 'vitest'
import { full } from './scale.js'

/**
 * Runs these groups of a suite, and all of them in `npm run test:full`: for another configuration of a backend that has
 * the whole suite run on it anyway.
 */
export function groupsOf(names: readonly string[]) {
  let found: Set<string> | undefined
  return {
    describe(name: string, body: () => void): void {
      if (found !== undefined) {
        found.add(name)
        if (full || names.includes(name)) describe(name, () => void body())
        return
      }
      const groups = new Set<string>()
      describe(name, () => {
        found = groups
        body()
        const gone = names.filter((one) => !groups.has(one))
        // A group that was renamed must not stop being run.
        if (gone.length > 0) throw new Error(`${name} has no groups ${gone.join(', ')}.`)
      })
    },
    it,
    afterAll,
  }
}
