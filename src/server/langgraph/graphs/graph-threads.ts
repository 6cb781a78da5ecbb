import type { CheckpointFacts } from '../../../index.js'
import type { Call } from '../../http/route.js'
import type { StartedRun } from '../../run/start-run.js'
import type { Found } from '../threads/find-thread.js'
import { type GraphAsk, type GraphState, hostedOf, type HostedGraph } from './hosted-graph.js'

/** A thread's graph of LangGraph, and whose it is. Its states are the graph's own; the thread has its runs. */
export interface GraphThread {
  readonly hosted: HostedGraph
  readonly tenant: string
  readonly id: string
}

/** The graph behind a thread: the one that ran it, or that it was made for. Undefined for programs of Holdfast's own. */
export function graphOf(call: Pick<Call, 'core' | 'principal'>, { id, summary }: Found): GraphThread | undefined {
  const name = summary.metadata['holdfast.program'] ?? summary.metadata['graph_id']
  const hosted = hostedOf(call.core.programs.get(String(name)))
  return hosted && { hosted, tenant: call.principal.tenant, id }
}

/** The state of a graph now or at a checkpoint, with what the thread still asks. */
export async function graphState(
  { hosted, tenant, id }: GraphThread,
  facts: CheckpointFacts,
  options: { readonly checkpoint?: string; readonly ns?: string; readonly subgraphs?: boolean } = {},
): Promise<GraphState> {
  const state = await hosted.state(tenant, id, options)
  if (state === undefined) return { ...EMPTY, checkpoint: { ...EMPTY.checkpoint, thread_id: id } }
  return withInterrupts(options.checkpoint === undefined ? withoutAnswered(state, facts) : state)
}

const EMPTY: GraphState = {
  values: {},
  next: [],
  checkpoint: { thread_id: '', checkpoint_ns: '', checkpoint_id: '' },
  metadata: {},
  created_at: null,
  parent_checkpoint: null,
  tasks: [],
}

/** The graph learns of answers when all are there; who looks in the meantime sees what is still asked. */
function withoutAnswered(state: GraphState, { pauses }: CheckpointFacts): GraphState {
  if (pauses.length === 0) return state
  const open = new Set(pauses.map(({ question }) => (question as unknown as GraphAsk).interrupt))
  const tasks = state.tasks.map((task) => ({
    ...task,
    interrupts: task.interrupts.filter(({ id }) => id === undefined || open.has(id)),
  }))
  return { ...state, tasks }
}

function withInterrupts(state: GraphState): GraphState {
  const asked = state.tasks.flatMap(({ interrupts }) => interrupts)
  return asked.length === 0 ? state : { ...state, values: { ...state.values, __interrupt__: asked } }
}

/** The values that a run of a graph came to, by the record of its end: the graph may be elsewhere by now. */
export async function graphValues(
  call: Pick<Call, 'principal'>,
  hosted: HostedGraph,
  { thread }: StartedRun,
  recorded: string,
): Promise<Record<string, unknown>> {
  const { run, pauses } = await thread.look(recorded).facts()
  const asked = pauses.map(({ question }) => question as unknown as GraphAsk)
  const { checkpoint } = (asked[0] ?? run?.output ?? {}) as { readonly checkpoint?: string | null }
  const at = checkpoint === undefined || checkpoint === null ? {} : { checkpoint }
  const state = await hosted.state(call.principal.tenant, String(thread.id), at)
  const interrupts = asked.map(({ interrupt: id, value }) => ({ id, value }))
  return { ...state?.values, ...(interrupts.length > 0 ? { __interrupt__: interrupts } : {}) }
}

/** The checkpoint that a body names, as the graph knows it. */
export function graphCheckpoint(body: unknown): { readonly checkpoint?: string; readonly ns?: string } {
  const { checkpoint, checkpoint_id: alone } = (body ?? {}) as {
    readonly checkpoint?: { readonly checkpoint_id?: string | null; readonly checkpoint_ns?: string | null } | null
    readonly checkpoint_id?: string | null
  }
  const id = checkpoint?.checkpoint_id ?? alone
  const ns = checkpoint?.checkpoint_ns
  return { ...(id ? { checkpoint: id } : {}), ...(ns ? { ns } : {}) }
}
