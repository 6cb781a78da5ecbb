import { ConflictError, DataLossError, HeldError, InvalidOptionError, NotFoundError } from '../core/errors.js'
import type { BranchId } from '../core/ids.js'
import { nameLog } from '../core/log-name.js'
import { decodeHeader, type EntryHeader } from '../codec/header.js'
import { sendAppend } from './append-sender.js'
import { BlobShelf } from './blob-shelf.js'
import { Claim, type ClaimOptions, checkClaimOptions } from './claim.js'
import { formatCheckpointId, parseCheckpointId } from './checkpoint-id.js'
import type { Append, Head, LogKey } from './contract.js'
import type { Draft } from './draft.js'
import { EntryCodec } from './entry-codec.js'
import type { OpenedEntry } from './entry-opening.js'
import { emptyFold, type Fold } from './fold.js'
import type { LogEnvironment } from './log-environment.js'
import { LogReader } from './log-reader.js'
import { type Decide, planAppend, type Planned, type PendingUpdate, type Updated, type Writer } from './update-plan.js'

/** After this many conflicts in a row a writer gives up: something else writes without pause. */
const MAX_CONFLICTS = 1000

export interface HistoryEntry {
  /** The checkpoint id. */
  readonly id: string
  readonly hash: string
  readonly header: EntryHeader
  /** Stored bytes of the body. */
  readonly storedBytes: number
}

/**
 * One branch of a thread. Holds the newest fold it knows; all writes go through `update`, which decides again
 * whenever another writer was faster.
 */
export class Log {
  readonly key: LogKey
  readonly #environment: LogEnvironment
  readonly #codec: EntryCodec
  readonly #reader: LogReader
  #fold: Fold
  #mustRefresh = false
  #queue: PendingUpdate[] = []
  #draining = false

  private constructor(environment: LogEnvironment, key: LogKey) {
    this.key = key
    this.#environment = environment
    const { driver, limits, blobThreshold, keys } = environment
    const shelf = new BlobShelf(driver, key.tenant, { threshold: blobThreshold, maxBytes: limits.maxBytes, keys })
    this.#codec = new EntryCodec({ log: key, limits, shelf, keys })
    this.#reader = new LogReader(driver, key, this.#codec)
    this.#fold = emptyFold(environment.randomId())
  }

  /** Reads and verifies the log. One that does not exist opens empty and is created by its first update. */
  static async open(environment: LogEnvironment, key: LogKey): Promise<Log> {
    const log = new Log(environment, key)
    log.#fold = (await log.#reader.newest()) ?? log.#fold
    return log
  }

  /** A handle that has read nothing yet, for walking entries that may be damaged. */
  static unread(environment: LogEnvironment, key: LogKey): Log {
    return new Log(environment, key)
  }

  /** The newest state this handle has seen or written. */
  get fold(): Fold {
    return this.#fold
  }

  get exists(): boolean {
    return this.#fold.seq >= 0
  }

