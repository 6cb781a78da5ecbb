import { createHash } from 'node:crypto'
import type { RunnableConfig } from '@langchain/core/runnables'
import { getCheckpointId } from '@langchain/langgraph-checkpoint'
import type { ThreadIdInput } from '../../../index.js'
import { InvalidIdError } from '../../../errors.js'

/** Marks the logs of the saver in the thread index. */
export const ADAPTER = 'langgraph'

const MAX_BRANCH_BYTES = 128
const MAX_LABEL_BYTES = 1024

/** Where a LangGraph thread lives. A structured id: no thread of another program can have it. */
export function threadName(threadId: unknown): ThreadIdInput {
  if (typeof threadId !== 'string') {
    throw new InvalidIdError('thread_id', `must be a string, not ${typeof threadId}`, 'Write numbers as text.')
  }
  return { [ADAPTER]: threadId }
}

/** The LangGraph thread id, or undefined for a thread of another program. */
export function threadIdOf(thread: ThreadIdInput): string | undefined {
  return typeof thread === 'string' ? undefined : thread[ADAPTER]
}

/** The first branch of a namespace, whose name is known without asking: two processes that start at once meet there. */
export function baseBranch(ns: string): string {
  // The sign before a checkpoint id is escaped: no namespace is named like a branch of another.
  return ns === '' ? 'main' : readable(`ns:${ns.replace(/[%@]/g, encodeURIComponent)}`)
}

/** The branch that begins with this checkpoint. A repeated put finds the branch it created. */
export function lineageBranch(ns: string, checkpointId: string): string {
  return readable(`${baseBranch(ns)}@${checkpointId}`)
}

/** What the thread index says about a branch. Set once, so that saving leaves the labels alone. */
export function branchLabels(ns: string): Record<string, string> {
  return { adapter: ADAPTER, ns: namespaceLabel(ns) }
}

export function namespaceLabel(ns: string): string {
  checkNamespace(ns)
  return Buffer.byteLength(ns) <= MAX_LABEL_BYTES ? ns : `#${digest(ns)}`
}

export function checkNamespace(ns: unknown): asserts ns is string {
  if (typeof ns === 'string' && ns.isWellFormed() && !ns.includes('\0')) return
  throw new InvalidIdError('checkpoint_ns', 'is not well-formed text', 'Pass a string of valid Unicode without NUL.')
}

/** The checkpoint id of a config, or undefined. An object or number would be stored as something that nothing finds. */
export function checkpointIdOf(config: RunnableConfig, field = 'checkpoint_id'): string | undefined {
  const id: unknown = getCheckpointId(config)
  if (id === undefined || id === null || id === '') return undefined
  if (typeof id === 'string') return id
  throw new InvalidIdError(field, `must be a string, not ${nameOf(id)}`, 'Pass the id as LangGraph made it.')
}

export function checkTaskId(taskId: unknown): asserts taskId is string {
  if (typeof taskId === 'string' && taskId !== '') return
  const found = taskId === '' ? 'empty' : nameOf(taskId)
  throw new InvalidIdError(
    'taskId',
    `must be a non-empty string, not ${found}`,
    'Pass the id of the task, not the task.',
  )
}

function nameOf(value: unknown): string {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'an array' : typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function readable(name: string): string {
  return name.length <= MAX_BRANCH_BYTES && /^[\x20-\x7e]+$/.test(name) ? name : `#${digest(name)}`
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

/** No LangGraph id (uuid6, ordered by time) created up to this moment is above it. */
export function highestIdAt(ms: number): string {
  const ticks = (BigInt(Math.floor(ms)) + 12_219_292_800_000n) * 10_000n + 9_999n
  const hex = ticks.toString(16).padStart(15, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-6${hex.slice(12, 15)}-ffff-ffffffffffff`
}

export function isTimeOrdered(id: string): boolean {
  return /^[0-9a-f]{8}-[0-9a-f]{4}-6[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/.test(id)
}
