import { compareUtf8 } from '../../../core/text-order.js'
import type { Append } from '../../../log/contract.js'
import { encodeArray } from '../values/binary-array.js'
import { compareItems, contentValues, placeValues } from './item-statements.js'

/** Whether any append of a batch carries items, which then goes by migrations/0010-append-carrying.sql. */
export function carriesItems(batch: readonly Append[]): boolean {
  return batch.some(({ carried }) => carried !== undefined && carried.length > 0)
}

/**
 * The last parameters of that function. In: the appends in the order the function gets them. Those that write the same
 * item do so one after another in this order, because sorting keeps it.
 */
export function carriedValues(appends: readonly Append[]): Buffer[] {
  const writes = appends.flatMap(({ log, carried = [] }, i) =>
    carried.map((write) => ({ ...write, tenant: log.tenant, position: i + 1 })),
  )
  writes.sort((a, b) => compareUtf8(a.tenant, b.tenant) || compareItems(a, b))
  return [
    encodeArray(
      'integer',
      writes.map(({ position }) => position),
    ),
    ...placeValues(writes),
    encodeArray(
      'double',
      writes.map(({ at }) => at),
    ),
    ...contentValues(writes),
  ]
}
