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
import { type Holdfast, type OpenOptions, openHoldfast } from '../../../index.js'
import { InvalidOptionError } from '../../../errors.js'
import { checkOptionNames, type OptionNames } from '../../../internal.js'
import { againIfGone, Branches, type Located } from './branches.js'
import { CheckpointWriter } from './checkpoint-writer.js'
import { deltaHistory } from './delta-history.js'
import { Differ, LiveLists } from './diff.js'
import { encode } from '../values/encode.js'
import { sameNode } from '../values/match.js'
import { checkNamespace, checkpointIdOf, checkTaskId, threadName } from './names.js'
import { stateOf } from './state.js'
import { addPendingSends, metadataOf, namespaceOf, toTuple, writesOf } from './tuple.js'

/** How checkpoints are compared, and what happens when two writers use one thread. */
export interface HoldfastSaverOptions {
  /** Whose threads these are. Default: the tenant of the Holdfast that is passed in. */
  readonly tenant?: string
  /**
   * What happens to a checkpoint whose parent already has another successor, because somebody traveled in time or two
   * writers met: it becomes a separate branch (default), or a ConflictError.
   */
  readonly onFork?: 'branch' | 'refuse'
  /**
   * How channel values are compared with the parent's: lists by reference, with their newest items compared in full
   * (default), or everything in full, for graphs that change old items in place.
   */
  readonly compare?: 'recent' | 'all'
  /** How many branches are kept open. Default 100. */
  readonly openBranches?: number
}

const OPTIONS: OptionNames<HoldfastSaverOptions> = { tenant: true, onFork: true, compare: true, openBranches: true }

/** Keeps LangGraph checkpoints in a Holdfast, on any of its backends. Each one is stored as what changed. */
export class HoldfastSaver extends BaseCheckpointSaver {
  readonly #hf: Holdfast
  readonly #owned: boolean
  readonly #branches: Branches
  readonly #writer: CheckpointWriter
  readonly #live = new LiveLists()

  constructor(hf: Holdfast, options: HoldfastSaverOptions = {}, owned = false) {
    super()
    checkOptionNames('HoldfastSaver', options, OPTIONS)
    const { tenant, onFork = 'branch', compare = 'recent', openBranches = 100 } = options
    checkChoice('onFork', onFork, ['branch', 'refuse'])
    checkChoice('compare', compare, ['recent', 'all'])
    if (!Number.isSafeInteger(openBranches) || openBranches < 1) {
      throw new InvalidOptionError('openBranches', 'must be a whole number, 1 or more', 'Pass how many to keep open.')
    }
    this.#hf = tenant === undefined ? hf : hf.tenant(tenant)
    this.#owned = owned
    this.#branches = new Branches(this.#hf, openBranches)
    this.#writer = new CheckpointWriter(this.#branches, this.#live, new Differ(this.#live, { compare }), onFork)
  }

  /**
   * Opens a backend by its URL for this saver alone: `sqlite:agents.db`, `postgres://…`, `redis://…`, `file:folder`.
   */
  static async open(url: string, options: HoldfastSaverOptions & OpenOptions = {}): Promise<HoldfastSaver> {
    const { tenant, onFork, compare, openBranches, ...open } = options
    const hf = await openHoldfast(url, open)
    try {
      return new HoldfastSaver(
        hf,
        {
          ...(tenant === undefined ? {} : { tenant }),
          ...(onFork === undefined ? {} : { onFork }),
          ...(compare === undefined ? {} : { compare }),
          ...(openBranches === undefined ? {} : { openBranches }),
        },
        true,
      )
    } catch (error) {
      await hf.close()
      throw error
    }
  }

