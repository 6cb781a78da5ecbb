import type { Value } from '../../../index.js'
import type { Fold } from '../../../log/index.js'

export type Nodes = { readonly [key: string]: Value }

/** A write of a task that waits for its checkpoint's successor: task, position, channel, value. */
export type StoredWrite = readonly [task: string, index: number, channel: string, node: Value]

/** What a log of checkpoints folds to: the newest checkpoint of its branch, and how to find the others. */
export interface SaverState {
  /** Version, id, time and parent of the checkpoint. Absent while only writes have arrived. */
  readonly checkpoint?: {
    readonly v: number
    readonly id: string
    readonly ts: string
    readonly parent?: string
  }
  readonly metadata?: Value
  readonly channels?: Nodes
  readonly versions?: { readonly [channel: string]: number | string }
  readonly seen?: { readonly [node: string]: { readonly [channel: string]: number | string } }
  /** By checkpoint id. Those of a checkpoint go with the entry that brings its successor. */
  readonly writes?: { readonly [id: string]: readonly StoredWrite[] }
  /** Id and seq of every 32nd checkpoint of this branch: a sparse index that keeps searching from being scanning. */
  readonly marks?: readonly (readonly [id: string, seq: number])[]
  /** How many checkpoints were put on this branch. */
  readonly count?: number
  /** False once an id came that does not follow the one before: then the marks can't be searched by order. */
  readonly ordered?: boolean
  readonly ns?: string
}

export const MARK_EVERY = 32

export function stateOf(fold: Fold): SaverState {
  return fold.state as SaverState
}

/** The id of the newest checkpoint of a branch. */
export function headId(fold: Fold): string | undefined {
  return stateOf(fold).checkpoint?.id
}