  /** The checkpoint id of the newest entry this handle knows. */
  get checkpoint(): string | undefined {
    return this.exists ? formatCheckpointId(this.key.branch, this.#fold.seq, this.#fold.hash) : undefined
  }

  /**
   * Appends what `decide` makes of the newest state, if the log still ends there; otherwise reads on and decides
   * again. Returning nothing appends nothing. Without a claim only inputs, answers, cancellations, signals and tags
   * may be appended to a log that is run by claims.
   */
  update(decide: Decide): Promise<Updated> {
    return this.#submit(decide, { kind: 'guest' })
  }

  /** Takes the log: raises its epoch, so that whoever held it before can't write any more. */
  async claim(options: ClaimOptions): Promise<Claim> {
    checkClaimOptions(options)
    const { owner, ms, force = false } = options
    const entry: Draft = { kind: 'claim', data: { owner } }
    const { fold } = await this.#submit(() => [entry], { kind: 'claim', owner, ms, force })
    return new Claim(this, fold.epoch, options, {
      update: (decide, release) => this.#submit(decide, { kind: 'owner', epoch: fold.epoch, ms, release }),
      renew: (forMs) => this.#environment.driver.renew(this.key, fold.epoch, forMs),
    })
  }

  /** Reads what others appended since. */
  async refresh(): Promise<Fold> {
    await this.#catchUp(await this.#environment.driver.head(this.key))
    return this.#fold
  }

  /** The state at any kept entry, by seq or checkpoint id. */
  async at(checkpoint: number | string): Promise<Fold> {
    if (typeof checkpoint === 'number') return this.#reader.at(checkpoint)
    const { branch, seq, hashStart } = parseCheckpointId(checkpoint)
    if (branch !== this.key.branch) {
      throw new NotFoundError(`Checkpoint ${checkpoint} is of branch "${branch}".`, 'Open that branch.', { checkpoint, branch })
    }
    const fold = await this.#reader.at(seq)
    if (!fold.hash.startsWith(hashStart)) {
      throw new NotFoundError(
        `Checkpoint ${checkpoint} is not of this past of ${nameLog(this.key)}: entry ${seq} is another one now.`,
        'Use a checkpoint that history lists.',
        { checkpoint },
      )
    }
    return fold
  }

  /** One page of entries without their bodies, newest first. */
  async history(options: { readonly before?: number; readonly limit: number }): Promise<readonly HistoryEntry[]> {
    if (!Number.isSafeInteger(options.limit) || options.limit < 1) {
      throw new InvalidOptionError('limit', 'is not a positive whole number', 'Pass how many entries a page should hold.')
    }
    const headers = await this.#environment.driver.headers(this.key, options)
    return headers.map(({ seq, hash, header, size }) => ({
      id: formatCheckpointId(this.key.branch, seq, hash),
      hash,
      header: decodeHeader(header),
      storedBytes: size,
    }))
  }

  /** Verified entries with their bodies and the fold after each, oldest first. */
  entries(from = 0, to: number = this.#fold.seq): AsyncGenerator<OpenedEntry> {
    return this.#reader.entries(from, to)
  }

  /** Names a checkpoint: the newest, or an older one by seq. */
  tag(name: string, seq?: number): Promise<Updated> {
    return this.update((fold) => [{ kind: 'tag', index: { tags: { [name]: seq ?? Math.max(fold.seq, 0) } } }])
  }

  untag(name: string): Promise<Updated> {
    return this.update((fold) => (Object.hasOwn(fold.index.tags, name) ? [{ kind: 'tag', index: { tags: { [name]: null } } }] : undefined))
  }

  /**
   * Starts another branch from any kept entry. It begins with a keyframe of that state, so what happens to this
   * branch later, its pruning included, does not concern it.
   */
  async fork(options: { readonly at?: number | string; readonly branch: BranchId; readonly draft?: Omit<Draft, 'kind'> }): Promise<Log> {
    const from = options.at === undefined ? await this.refresh() : await this.at(options.at)
    if (from.seq < 0) throw new NotFoundError(`There is no ${nameLog(this.key)} to fork.`, 'Write to it first.', { log: this.key })
    const fork = new Log(this.#environment, { ...this.key, branch: options.branch })
    const base = { branch: this.key.branch, incarnation: from.incarnation, seq: from.seq, hash: from.hash }
    await fork.#submit((fold) => {
      if (fold.seq >= 0) throw new ConflictError(`${nameLog(fork.key)} exists already.`, { log: fork.key })
      return [{ ...options.draft, kind: 'fork' }]
    }, { kind: 'fork', base, state: from.state, index: { ...from.index, tags: {} } })
    return fork
  }

  #submit(decide: Decide, writer: Writer): Promise<Updated> {
    return new Promise((resolve, reject) => {
      this.#queue.push({ decide, writer, appendId: this.#environment.randomId(), resolve, reject })
      if (!this.#draining) void this.#drain()
    })
  }

