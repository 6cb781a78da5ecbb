import { isHoldfastError } from '../core/errors.js'
import { MAIN_BRANCH, parseThreadId, type TenantId, type ThreadId, type ThreadIdInput } from '../core/ids.js'
import type { LogStore } from '../log/log-store.js'
import { allHeads } from '../log/read/heads.js'
import { tellOfErasure } from '../runtime/child/run-errands.js'
import type { RuntimeEnvironment } from '../runtime/run/environment.js'
import { CHILDREN, COMPANION, PARENT } from '../runtime/run/state/labels.js'

/** What is erased with a thread, before it: without it nobody would find them. */
export async function relativesOf(
  store: LogStore,
  tenant: TenantId,
  thread: ThreadIdInput,
  id: ThreadId,
): Promise<readonly ThreadId[]> {
  return [...(await childrenOf(store, tenant, id)), ...(await companionsOf(store, tenant, thread, id))]
}

/** Threads that runs of this one started, and those below them, deepest first. */
async function childrenOf(store: LogStore, tenant: TenantId, id: ThreadId): Promise<readonly ThreadId[]> {
  const { heads } = await store.list({ tenant, thread: id, limit: 1000 })
  if (!heads.some(({ index }) => CHILDREN in index.metadata)) return []
  const found: ThreadId[] = []
  const children = allHeads((page) => store.list(page), { tenant, metadata: { [PARENT]: id }, limit: 1000 })
  for await (const { log } of children) found.push(...(await childrenOf(store, tenant, log.thread)), log.thread)
  return [...new Set(found)]
}

/** Tells whoever awaits a thread that is about to be erased. */
export async function tellParentOf(environment: RuntimeEnvironment, tenant: TenantId, thread: ThreadId): Promise<void> {
  try {
    await tellOfErasure(environment, { tenant, thread, branch: MAIN_BRANCH })
  } catch (error) {
    // What can't be read is erased all the same.
    if (!isHoldfastError(error, 'corrupt') && !isHoldfastError(error, 'missing-key')) throw error
  }
}

/** Threads that hold the states of this one's runs. */
async function companionsOf(
  store: LogStore,
  tenant: TenantId,
  thread: ThreadIdInput,
  id: ThreadId,
): Promise<readonly ThreadId[]> {
  if (typeof thread !== 'string') return []
  const { heads } = await store.list({ tenant, thread: id, limit: 1000 })
  const labels = new Set(heads.map(({ index }) => index.metadata[COMPANION]))
  return [...labels].flatMap((label) => (typeof label === 'string' ? [parseThreadId({ [label]: thread })] : []))
}
