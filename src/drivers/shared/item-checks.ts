import { HoldfastError } from '../../core/errors.js'
import type { CarriedWrite, ItemWrite } from '../../log/store-contract.js'

/**
 * Refuses a list that names one item twice, before anything of it is written: backends that write many rows with one
 * statement would refuse it with an error of their own, or keep either.
 */
export function checkItemWrites(writes: readonly (ItemWrite | CarriedWrite)[]): void {
  const spaces = new Map<string, Set<string>>()
  for (const { space, key } of writes) {
    let keys = spaces.get(space)
    if (keys === undefined) spaces.set(space, (keys = new Set()))
    if (keys.has(key)) {
      throw new HoldfastError('invalid-value', `The item ${JSON.stringify(key)} is written twice in one call.`, {
        data: { field: 'writes', space, key, written: 'nothing' },
        remedy: 'This is a mistake in the calling code, not in the data; nothing was written.',
      })
    }
    keys.add(key)
  }
}
