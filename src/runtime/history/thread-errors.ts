import { isHoldfastError } from '../../core/errors.js'
import type { Head } from '../../log/contract.js'
import type { RecordedError } from '../errors.js'
import type { RunState } from '../run/run-state.js'
import type { RuntimeEnvironment } from '../run/run-thread.js'

const AT_ONCE = 8
/** What keeps a thread from being read, for good or for those without its key. Others fail the call: nobody knows then. */
const UNREADABLE: ReadonlySet<string> = new Set(['corrupt', 'missing-key', 'not-found', 'schema-too-new'])
const BROKEN: ReadonlySet<string> = new Set(['failed', 'incompatible'])

/** Why each of these branches failed, by its place; undefined for those that did not. */
export async function findErrors(
  { logs }: RuntimeEnvironment,
  heads: readonly Head[],
): Promise<readonly (RecordedError | undefined)[]> {
  const found = new Array<RecordedError | undefined>(heads.length)
  let next = 0
  const read = async () => {
    for (let i = next++; i < heads.length; i = next++) {
      const head = heads[i] as Head
      if (BROKEN.has(head.index.status)) found[i] = await findError(logs, head)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, read))
  return found
}

// One that can't be read must not hide the others, and why it can't is not why its run failed.
async function findError(logs: RuntimeEnvironment['logs'], { log, seq }: Head): Promise<RecordedError | undefined> {
  try {
    const { run, parked } = (await logs.unread(log).at(seq)).state as RunState
    return parked ?? run?.error
  } catch (error) {
    if (isHoldfastError(error) && UNREADABLE.has(error.code)) return undefined
    throw error
  }
}
