import { isHoldfastError, StorageError } from '../../core/errors.js'
import { toStorageError } from './disk/disk-errors.js'

/** Parts of one call that are on their way to the disk at once. */
const AT_ONCE = 8

/** All of them, a few at a time, in their order. */
export async function mapSome<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  let next = 0
  const lane = async () => {
    for (let i = next++; i < items.length; i = next++) results[i] = await work(items[i] as Item)
  }
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, lane))
  return results
}

/**
 * Writes that are independent of each other: one that fails does not stop its neighbors. The whole is reported as
 * unwritten only if that is true of each.
 */
export async function writeEach<Item, Result>(
  items: readonly Item[],
  remedy: string,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const outcomes = await mapSome(items, async (item) => {
    try {
      return { result: await work(item) }
    } catch (error) {
      return { error: toStorageError(error, 'nothing') }
    }
  })
  const results: Result[] = []
  const errors: unknown[] = []
  for (const outcome of outcomes) {
    if ('error' in outcome) errors.push(outcome.error)
    else results.push(outcome.result)
  }
  if (errors.length === 0) return results
  const isNothing = (error: unknown) => isHoldfastError(error) && error.data.written === 'nothing'
  if (items.length === 1 || (errors.length === items.length && errors.every(isNothing))) throw errors[0]
  const message = errors[0] instanceof Error ? errors[0].message : String(errors[0])
  throw new StorageError(`Some writes of a batch landed, and one did not: ${message}`, remedy, {
    reason: 'partial-batch',
    written: 'unknown',
    retryable: true,
    cause: errors[0],
  })
}
