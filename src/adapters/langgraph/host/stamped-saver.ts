import type { RunnableConfig } from '@langchain/core/runnables'
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointTuple,
  type DeltaChannelHistory,
  type PendingWrite,
} from '@langchain/langgraph-checkpoint'
import type { HoldfastSaver } from '../saver/saver.js'

/** What distinguishes the checkpoints of a run from others, and whether the run may still write. */
export interface Stamp {
  readonly metadata: Readonly<Record<string, unknown>>
  /** Aborted when the thread is no longer ours: another worker continues from what is there. */
  readonly abort: AbortSignal
  /** Rejects when the thread is no longer ours. */
  readonly heartbeat: () => Promise<void>
}

/**
 * The saver as one run of a hosted graph uses it. Every checkpoint says which run wrote it, so that whoever continues
 * after a crash knows whether the input was taken; and nothing is written once the thread's lease is lost.
 */
export class StampedSaver extends BaseCheckpointSaver {
  readonly #saver: HoldfastSaver
  readonly #stamp: Stamp

  constructor(saver: HoldfastSaver, stamp: Stamp) {
    super(saver.serde)
    this.#saver = saver
    this.#stamp = stamp
  }

  getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    return this.#saver.getTuple(config)
  }

  list(config: RunnableConfig, options?: CheckpointListOptions): AsyncGenerator<CheckpointTuple> {
    return this.#saver.list(config, options)
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions?: ChannelVersions,
  ): Promise<RunnableConfig> {
    this.#stamp.abort.throwIfAborted()
    await this.#stamp.heartbeat()
    return this.#saver.put(config, checkpoint, { ...metadata, ...this.#stamp.metadata }, newVersions)
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    this.#stamp.abort.throwIfAborted()
    await this.#saver.putWrites(config, writes, taskId)
  }

  deleteThread(threadId: string): Promise<void> {
    return this.#saver.deleteThread(threadId)
  }

  override getDeltaChannelHistory(options: {
    config: RunnableConfig
    channels: string[]
  }): Promise<Record<string, DeltaChannelHistory>> {
    return this.#saver.getDeltaChannelHistory(options)
  }

  override getNextVersion(current: number | undefined): number {
    return this.#saver.getNextVersion(current)
  }
}
