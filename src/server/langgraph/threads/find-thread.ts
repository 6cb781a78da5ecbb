import type { CheckpointFacts, Holdfast, ThreadSummary } from '../../../index.js'
import { currentBranch } from '../../ai-sdk/chat-branch.js'
import { HttpProblem } from '../../http/problem.js'
import { readThreadId } from '../../http/ids.js'
import type { Call } from '../../http/route.js'
import { listHistory, MAX_HISTORY } from '../../run/all-history.js'
import { type GraphThread, graphOf, graphState } from '../graphs/graph-threads.js'
import { fromLabels } from './labels.js'
import { parentOf, toInterrupt, toThreadState, toValues } from './thread-state.js'

/** A thread on the branch where something happened last: what these clients take for the thread's state. */
export interface Found {
  readonly id: string
  readonly summary: ThreadSummary
  readonly facts: CheckpointFacts
  readonly isFlow: boolean
}

/** The thread of the path as a plain id; these clients know no others. */
export function threadId({ params }: Call): string {
  const id = readThreadId(params['thread'] ?? '')
  if (typeof id === 'string') return id
  throw new HttpProblem(422, 'invalid-id', 'This dialect takes plain thread ids only.', {
    fields: { field: 'thread_id' },
  })
}

export async function findThread(call: Pick<Call, 'hf' | 'core'>, id: string): Promise<Found | undefined> {
  const branch = await currentBranch(call.hf, id)
  if (branch === undefined) return undefined
  const [summary] = (await call.hf.threads({ thread: id, branch, limit: 1 })).threads
  if (summary === undefined) return undefined
  const facts = await call.hf.inspect(id, { branch }).look(summary.checkpoint).facts()
  return { id, summary, facts, isFlow: isFlow(call, facts.program) }
}

export async function needThread(call: Call, id = threadId(call)): Promise<Found> {
  const found = await findThread(call, id)
  if (found !== undefined) return found
  throw new HttpProblem(404, 'not-found', `There is no thread "${id.slice(0, 100)}".`)
}

function isFlow({ core }: Pick<Call, 'core'>, program: string | undefined): boolean {
  return core.programs.get(program ?? '')?.plan.kind === 'flow'
}

/** The state at a checkpoint, or the newest. */
export async function stateOf(call: Pick<Call, 'hf' | 'core'>, found: Found, checkpoint?: string) {
  const { hf } = call
  const branches = await hf.inspect(found.id).branches()
  const at = checkpoint ?? (await newestCheckpoint(hf, found))
  // Before its first run a thread has no checkpoint, only a beginning.
  const facts = await hf
    .inspect(found.id)
    .look(at ?? found.summary.checkpoint)
    .facts()
  const branch = hf.inspect(found.id).look(facts.id).branch
  const { checkpoints } = await listHistory(hf, found.id, branches, { branch, limit: MAX_HISTORY })
  const parent = checkpoints.find(({ id }) => id === facts.id)
  return toThreadState(found.id, facts, found.isFlow, await parentOf(hf, found.id, parent ?? {}))
}

/** The newest entry of the current branch after which its program can continue. */
export async function newestCheckpoint(hf: Holdfast, { id, summary }: Found): Promise<string | undefined> {
  return (await hf.inspect(id, { branch: summary.branch }).history({ events: false, limit: 1 }))[0]?.id
}

/** Whether it is at work now, as these clients name it. */
export function statusOf({ summary, facts }: Found): 'idle' | 'busy' | 'interrupted' | 'error' {
  if (facts.pauses.length > 0) return 'interrupted'
  if (facts.run?.status === 'cancelled' && summary.wakeAt === null) return 'idle'
  if (['failed', 'incompatible', 'limited'].includes(summary.status)) return 'error'
  if (summary.status === 'waiting') return 'interrupted'
  const isDue = summary.wakeAt !== null && summary.wakeAt.getTime() <= Date.now()
  return summary.claimedBy !== null || isDue ? 'busy' : 'idle'
}

/** A thread as these clients read it. */
export async function describeThread(call: Pick<Call, 'core' | 'principal'>, found: Found) {
  const graph = graphOf(call, found)
  return graph === undefined ? describeOwn(found) : describeGraph(found, graph)
}

async function describeGraph(found: Found, graph: GraphThread) {
  const { values, next, tasks, created_at: at } = await graphState(graph, found.facts)
  const own = describeOwn(found)
  const asked = tasks.filter(({ interrupts }) => interrupts.length > 0).map(({ id, interrupts }) => [id, interrupts])
  return {
    ...own,
    // It stands at a breakpoint, or was ended while it asked.
    status: own.status === 'idle' && next.length > 0 ? 'interrupted' : own.status,
    values: at === null ? null : values,
    interrupts: Object.fromEntries(asked) as object,
  }
}

function describeOwn(found: Found) {
  const { id, summary, facts, isFlow: flow } = found
  const interrupts = Object.fromEntries(facts.pauses.map((pause) => [pause.id, [toInterrupt(pause)]]))
  return {
    thread_id: id,
    created_at: summary.createdAt.toISOString(),
    updated_at: summary.updatedAt.toISOString(),
    state_updated_at: summary.updatedAt.toISOString(),
    metadata: fromLabels(summary.metadata),
    status: statusOf(found),
    config: {},
    values: facts.run === undefined && Object.keys(facts.state).length === 0 ? null : toValues(facts, flow),
    interrupts,
    ...(facts.run?.status === 'failed' ? { error: facts.run.error?.message } : {}),
    ...(facts.run?.limit ? { error: facts.run.limit.reason } : {}),
  }
}
