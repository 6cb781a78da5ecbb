import type { ChannelVersions, Checkpoint, CheckpointMetadata } from '@langchain/langgraph-checkpoint'
import type { Value } from '../../../index.js'
import { InvalidValueError } from '../../../errors.js'
import { type Draft, type Op, ops } from '../../../log/index.js'
import type { Differ } from './diff.js'
import { encode } from '../values/encode.js'
import { sameNode } from '../values/match.js'
import { MARK_EVERY, type Nodes, type SaverState, type StoredWrite } from './state.js'

const { push, remove, set } = ops

/** A checkpoint as LangGraph hands it over. */
export interface PutRequest {
  readonly ns: string
  readonly parent: string | undefined
  readonly checkpoint: Checkpoint
  readonly metadata: CheckpointMetadata
  /** Undefined: whatever differs from the parent is stored. */
  readonly newVersions: ChannelVersions | undefined
}

/** How a checkpoint joins its branch. */
export interface PutPlace {
  /** The seq that its entry gets. */
  readonly seq: number
  /** Where the branch begins: 'fork' has the parent's state before it, 'root' nothing. */
  readonly begins?: 'root' | 'fork'
  /** The parent is not stored, so nothing can be taken from it. */
  readonly orphan?: boolean
  /** Writes that arrived before their checkpoint, on another branch. */
  readonly early?: readonly StoredWrite[]
}

/** The entry that brings a checkpoint: what differs from its parent, which the state before holds. */
export function planPut(before: SaverState, request: PutRequest, differ: Differ, place: PutPlace): Omit<Draft, 'kind'> {
  const { checkpoint, metadata, parent, ns } = request
  const { v, id, ts } = checkpoint
  checkIdentity(checkpoint)
  const ops: Op[] = [
    set('checkpoint', { v, id, ts, ...(parent === undefined ? {} : { parent }) }),
    ...differ.diff(['metadata'], before.metadata, metadata),
    ...channelOps(before, request, differ, place),
    ...flatOps('versions', before.versions, checkpoint.channel_versions),
    ...flatOps('seen', before.seen, checkpoint.versions_seen),
    ...writeOps(before, id, place),
    ...markOps(before, id, place),
  ]
  if (before.ns === undefined) ops.push(set('ns', ns))
  return { ops }
}

function checkIdentity({ v, id, ts }: Checkpoint): void {
  for (const [field, value, type] of [
    ['v', v, 'number'],
    ['id', id, 'string'],
    ['ts', ts, 'string'],
  ] as const) {
    if (typeof value !== type || value === '') {
      throw new InvalidValueError(`$.${field}`, `must be a ${type}`, 'Pass a checkpoint as LangGraph makes them.')
    }
  }
}

/**
 * A channel is stored if its version is new, or if its value differs from the parent's: an update by LangGraph clears
 * what was sent, and takes in what tasks have written, without new versions. For the first checkpoint, what has no new
 * version is what the graph begins with anyway, unless it is a copy of another first one. A channel that the checkpoint
 * does not name is gone. Never looked up by (channel, version): a fork gives the same version to another value.
 */
function channelOps(before: SaverState, request: PutRequest, differ: Differ, { orphan, begins }: PutPlace): Op[] {
  const { newVersions, metadata, parent } = request
  const { channel_values: values = {} } = request.checkpoint
  const isWhole = newVersions === undefined || orphan === true || (parent === undefined && metadata.source === 'fork')
  const stored: Nodes = before.channels ?? {}
  const ops: Op[] = []
  for (const channel of Object.keys(stored)) {
    if (!Object.hasOwn(values, channel)) ops.push(remove(['channels', channel]))
  }
  for (const channel of Object.keys(values)) {
    const node = Object.hasOwn(stored, channel) ? stored[channel] : undefined
    const isNew = isWhole || Object.hasOwn(newVersions, channel)
    const value = (values as Record<string, unknown>)[channel]
    if (isNew) ops.push(...differ.diff(['channels', channel], node, value))
    else if (begins !== 'root') ops.push(...differ.diffUnchanged(['channels', channel], node, value))
  }
  return ops
}

/** Of an object whose values are small: each one that changed is set as a whole. */
function flatOps(field: 'versions' | 'seen', before: Nodes | undefined, values: object | undefined): Op[] {
  const stored = before ?? {}
  const given = (values ?? {}) as Record<string, unknown>
  const ops: Op[] = []
  for (const key of Object.keys(stored)) if (!Object.hasOwn(given, key)) ops.push(remove([field, key]))
  for (const key of Object.keys(given)) {
    const node = encode(given[key], [field === 'seen' ? 'versions_seen' : 'channel_versions', key])
    const old: Value | undefined = Object.hasOwn(stored, key) ? stored[key] : undefined
    if (!sameNode(node, old)) ops.push(set([field, key], node))
  }
  return ops
}

function writeOps(before: SaverState, id: string, { begins, early }: PutPlace): Op[] {
  const ops: Op[] = []
  if (begins === 'fork') {
    if (before.writes !== undefined) ops.push(remove('writes'))
  } else {
    // What waited for the head is in the past now, and readable there.
    const head = before.checkpoint?.id
    if (head !== undefined && head !== id && before.writes && Object.hasOwn(before.writes, head)) {
      ops.push(remove(['writes', head]))
    }
  }
  if (early && early.length > 0) ops.push(set(['writes', id], early))
  return ops
}

function markOps(before: SaverState, id: string, { begins, seq }: PutPlace): Op[] {
  if (begins !== undefined || before.count === undefined) {
    return [set('marks', [[id, seq]]), set('count', 1), set('ordered', true)]
  }
  const ops: Op[] = [set('count', before.count + 1)]
  const head = before.checkpoint?.id
  if (before.ordered !== false && head !== undefined && id < head) ops.push(set('ordered', false))
  if (before.count % MARK_EVERY === 0) ops.push(push('marks', [id, seq]))
  return ops
}
