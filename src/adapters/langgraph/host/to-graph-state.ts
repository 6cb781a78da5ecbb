import type { GraphState } from '../../../server/index.js'
import type { GraphConfig, Snapshot, SnapshotTask } from './compiled-graph.js'
import { toPlain } from './to-plain.js'

/** A state of a graph as LangGraph's clients read it. */
export function toGraphState(snapshot: Snapshot): GraphState {
  const { values, next, config, metadata, createdAt, parentConfig, tasks } = snapshot
  return {
    values: (toPlain(values) ?? {}) as Record<string, unknown>,
    next: [...next],
    checkpoint: toCheckpoint(config),
    metadata: (toPlain(metadata) ?? {}) as Record<string, unknown>,
    created_at: createdAt ?? null,
    parent_checkpoint: parentConfig === undefined ? null : toCheckpoint(parentConfig),
    tasks: tasks.map(toTask),
  }
}

function toTask({ id, name, error, interrupts, state }: SnapshotTask) {
  const isNested = isSnapshot(state)
  return {
    id,
    name,
    error: error === undefined ? null : messageOf(error),
    interrupts: toPlain(interrupts) as GraphState['tasks'][number]['interrupts'],
    checkpoint: state === undefined ? null : toCheckpoint(isNested ? state.config : state),
    state: isNested ? toGraphState(state) : null,
  }
}

function isSnapshot(state: Snapshot | GraphConfig | undefined): state is Snapshot {
  return state !== undefined && Array.isArray((state as { readonly tasks?: unknown }).tasks)
}

function messageOf(error: unknown): string {
  const { message } = (error ?? {}) as { readonly message?: unknown }
  return String(message ?? error)
}

function toCheckpoint({ configurable = {} }: GraphConfig): GraphState['checkpoint'] {
  const { thread_id: thread, checkpoint_ns: ns, checkpoint_id: id, checkpoint_map: map } = configurable
  return {
    thread_id: String(thread),
    checkpoint_ns: String(ns ?? ''),
    checkpoint_id: String(id ?? ''),
    ...(map === undefined ? {} : { checkpoint_map: toPlain(map) }),
  }
}
