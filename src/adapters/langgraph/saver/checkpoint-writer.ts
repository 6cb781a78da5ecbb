import type { PendingWrite } from '@langchain/langgraph-checkpoint'
import { ConflictError, isHoldfastError, type Value } from '../../../index.js'
import { type Fold, type Log, ops } from '../../../log/index.js'
import type { Branches } from './branches.js'
import type { Differ, LiveLists } from './diff.js'
import { sameNode } from '../values/match.js'
import { baseBranch, branchLabels, lineageBranch } from './names.js'
import { planPut, type PutPlace, type PutRequest } from './plan-put.js'
import { storedWrites, writesOps } from './plan-writes.js'
import { headId, stateOf, type StoredWrite } from './state.js'
import { ownWrites } from './tuple.js'
import { findInBranch } from './walk.js'

const { remove, set } = ops

/** For how many checkpoints it is remembered that writes came before them, and where they were put. */
const MAX_REMEMBERED = 1000

/** Below this many bytes of JSON a log is read from its start. */
const SMALLEST_DISTANCE = 32 * 1024

/** Puts checkpoints and writes on the branches they belong to. */
export class CheckpointWriter {
  readonly #branches: Branches
  readonly #live: LiveLists
  readonly #differ: Differ
  readonly #onFork: 'branch' | 'refuse'
  /** The branches to which writes went whose checkpoint this process has yet to put. */
  readonly #early = new Map<string, Set<string>>()
  /** The branches to which it put checkpoints: writes that were on their way elsewhere in the meantime follow them. */
  readonly #arrived = new Map<string, string>()

  constructor(branches: Branches, live: LiveLists, differ: Differ, onFork: 'branch' | 'refuse') {
    this.#branches = branches
    this.#live = live
    this.#differ = differ
    this.#onFork = onFork
  }

