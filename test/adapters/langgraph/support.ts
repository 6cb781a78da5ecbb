import {
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointTuple,
  MemorySaver,
  uuid6,
} from '@langchain/langgraph-checkpoint'
import type { HoldfastSaver } from 'holdfast/langgraph'
import { type Backend, durableBackends } from '../../support/backends.js'

const durable = await durableBackends()

/** All five. */
export const backends: readonly Backend[] = [
  { name: 'memory', missing: false, fresh: async () => 'memory:', cleanup: async () => {} },
  ...durable,
]

export async function cleanUp(): Promise<void> {
  for (const backend of durable) await backend.cleanup()
}

let clock = 0

/** A checkpoint as LangGraph makes them, with channel versions that count up by the step. */
export function makeCheckpoint(values: Record<string, unknown>, version = 1, id = uuid6(clock++ % 16_000)): Checkpoint {
  return {
    v: 4,
    id,
    ts: new Date().toISOString(),
    channel_values: values,
    channel_versions: Object.fromEntries(Object.keys(values).map((channel) => [channel, version])),
    versions_seen: {},
  }
}

export const loop = (step = 0, more: object = {}): CheckpointMetadata => ({
  source: 'loop',
  step,
  parents: {},
  ...more,
})

export interface At {
  readonly configurable: { readonly thread_id: string; readonly checkpoint_ns: string; readonly checkpoint_id?: string }
}

/** Puts a checkpoint after another, all of its channels as new. */
export async function put(saver: HoldfastSaver, after: At, values: Record<string, unknown>, version = 1): Promise<At> {
  const checkpoint = makeCheckpoint(values, version)
  return (await saver.put(after, checkpoint, loop(version), checkpoint.channel_versions)) as At
}

export const start = (thread: string, ns = ''): At => ({ configurable: { thread_id: thread, checkpoint_ns: ns } })

export async function all(tuples: AsyncIterable<CheckpointTuple>): Promise<CheckpointTuple[]> {
  const list: CheckpointTuple[] = []
  for await (const tuple of tuples) list.push(tuple)
  return list
}

/**
 * MemorySaver, but for one thing: when LangGraph saves on exit and no step came to its end, it puts the last checkpoint
 * once more, after itself. MemorySaver then has it for its own parent, and puts what a failed step left over a past that
 * others follow. Here it keeps its parent, as with PostgresSaver, and the past stays.
 */
export class KeepingMemorySaver extends MemorySaver {
  override async put(config: At, checkpoint: Checkpoint, metadata: CheckpointMetadata) {
    const { thread_id, checkpoint_ns, checkpoint_id } = config.configurable
    if (checkpoint_id !== checkpoint.id) return super.put(config, checkpoint, metadata)
    const known = await all(this.list(start(thread_id, checkpoint_ns)))
    if (known.some(({ parentConfig }) => parentConfig?.configurable?.['checkpoint_id'] === checkpoint_id)) return config
    const before = known.find(({ checkpoint: { id } }) => id === checkpoint_id)
    return super.put(before?.parentConfig ?? start(thread_id, checkpoint_ns), checkpoint, metadata)
  }
}
