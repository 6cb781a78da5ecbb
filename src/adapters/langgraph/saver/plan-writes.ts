import { type PendingWrite, WRITES_IDX_MAP } from '@langchain/langgraph-checkpoint'
import type { Value } from '../../../index.js'
import type { Op } from '../../../log/index.js'
import { encode } from '../values/encode.js'
import type { StoredWrite } from './state.js'

/** Writes of a task as they are stored; special ones have a place of their own below 0. */
export function storedWrites(task: string, writes: readonly PendingWrite[]): readonly StoredWrite[] {
  return writes.map(([channel, value], at) => {
    const index = Object.hasOwn(WRITES_IDX_MAP, channel) ? (WRITES_IDX_MAP[channel] as number) : at
    return [task, index, channel as string, encode(value, ['writes', at])]
  })
}

/**
 * Adds writes to those that wait for a checkpoint. A write that is already there stays as it is, so that a task that
 * runs again changes nothing; a special one is replaced.
 */
export function writesOps(id: string, waiting: readonly StoredWrite[], writes: readonly StoredWrite[]): Op[] {
  const added: StoredWrite[] = []
  const ops: Op[] = []
  for (const write of writes) {
    const [task, index] = write
    const at = waiting.findIndex((one) => isPlace(one, task, index))
    if (at >= 0) {
      if (index < 0) ops.push(['splice', ['writes', id], at, 1, [write as unknown as Value]])
      continue
    }
    const again = added.findIndex((one) => isPlace(one, task, index))
    if (again >= 0) added[again] = write
    else added.push(write)
  }
  if (added.length > 0) ops.push(['push', ['writes', id], added as unknown as readonly Value[]])
  return ops
}

/** What waits for a checkpoint, when some of it arrived after its successor. */
export function joinWrites(early: readonly StoredWrite[], late: readonly StoredWrite[]): readonly StoredWrite[] {
  if (late.length === 0) return early
  const joined = [...early]
  for (const write of late) {
    const at = joined.findIndex((one) => isPlace(one, write[0], write[1]))
    if (at < 0) joined.push(write)
    else if (write[1] < 0) joined[at] = write
  }
  return joined
}

function isPlace([task, index]: StoredWrite, otherTask: string, otherIndex: number): boolean {
  return task === otherTask && index === otherIndex
}