  /** There is nothing to do: opening a backend updates its schema, however many processes start at once. */
  async setup(): Promise<void> {}

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const located = await this.#locate(config)
    return located && this.#toTuple(located)
  }

  /**
   * By descending id, across everything that matches: one namespace of a thread, a thread, or everything of this
   * tenant.
   */
  async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { limit, before, filter } = options
    const { thread_id: threadId, checkpoint_ns: ns } = config.configurable ?? {}
    const id = checkpointIdOf({ configurable: { checkpoint_id: config.configurable?.['checkpoint_id'] } })
    if (limit !== undefined && limit <= 0) return
    if (threadId !== undefined) threadName(threadId)
    if (ns !== undefined) checkNamespace(ns)
    const wanted = Object.entries(filter ?? {}).map(([key, value]) => [key, encode(value, ['filter', key])] as const)
    const beforeId = before === undefined ? undefined : checkpointIdOf(before, 'before.checkpoint_id')
    let count = 0
    for await (const located of this.#branches.newestFirst({ threadId, ns, before: beforeId })) {
      if (id && located.id !== id) continue
      if (!wanted.every(([key, node]) => hasMetadata(located, key, node))) continue
      yield await this.#toTuple(located)
      count++
      if (limit !== undefined && count >= limit) return
    }
  }

  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions?: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { threadId, ns } = place(config, 'put')
    const parent = checkpointIdOf(config)
    await againIfGone(this.#branches, threadId, () =>
      this.#writer.put(threadId, { ns, parent, checkpoint, metadata, newVersions }),
    )
    return { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: checkpoint.id } }
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { threadId, ns } = place(config, 'putWrites')
    const id = checkpointIdOf(config)
    if (id === undefined) throw missing('checkpoint_id', 'putWrites')
    checkTaskId(taskId)
    await againIfGone(this.#branches, threadId, () => this.#writer.putWrites(threadId, ns, id, writes, taskId))
  }

  async deleteThread(threadId: string): Promise<void> {
    await this.#hf.erase(threadName(threadId), { reason: 'deleteThread' })
    this.#branches.forget(threadId)
  }

  override async getDeltaChannelHistory(options: {
    config: RunnableConfig
    channels: string[]
  }): Promise<Record<string, DeltaChannelHistory>> {
    const { config, channels } = options
    if (channels.length === 0) return {}
    const target = await this.#locate(config)
    if (target === undefined) return Object.fromEntries(channels.map((channel) => [channel, { writes: [] }]))
    return deltaHistory(target, channels, (branch) => this.#branches.logs.get(target.threadId, branch))
  }

  /** Closes what `HoldfastSaver.open` opened. A Holdfast that was passed in stays open. */
  async close(): Promise<void> {
    if (this.#owned) await this.#hf.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #locate(config: RunnableConfig): Promise<Located | undefined> {
    const { thread_id: threadId, checkpoint_ns: ns = '' } = config.configurable ?? {}
    if (threadId === undefined) return undefined
    threadName(threadId)
    checkNamespace(ns)
    const id = checkpointIdOf(config)
    return againIfGone(this.#branches, threadId, async () => {
      const located = await (id === undefined
        ? this.#branches.newest(threadId, ns)
        : this.#branches.find(threadId, ns, id))
      if (located && id === undefined) this.#branches.use(threadId, ns, located.log.key.branch)
      return located
    })
  }

  async #toTuple(located: Located): Promise<CheckpointTuple> {
    const tuple = toTuple(located, this.#live)
    const parent = stateOf(located.fold).checkpoint?.parent
    if (tuple.checkpoint.v < 4 && parent !== undefined) {
      const found = await this.#branches.find(located.threadId, namespaceOf(located), parent)
      addPendingSends(tuple.checkpoint, found ? writesOf(found) : [], this.getNextVersion(undefined))
    }
    return tuple
  }
}

function hasMetadata(located: Located, key: string, node: unknown): boolean {
  const metadata = metadataOf(located) as Record<string, unknown>
  // Asking for a key as undefined means that it must not be there.
  return sameNode(encode(Object.hasOwn(metadata, key) ? metadata[key] : undefined, []), node as never)
}

function place(config: RunnableConfig, method: string): { readonly threadId: string; readonly ns: string } {
  const { thread_id: threadId, checkpoint_ns: ns = '' } = config.configurable ?? {}
  if (threadId === undefined) throw missing('thread_id', method)
  threadName(threadId)
  checkNamespace(ns)
  return { threadId, ns }
}

function missing(field: string, method: string): InvalidOptionError {
  return new InvalidOptionError(
    `configurable.${field}`,
    `is missing, and ${method} needs it`,
    `Pass { configurable: { ${field}: '…' } }.`,
  )
}

function checkChoice(field: string, value: unknown, choices: readonly string[]): void {
  if (choices.includes(value as string)) return
  throw new InvalidOptionError(field, `is ${JSON.stringify(value)}`, `Use ${choices.join(' or ')}.`)
}
