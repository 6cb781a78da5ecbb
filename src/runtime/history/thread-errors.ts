import { isHoldfastError } from '../../core/errors.js'
import { mapSome } from '../../core/map-some.js'
import type { Head } from '../../log/contract.js'
import type { RecordedError } from '../errors.js'
import type { RunState } from '../run/state/run-state.js'
import type { RuntimeEnvironment } from '../run/environment.js'

const AT_ONCE = 8
/**
 * What keeps a thread from being read, for good or for those without its key. Other errors fail the call, because then
 * nobody knows.
 */
const UNREADABLE: ReadonlySet<string> = new Set(['corrupt', 'missing-key', 'not-found', 'schema-too-new'])
const BROKEN: ReadonlySet<string> = new Set(['failed', 'incompatible'])

/** Why each of these branches failed, by its place; undefined for those that did not. */
export function findErrors(
  { logs }: RuntimeEnvironment,
  heads: readonly Head[],
): Promise<readonly (RecordedError | undefined)[]> {
  return mapSome(heads, AT_ONCE, async (head) => (BROKEN.has(head.index.status) ? findError(logs, head) : undefined))
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