  async put(threadId: string, request: PutRequest): Promise<void> {
    const { ns, checkpoint } = request
    const log = await this.#put(threadId, request)
    this.#branches.use(threadId, ns, log.key.branch)
    this.#learn(log.fold, request)
    remember(this.#arrived, `${threadId}\n${checkpoint.id}`, log.key.branch)
    await this.#moveEarly(threadId, checkpoint.id, log)
  }

  async putWrites(threadId: string, ns: string, id: string, writes: PendingWrite[], task: string): Promise<void> {
    const stored = storedWrites(task, writes)
    const ending = await this.#branches.endingWith(threadId, ns, id)
    const log = ending ?? (await this.#branches.find(threadId, ns, id))?.log
    if (log !== undefined) return this.#addWrites(log, ns, id, stored)
    // LangGraph saves in the background: a task may be done before its checkpoint is put.
    const branch = this.#branches.active(threadId, ns)
    const waiting = await this.#branches.logs.get(threadId, branch)
    await this.#addWrites(waiting, ns, id, stored)
    const key = `${threadId}\n${id}`
    remember(this.#early, key, (this.#early.get(key) ?? new Set()).add(branch))
    // In the meantime it may have been put elsewhere, by a put that knew nothing of these.
    const arrived = this.#arrived.get(key)
    if (arrived !== undefined) await this.#moveEarly(threadId, id, await this.#branches.logs.get(threadId, arrived))
  }

  async #put(threadId: string, request: PutRequest): Promise<Log> {
    const { ns, parent, checkpoint } = request
    if (parent === checkpoint.id) return this.#putAgain(threadId, request)
    if (parent === undefined) {
      const base = await this.#branches.logs.get(threadId, baseBranch(ns))
      if ((await this.#append(base, request, {})) || (await this.#isStored(base, request))) return base
      return this.#begin(threadId, request, {})
    }
    const log =
      (await this.#branches.endingWith(threadId, ns, parent)) ?? (await this.#branches.find(threadId, ns, parent))?.log
    // LangGraph may name a parent that it never saved. Then nothing can be taken from it.
    if (log === undefined) return this.#begin(threadId, request, { orphan: true })
    if ((await this.#append(log, request, {})) || (await this.#isStored(log, request))) return log
    if (this.#onFork === 'refuse') throw this.#refusal(threadId, request, log)
    const found = await findInBranch(log, parent)
    if (found === undefined) return this.#begin(threadId, request, { orphan: true })
    const branch = lineageBranch(ns, checkpoint.id)
    const place = { seq: 0, begins: 'fork' } as const
    try {
      const draft = planPut(stateOf(found.fold), request, this.#differ, place)
      const fork = await log.fork({ branch, at: found.fold.seq, draft })
      this.#branches.logs.add(threadId, branch, fork)
      return fork
    } catch (error) {
      if (!isHoldfastError(error, 'conflict')) throw error
      return this.#repeat(threadId, branch, request, error)
    }
  }

  /**
   * LangGraph puts a checkpoint after itself when it saves on exit and nothing happened since: somebody asked again, or
   * a node paused once more. It keeps its parent, and if others follow it, it stays as it is.
   */
  async #putAgain(threadId: string, request: PutRequest): Promise<Log> {
    const { ns, checkpoint } = request
    const ending = await this.#branches.endingWith(threadId, ns, checkpoint.id)
    const found = ending ? { log: ending, fold: ending.fold } : await this.#branches.find(threadId, ns, checkpoint.id)
    if (found === undefined) return this.#begin(threadId, { ...request, parent: undefined }, { orphan: true })
    await this.#append(found.log, { ...request, parent: stateOf(found.fold).checkpoint?.parent }, {})
    return found.log
  }

  /** Whether a checkpoint was put on this branch before others that now follow it: then the put is a repetition. */
  async #isStored(log: Log, request: PutRequest): Promise<boolean> {
    const found = await findInBranch(log, request.checkpoint.id)
    if (found === undefined) return false
    const { ops = [] } = planPut(stateOf(found.fold), request, this.#differ, { seq: 0 })
    if (!ops.some(([, [field]]) => field === 'channels' || field === 'versions')) return true
    throw new ConflictError(
      `Checkpoint ${request.checkpoint.id} was put before with other values, and has successors.`,
      { ns: request.ns, checkpoint: request.checkpoint.id },
      'Give each checkpoint its own id.',
    )
  }

  /** Adds a checkpoint to a branch that ends with its parent. False if it ends with another. */
  async #append(log: Log, request: PutRequest, place: Omit<PutPlace, 'seq'>): Promise<boolean> {
    const { ns, parent, checkpoint } = request
    let appended = false
    await log.update((fold) => {
      const before = stateOf(fold)
      const head = before.checkpoint
      const isRepeat = head?.id === checkpoint.id && head.parent === parent
      const follows = head === undefined ? parent === undefined || place.orphan === true : head.id === parent
      appended = isRepeat || follows
      if (!appended) return undefined
      const isNew = fold.seq < 0
      const draft = planPut(before, request, this.#differ, {
        ...place,
        seq: fold.seq + 1,
        ...(isNew ? { begins: 'root' as const } : {}),
      })
      const index = isNew ? { index: { metadata: branchLabels(ns) } } : {}
      return [{ ...draft, ...index, kind: 'checkpoint', keyframe: isKeyframeDue(fold) }]
    })
    return appended
  }

  /** Begins a branch that continues none. */
  async #begin(threadId: string, request: PutRequest, place: Omit<PutPlace, 'seq'>): Promise<Log> {
    const { ns, checkpoint } = request
    const base = await this.#branches.logs.fresh(threadId, baseBranch(ns))
    if (place.orphan && headId(base.fold) === undefined && (await this.#append(base, request, place))) return base
    if (this.#onFork === 'refuse') throw this.#refusal(threadId, request, base)
    const branch = lineageBranch(ns, checkpoint.id)
    const log = await this.#branches.logs.fresh(threadId, branch)
    if ((await this.#append(log, request, place)) || (await this.#isStored(log, request))) return log
    throw new ConflictError(`Checkpoint ${checkpoint.id} was put before, and has successors.`, { threadId, ns })
  }

  /** The branch that this checkpoint begins is there already: it was put before, and is put again. */
  async #repeat(threadId: string, branch: string, request: PutRequest, error: unknown): Promise<Log> {
    const log = await this.#branches.logs.fresh(threadId, branch)
    if (headId(log.fold) === request.checkpoint.id && (await this.#append(log, request, {}))) return log
    if (await this.#isStored(log, request)) return log
    throw error
  }

  async #addWrites(log: Log, ns: string, id: string, writes: readonly StoredWrite[]): Promise<void> {
    if (writes.length === 0) return
    await log.update((fold) => {
      const ops = writesOps(id, ownWrites(stateOf(fold), id), writes)
      if (ops.length === 0) return undefined
      if (fold.seq >= 0) return [{ kind: 'writes', ops }]
      return [{ kind: 'writes', ops: [...ops, set('ns', ns)], index: { metadata: branchLabels(ns) } }]
    })
  }

  /** Writes that came before their checkpoint follow it to where it was put. */
  async #moveEarly(threadId: string, id: string, log: Log): Promise<void> {
    const key = `${threadId}\n${id}`
    const branches = this.#early.get(key) ?? []
    this.#early.delete(key)
    for (const branch of branches) {
      if (branch !== log.key.branch) await this.#move(await this.#branches.logs.get(threadId, branch), id, log)
    }
  }

  async #move(from: Log, id: string, to: Log): Promise<void> {
    for (let isMoved = false; !isMoved; ) {
      const writes = ownWrites(stateOf(from.fold), id)
      if (writes.length === 0) return
      await this.#addWrites(to, stateOf(to.fold).ns ?? '', id, writes)
      await from.update((fold) => {
        const left = ownWrites(stateOf(fold), id)
        // Others may have come since these were read: they are moved before any are removed.
        isMoved = sameNode(left as unknown as Value, writes as unknown as Value)
        return isMoved ? [{ kind: 'writes', ops: [remove(['writes', id])] }] : undefined
      })
    }
  }

  #learn(fold: Fold, { checkpoint, newVersions }: PutRequest): void {
    const { checkpoint: head, channels = {} } = stateOf(fold)
    // Another checkpoint may have followed in the meantime; its lists are not these.
    if (head?.id !== checkpoint.id) return
    const values = (checkpoint.channel_values ?? {}) as Record<string, unknown>
    for (const channel of Object.keys(values)) {
      const isNew = newVersions === undefined || Object.hasOwn(newVersions, channel)
      const node = Object.hasOwn(channels, channel) ? channels[channel] : undefined
      if (isNew || !this.#live.isMadeOf(node, values[channel])) this.#live.learn(node, values[channel])
    }
  }

  #refusal(threadId: string, { ns, parent, checkpoint }: PutRequest, log: Log): ConflictError {
    const head = headId(log.fold)
    return new ConflictError(
      `Checkpoint ${checkpoint.id} of thread "${threadId}" has the parent ${parent ?? 'none'}, but ${head} follows it already.`,
      { threadId, ns, parent, checkpoint: checkpoint.id, head },
      "Load the newest checkpoint and continue from there, or let the saver branch with onFork: 'branch'.",
    )
  }
}

/** Notes something, and drops the oldest note when there are too many. */
function remember<Noted>(notes: Map<string, Noted>, key: string, noted: Noted): void {
  notes.set(key, noted)
  for (const oldest of notes.keys()) {
    if (notes.size <= MAX_REMEMBERED) break
    notes.delete(oldest)
  }
}

/**
 * LangGraph loads the newest checkpoint with every call, and each step is many small entries: the whole state is
 * written again once what follows it is a third as long, so that loading reads little else.
 */
function isKeyframeDue({ weight }: Fold): boolean {
  return weight.deltaBytes > Math.max(SMALLEST_DISTANCE, weight.keyframeBytes / 3)
}
