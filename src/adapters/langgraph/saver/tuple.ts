import {
  type ChannelVersions,
  type Checkpoint,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  maxChannelVersion,
  TASKS,
} from '@langchain/langgraph-checkpoint'
import type { Value } from '../../../index.js'
import type { Located } from './branches.js'
import { decode, decodeRecord } from '../values/decode.js'
import type { LiveLists } from './diff.js'
import { joinWrites } from './plan-writes.js'
import { type SaverState, stateOf, type StoredWrite } from './state.js'

/** What waits for a checkpoint: what came in time, and what came after its successor. */
export function writesOf({ id, fold, log }: Located): readonly StoredWrite[] {
  const early = ownWrites(stateOf(fold), id)
  return fold === log.fold ? early : joinWrites(early, ownWrites(stateOf(log.fold), id))
}

export function ownWrites({ writes }: SaverState, id: string): readonly StoredWrite[] {
  return writes && Object.hasOwn(writes, id) ? (writes[id] as readonly StoredWrite[]) : []
}

export function namespaceOf({ fold }: Located): string {
  return stateOf(fold).ns ?? ''
}

export function metadataOf({ fold }: Located): CheckpointMetadata {
  return decode(stateOf(fold).metadata ?? {}) as CheckpointMetadata
}

/** A checkpoint as LangGraph reads it. */
export function toTuple(located: Located, live: LiveLists): CheckpointTuple {
  const { threadId, id, fold } = located
  const state = stateOf(fold)
  const { parent } = state.checkpoint ?? {}
  const config = (checkpointId: string) => ({
    configurable: { thread_id: threadId, checkpoint_ns: state.ns ?? '', checkpoint_id: checkpointId },
  })
  return {
    config: config(id),
    checkpoint: toCheckpoint(state, live),
    metadata: metadataOf(located),
    pendingWrites: writesOf(located).map(
      ([task, , channel, node]): CheckpointPendingWrite => [task, channel, decode(node)],
    ),
    ...(parent === undefined ? {} : { parentConfig: config(parent) }),
  }
}

function toCheckpoint(state: SaverState, live: LiveLists): Checkpoint {
  const { v = 0, id = '', ts = '' } = state.checkpoint ?? {}
  const channels = state.channels ?? {}
  const values = decodeRecord(channels)
  // A graph that continues from here passes these very items back.
  for (const channel of Object.keys(channels)) live.learn(channels[channel], values[channel])
  return {
    v,
    id,
    ts,
    channel_values: values,
    channel_versions: decodeRecord(state.versions ?? {}) as ChannelVersions,
    versions_seen: decodeRecord(state.seen ?? {}) as Checkpoint['versions_seen'],
  }
}

/** Checkpoints before version 4 kept what was sent among the writes of their parent. */
export function addPendingSends(
  checkpoint: Checkpoint,
  writes: readonly StoredWrite[],
  firstVersion: number | string,
): void {
  const sends = writes
    .filter(([, , channel]) => channel === TASKS)
    .sort(([a, i], [b, j]) => (a === b ? i - j : a < b ? -1 : 1))
  checkpoint.channel_values[TASKS] = sends.map(([, , , node]: readonly [string, number, string, Value]) => decode(node))
  const versions = Object.values(checkpoint.channel_versions)
  checkpoint.channel_versions[TASKS] = versions.length > 0 ? maxChannelVersion(...versions) : firstVersion
}
