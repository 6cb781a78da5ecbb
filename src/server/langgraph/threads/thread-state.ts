import type { CheckpointFacts, Holdfast, OpenPause } from '../../../index.js'
import { HttpProblem } from '../../http/problem.js'
import type { HistoryItem } from '../../run/all-history.js'
import { isOurs, toChain } from '../messages.js'

/** A state of a thread as LangGraph's clients read it. */
export interface ThreadState {
  readonly values: Readonly<Record<string, unknown>>
  readonly next: readonly string[]
  readonly checkpoint: CheckpointRef
  readonly metadata: Readonly<Record<string, unknown>>
  readonly created_at: string
  readonly parent_checkpoint: CheckpointRef | null
  readonly tasks: readonly object[]
}

interface CheckpointRef {
  readonly thread_id: string
  readonly checkpoint_ns: string
  readonly checkpoint_id: string
}

/** What waits for a person, as LangGraph has it. */
export interface Interrupt {
  readonly id: string
  readonly value: unknown
}

/**
 * A checkpoint's id for clients that compare ids as text to find the newest: the time first, then the number on its branch,
 * then our own id.
 */
export function writeCheckpointId(at: Date, id: string): string {
  const seq = /~(\d+)~/.exec(id)?.[1] ?? '0'
  return `${String(at.getTime()).padStart(15, '0')}-${seq.padStart(10, '0')}-${id}`
}

/** Our own id of it. */
function readCheckpointId(text: string): string {
  const id = /^\d{15}-\d{10}-(.+)$/.exec(text)?.[1]
  if (id !== undefined) return id
  throw new HttpProblem(422, 'invalid-id', 'The checkpoint id was not issued by this server.', {
    fields: { field: 'checkpoint_id' },
  })
}

/** The checkpoint that a body names, by its object or by its id alone. */
export function checkpointOf(body: {
  readonly checkpoint?: { readonly checkpoint_id?: string | null } | null
  readonly checkpoint_id?: string | null
}): string | undefined {
  const id = body.checkpoint?.checkpoint_id ?? body.checkpoint_id
  return id === undefined || id === null ? undefined : readCheckpointId(id)
}

/** A program's state as JSON for these clients: messages of ours become LangChain's. */
export function toValues({ state, run }: CheckpointFacts, isFlow: boolean): Record<string, unknown> {
  if (isFlow) {
    const output = run?.output
    const isObject = typeof output === 'object' && output !== null && !Array.isArray(output)
    return output === undefined ? {} : isObject ? { ...output } : { output }
  }
  // What an agent keeps for its own loop is nobody else's business.
  const { loop: _, ...rest } = state
  const shown = 'loop' in state && 'runUsage' in state ? rest : state
  return Object.fromEntries(Object.entries(shown).map(([key, value]) => [key, toChainDeep(value)]))
}

function toChainDeep(value: unknown): unknown {
  return Array.isArray(value) && value.length > 0 && value.every(isOurs) ? value.map(toChain) : value
}

/** An open question as an interrupt; an approval in the shape that clients render. */
export function toInterrupt({ id, kind, question }: OpenPause): Interrupt {
  if (kind !== 'approval') return { id, value: question }
  const { tool, input } = question as unknown as { readonly tool: string; readonly input: unknown }
  return {
    id,
    value: {
      action_requests: [{ name: tool, args: input, description: `Run ${tool}?` }],
      review_configs: [{ action_name: tool, allowed_decisions: ['approve', 'edit', 'reject'] }],
    },
  }
}

interface Decision {
  readonly type?: string
  readonly message?: string
  readonly edited_action?: { readonly args?: unknown }
  readonly args?: unknown
}

/** What a client resumed with, as the answer that the question takes. */
export function toAnswer({ kind }: OpenPause, given: unknown): unknown {
  const [decision] = (given as { readonly decisions?: readonly Decision[] } | null)?.decisions ?? []
  if (decision === undefined) return given
  const { type, message, edited_action: edited, args } = decision
  if (kind === 'permission') return { allowed: type !== 'reject' }
  if (type === 'reject') return { approved: false, ...(message === undefined ? {} : { reason: message }) }
  return { approved: true, ...(type === 'edit' ? { input: edited?.args ?? args } : {}) }
}

/** The state at a checkpoint. */
export function toThreadState(
  thread: string,
  facts: CheckpointFacts,
  isFlow: boolean,
  parent: { readonly id: string; readonly at: Date } | undefined,
): ThreadState {
  const ref = (id: string, at: Date) => ({
    thread_id: thread,
    checkpoint_ns: '',
    checkpoint_id: writeCheckpointId(at, id),
  })
  const interrupts = facts.pauses.map(toInterrupt)
  const isOver = facts.run === undefined || facts.run.status === 'completed' || facts.run.status === 'cancelled'
  const failure = facts.run?.status === 'failed' ? facts.run.error?.message : undefined
  const tasks = facts.pauses.map(({ id, step }, i) => task(id, nodeOf(step), [interrupts[i] as Interrupt], null))
  if (failure !== undefined) tasks.push(task(facts.run?.id ?? '', facts.program ?? '', [], failure))
  const next = isOver
    ? []
    : facts.pauses.length > 0
      ? [...new Set(facts.pauses.map(({ step }) => nodeOf(step)))]
      : [facts.program ?? '']
  return {
    values: { ...toValues(facts, isFlow), ...(interrupts.length > 0 ? { __interrupt__: interrupts } : {}) },
    next,
    checkpoint: ref(facts.id, facts.at),
    metadata: { source: 'loop', ...(facts.run === undefined ? {} : { run_id: facts.run.id, graph_id: facts.program }) },
    created_at: facts.at.toISOString(),
    parent_checkpoint: parent === undefined ? null : ref(parent.id, parent.at),
    tasks,
  }
}

function task(id: string, name: string, interrupts: readonly Interrupt[], error: string | null): object {
  return { id, name, error, interrupts, checkpoint: null, state: null }
}

/** The node that a step belongs to. */
export function nodeOf(step: string): string {
  return step.replace(/^\d+:/, '').split(/[ /#]/)[0] ?? step
}

/** When the parent of a listed checkpoint was written. */
export async function parentOf(hf: Holdfast, thread: string, { parent }: Pick<HistoryItem, 'parent'>) {
  if (parent === undefined) return undefined
  const { at } = await hf.inspect(thread).look(parent).facts()
  return { id: parent, at }
}
