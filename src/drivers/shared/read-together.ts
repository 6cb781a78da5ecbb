import { isHoldfastError } from '../../core/errors.js'

/** So many requests may be in progress at once: a long one does not keep the others waiting. */
const AT_ONCE = 4
/** A request asks for no more than this: whoever came first does not wait for everybody's data. */
const MOST = 16

interface Waiting<Key, Found> {
  readonly key: Key
  /** It was part of a request that failed, and may be the cause. */
  readonly alone: boolean
  resolve(found: Found): void
  reject(error: unknown): void
}

/**
 * Reads for many who each want one thing: those who ask in the same turn of the event loop, or while others are being
 * answered, share a request. Each sees what was there after it asked, and fails only for a reason of its own: damage in
 * one log must not look like damage in another.
 */
export function readTogether<Key, Found>(
  read: (keys: readonly Key[]) => Promise<readonly (() => Found)[]>,
): (key: Key) => Promise<Found> {
  let waiting: Waiting<Key, Found>[] = []
  let underWay = 0
  let isScheduled = false

  const send = async (batch: readonly Waiting<Key, Found>[]): Promise<void> => {
    underWay++
    try {
      const found = await read(batch.map(({ key }) => key))
      for (const [i, { resolve, reject }] of batch.entries()) {
        try {
          resolve((found[i] as () => Found)())
        } catch (error) {
          reject(error)
        }
      }
    } catch (error) {
      fail(batch, error)
    } finally {
      underWay--
      schedule()
    }
  }
  const fail = (batch: readonly Waiting<Key, Found>[], error: unknown): void => {
    // A store that does not answer fails all of them alike; asked by each alone, it would keep them waiting in turn.
    const isShared = isHoldfastError(error, 'unavailable') || isHoldfastError(error, 'closed')
    if (batch.length === 1 || isShared) for (const { reject } of batch) reject(error)
    else waiting.unshift(...batch.map((member) => ({ ...member, alone: true })))
  }
  const sendAll = (): void => {
    isScheduled = false
    while (waiting.length > 0 && underWay < AT_ONCE) {
      const alone = waiting.findIndex((member) => member.alone)
      const size = alone === 0 ? 1 : Math.min(MOST, alone === -1 ? waiting.length : alone)
      const batch = waiting.slice(0, size)
      waiting = waiting.slice(size)
      void send(batch)
    }
  }
  const schedule = (): void => {
    if (isScheduled || waiting.length === 0 || underWay >= AT_ONCE) return
    isScheduled = true
    queueMicrotask(sendAll)
  }
  return (key) =>
    new Promise((resolve, reject) => {
      waiting.push({ key, alone: false, resolve, reject })
      schedule()
    })
}