  // Updates that wait while an append is under way are decided one after another and travel as one append.
  async #drain(): Promise<void> {
    this.#draining = true
    try {
      while (this.#queue.length > 0) {
        const group = this.#nextGroup()
        await this.#commitGroup(group).catch((error: unknown) => {
          for (const { reject } of group) reject(error)
        })
      }
    } finally {
      this.#draining = false
    }
  }

  #nextGroup(): PendingUpdate[] {
    const first = this.#queue.findIndex(({ writer }) => travelsAlone(writer))
    if (first === -1) return this.#queue.splice(0)
    return this.#queue.splice(0, Math.max(first, 1))
  }

  async #commitGroup(group: readonly PendingUpdate[]): Promise<void> {
    let members = group
    for (let conflicts = 0; conflicts <= MAX_CONFLICTS; conflicts++) {
      if (this.#mustRefresh) await this.refresh()
      const plan = await planAppend(this.key, this.#codec, this.#environment, this.#fold, members)
      members = plan.members.map(({ update }) => update)
      if (plan.append === undefined) return settle(plan)
      const result = await this.#send(plan.append)
      if (result.status === 'appended') {
        this.#fold = plan.fold
        return settle(plan)
      }
      if (result.status === 'held') {
        const { owner, remainingMs } = result.head.lease ?? { owner: '', remainingMs: 0 }
        throw new HeldError({ log: nameLog(this.key), owner, remainingMs })
      }
      if (result.head === undefined && plan.append.requires) {
        throw new NotFoundError('The branch to fork from is gone.', 'Fork a branch that exists.', { log: this.key, from: plan.append.requires })
      }
      await this.#catchUp(result.head)
      // Writers that keep colliding step apart; the first collisions are not worth waiting for.
      if (conflicts > 2) await this.#environment.clock.sleep(Math.random() * Math.min(conflicts, 20))
    }
    throw new ConflictError(`${nameLog(this.key)} was changed by others ${MAX_CONFLICTS} times in a row.`, { log: this.key })
  }

  async #send(append: Append) {
    try {
      return await sendAppend(this.#environment, append)
    } catch (error) {
      // It may have landed after all: the next update looks before it decides.
      this.#mustRefresh = true
      throw error
    }
  }

  async #catchUp(head: Head | undefined): Promise<void> {
    const known = this.#fold
    if (known.seq < 0) {
      this.#fold = (await this.#reader.newest()) ?? emptyFold(this.#environment.randomId())
    } else if (head === undefined || head.incarnation !== known.incarnation) {
      throw await this.#goneError(head)
    } else {
      if (head.seq < known.seq || (head.seq === known.seq && head.hash !== known.hash)) throw this.#lossError(head)
      if (head.seq > known.seq) this.#fold = await this.#readOn(known, head)
    }
    this.#mustRefresh = false
  }

  async #readOn(known: Fold, head: Head): Promise<Fold> {
    if (head.base.seq > known.seq) return (await this.#reader.newest()) ?? known
    // What we know must still be there: a backend that came back older and was written to since holds another past.
    const [same] = await this.#environment.driver.read(this.key, known.seq, 1)
    if (same?.seq === known.seq && same.hash !== known.hash) throw this.#lossError(head)
    return this.#reader.since(known, head.seq)
  }

  async #goneError(head: Head | undefined): Promise<Error> {
    if (head !== undefined) {
      return new ConflictError(`${nameLog(this.key)} was erased and created again.`, { log: this.key, incarnation: head.incarnation })
    }
    const tombstone = await this.#environment.driver.tombstone(this.key.tenant, this.key.thread)
    if (tombstone) {
      return new NotFoundError(`${nameLog(this.key)} was erased (${tombstone.reason}).`, 'Open the thread again to start anew.', {
        log: this.key,
        tombstone,
      })
    }
    return new DataLossError(`${nameLog(this.key)} is gone from the backend, though it was acknowledged.`, {
      log: this.key,
      acknowledged: this.#fold.seq,
    })
  }

  #lossError(head: Head): DataLossError {
    return new DataLossError(
      `The backend holds an older or another past of ${nameLog(this.key)}: entry ${this.#fold.seq} was acknowledged, ` +
        `and it now ends at ${head.seq} without it.`,
      { log: this.key, acknowledged: this.#fold.seq, found: head.seq },
    )
  }
}

function settle({ members, fold }: Planned): void {
  for (const { update, entries, after } of members) update.resolve({ entries, fold: after ?? fold })
}

/** Claims, releases and forks change more than entries, so they share an append with nobody. */
function travelsAlone(writer: Writer): boolean {
  return writer.kind === 'claim' || writer.kind === 'fork' || (writer.kind === 'owner' && writer.release)
}
