import { CorruptError, isHoldfastError, NotFoundError } from '../../core/errors.js'
import { nameLog } from '../../core/log-name.js'
import { checkLoss, erasedSince, type Standing, standingOf } from './catch-up.js'
import { corruptLog, damageError, lastGoodBefore, prunedError, readableEnd, unlessCorrupt } from './damage.js'
import type { Driver, Head, LogKey, RecentTail, StoredEntry, Tail } from '../contract.js'
import type { EntryCodec } from '../entry/entry-codec.js'
import type { OpenedEntry, OpenedEntries, OpeningPoint } from '../entry/entry-opening.js'
import { emptyFold, type Fold } from '../entry/fold.js'
import type { KeySource } from '../keys/keys.js'
import { pinPlainPast } from '../keys/plain-past.js'

const PAGE = 256

/** Where a log ends, and its head if that was read. */
export interface NewestAfter {
  readonly fold: Fold
  readonly head: Head | undefined
}

/** Reads folds of one log from its driver. Whatever it returns has been verified. */
export class LogReader {
  /** Up to where the newest head that was read said that writes to the store are applied. */
  applied = -1
  /** What the newest head that was read said of losses. */
  standing: Standing = {}
  readonly #driver: Driver
  readonly #log: LogKey
  readonly #codec: EntryCodec
  readonly #keys: KeySource | undefined
  #pinned: ReadonlyMap<number, string> | undefined

  constructor(driver: Driver, log: LogKey, codec: EntryCodec, keys?: KeySource) {
    this.#driver = driver
    this.#log = log
    this.#codec = codec
    this.#keys = keys
  }

  /** The newest fold, or undefined if the log does not exist. */
  async newest(): Promise<Fold | undefined> {
    const tail = await this.#newestTail()
    if (tail === undefined) return undefined
    const { head } = tail
    this.applied = head.applied ?? -1
    this.standing = standingOf(head)
    const fold = await this.#foldTail(tail, head.seq)
    if (fold.hash !== head.hash || fold.epoch !== head.epoch) {
      throw corruptLog(this.#log, `The head of ${nameLog(this.#log)} does not match its last entry.`, fold, {
        seq: fold.seq,
      })
    }
    return fold
  }

  /**
   * The newest fold, reading on from a known one; undefined if that one no longer leads to it in one page.
   * @param isStanding a head of this log was read before: none is read, unless the known entry is gone
   */
  async newestAfter(known: Fold, isStanding: boolean): Promise<NewestAfter | undefined> {
    try {
      return await this.#newestAfter(known, isStanding)
    } catch (error) {
      if (await erasedSince(this.#driver, this.#log, known, error)) return undefined
      throw error
    }
  }

  async #newestAfter(known: Fold, isStanding: boolean): Promise<NewestAfter | undefined> {
    // Of a log of which a head was read before, another would say nothing new: the hash of the known entry covers the
    // incarnation, and an append that is built on an outdated head conflicts.
    const found = await Promise.all([
      isStanding ? undefined : this.#driver.head(this.#log),
      this.#driver.read(this.#log, known.seq, PAGE),
    ]).catch(unlessCorrupt)
    // Damage is reported by whoever opens the log, with the newest entry that still verifies.
    if (found === undefined) return undefined
    const [head, [same, ...rest]] = found
    if (same?.seq !== known.seq || same.hash !== known.hash) return this.#checkGone(known, same)
    if (!isStanding) {
      if (head?.incarnation !== known.incarnation) return undefined
      checkLoss(this.#log, known, head, same)
    }
    const run = await this.#verify({ before: known, fromKeyframe: false, onlyLast: true }, rest)
    const fold = rest.length === 0 ? known : run.last
    // After a full page there may be more.
    if (run.failure || fold === undefined || rest.length + 1 === PAGE) return undefined
    return { fold, head }
  }

  /** The entry that is known is not there: the log was erased or pruned, unless the backend lost it. */
  async #checkGone(known: Fold, same: StoredEntry | undefined): Promise<undefined> {
    const head = await this.#driver.head(this.#log)
    if (head?.incarnation === known.incarnation) checkLoss(this.#log, known, head, same)
  }

  /**
   * What a cache has of the log, which may be older than the log is: reading on from a known fold, if there is one.
   * Undefined if it has nothing that verifies, or less than is known.
   */
  async recent(known?: Fold): Promise<Fold | undefined> {
    const { recent, forgetRecent, capabilities } = this.#driver
    if (recent === undefined || !capabilities.storeAtomic) return undefined
    const found = await recent.call(this.#driver, this.#log, known?.seq)
    if (found === undefined) return undefined
    // Whatever is wrong with it is wrong with the cache, until the log itself says so.
    const fold = await this.#foldRecent(found, known).catch(() => undefined)
    if (fold === undefined) forgetRecent?.call(this.#driver, this.#log)
    return fold
  }

  async #foldRecent({ incarnation, entries }: RecentTail, known?: Fold): Promise<Fold | undefined> {
    const [first, ...rest] = entries
    if (first === undefined || (known && incarnation !== known.incarnation)) return undefined
    if (known && first.seq === known.seq) {
      if (first.hash !== known.hash) return undefined
      if (rest.length === 0) return known
      const { last, failure } = await this.#verify({ before: known, fromKeyframe: false, onlyLast: true }, rest)
      return failure ? undefined : last
    }
    const start = { before: emptyFold(incarnation), fromKeyframe: true, onlyLast: true }
    const { last, failure } = await this.#verify(start, entries)
    return failure || (known && last && last.seq < known.seq) ? undefined : last
  }

  /** The fold at an older entry. */
  async at(seq: number): Promise<Fold> {
    const tail = await this.#driver.tail(this.#log, seq)
    if (tail === undefined)
      throw new NotFoundError(`There is no ${nameLog(this.#log)}.`, 'Check the id.', { log: this.#log })
    const { head } = tail
    if (!Number.isSafeInteger(seq) || seq > head.seq || seq < 0) {
      throw new NotFoundError(
        `${nameLog(this.#log)} has no entry ${seq}; its newest is ${head.seq}.`,
        'Use a checkpoint that history lists.',
        { seq, newest: head.seq },
      )
    }
    if (seq < head.base.seq) throw prunedError(this.#log, seq, head.base.seq)
    return this.#foldTail(tail, seq)
  }

  /** The folds after `known`, up to `seq` at least: what others appended. */
  async since(known: Fold, seq: number): Promise<Fold> {
    let fold = known
    while (fold.seq < seq) {
      const page = await this.#page(fold)
      if (page.length === 0)
        throw corruptLog(this.#log, `Entry ${fold.seq + 1} of ${nameLog(this.#log)} is missing.`, fold)
      // Another process pruned after our head was read: what is in between is gone for good, and its keyframe holds the
      // sum.
      if (page[0]?.seq !== fold.seq + 1 && (await this.#isPruned(fold.seq + 1))) return (await this.newest()) ?? fold
      const run = await this.#verify({ before: fold, fromKeyframe: false, onlyLast: true }, page)
      fold = run.last ?? fold
      // So much was appended that reading it all again from the newest keyframe is less.
      const isMuch = run.failure?.data['overBudget'] === true
      // Or they were cut right behind what is known: the next entry is then a keyframe in its own place.
      if (run.failure && (isMuch || (await this.#isPruned(fold.seq)))) return (await this.newest()) ?? fold
      if (run.failure) throw damageError(this.#log, run.failure, fold)
    }
    return fold
  }

  /**
   * Verified entries from `from` on, with the fold after each; `from` may be any kept entry. Ends with an error if
   * entries are pruned before they were read: what they said is gone, and must not be skipped silently.
   */
  async *entries(from: number, to: number, before?: Fold): AsyncGenerator<OpenedEntry> {
    let run = before && (await this.#openAfter(before, from))
    let known: Pick<Fold, 'incarnation' | 'at' | 'seq'> | undefined = before
    if (run === undefined) {
      const tail = await this.#driver.tail(this.#log, from)
      if (tail === undefined) return
      known = { incarnation: tail.head.incarnation, at: tail.head.index.createdAt, seq: tail.head.seq }
      if (from < tail.head.base.seq && tail.entries.length === 0) throw prunedError(this.#log, from, tail.head.base.seq)
      run = await this.#open(tail, false)
    }
    let last: Fold | undefined
    let cutAt = -1
    for (;;) {
      for (const entry of run.entries) {
        last = entry.fold
        if (entry.header.seq > to) return
        if (entry.header.seq >= from) yield entry
      }
      const isOnlyMuch = run.failure?.data['overBudget'] === true && run.entries.length > 0
      if (run.failure && !isOnlyMuch) {
        const failure = damageError(this.#log, run.failure, last)
        const next = Math.max(from, (last?.seq ?? -1) + 1)
        const rest = next === cutAt ? undefined : await this.#openAfterCut(next)
        if (rest !== undefined) {
          cutAt = next
          run = rest
          continue
        }
        throw (known && (await erasedSince(this.#driver, this.#log, known, failure))) ?? failure
      }
      if (last === undefined || last.seq >= to) return
      const page = await this.#pageFollowing(last)
      if (page.length === 0) return
      const oldest = page[0]?.seq === last.seq + 1 ? undefined : await this.#oldestKept()
      if (oldest !== undefined && oldest > last.seq + 1) throw prunedError(this.#log, last.seq + 1, oldest)
      run = await this.#verify({ before: last, fromKeyframe: false }, page)
    }
  }

  /**
   * The entries after a fold. Where the driver itself notices damage among them, those before it; none before it, and
   * the damage is reported.
   */
  async #page(after: Fold): Promise<readonly StoredEntry[]> {
    const first = after.seq + 1
    const whole = await this.#driver.read(this.#log, first, PAGE).catch(unlessCorrupt)
    if (whole !== undefined) return whole
    const good: StoredEntry[] = []
    for (let seq = first; good.length < PAGE; seq++) {
      const [entry] = await this.#driver.read(this.#log, seq, 1).catch((error: unknown) => {
        unlessCorrupt(error)
        if (good.length === 0) throw damageError(this.#log, error as CorruptError, after)
        return []
      })
      if (entry?.seq !== seq) break
      good.push(entry)
    }
    return good
  }

  /**
   * As `#page`. Where that begins with a keyframe, it may stand in for an entry whose past lies in an archive, and says
   * nothing of what lies before it: read together with what is known, the entry itself comes from there.
   */
  async #pageFollowing(after: Fold): Promise<readonly StoredEntry[]> {
    const page = await this.#page(after)
    const [first] = page
    if (first === undefined || first.seq !== after.seq + 1 || first.keyframe !== first.seq) return page
    const [same, ...rest] = await this.#driver.read(this.#log, after.seq, PAGE)
    return same?.seq === after.seq && rest.length > 0 ? rest : page
  }

  /** Verified entries from the newest keyframe at or before `upTo` up to it, in one round trip; none if it was pruned. */
  async tail(upTo: number): Promise<readonly OpenedEntry[]> {
    const tail = await this.#driver.tail(this.#log, upTo)
    if (tail === undefined) return []
    const { entries, last, failure } = await this.#open(tail, false)
    if (failure) throw damageError(this.#log, failure, last)
    return entries
  }

  /** Undefined where the fold is not the one right before `from`, or what follows it is no longer there. */
  async #openAfter(before: Fold, from: number): Promise<OpenedEntries | undefined> {
    if (before.seq < 0 || before.seq !== from - 1) return undefined
    const page = await this.#driver.read(this.#log, from, PAGE)
    if (page[0]?.seq !== from) return undefined
    return this.#verify({ before, fromKeyframe: false }, page)
  }

  /**
   * Where others cut the log while it was read, what is kept of it from an entry on, which may be a keyframe in its own
   * place now. Undefined where nothing was cut there: what was read is damaged then.
   */
  async #openAfterCut(seq: number): Promise<OpenedEntries | undefined> {
    const oldest = (await this.#oldestKept()) ?? 0
    if (oldest > seq) throw prunedError(this.#log, seq, oldest)
    const tail = oldest === seq ? await this.#driver.tail(this.#log, seq) : undefined
    return tail && this.#open(tail, false)
  }

  async #isPruned(seq: number): Promise<boolean> {
    return ((await this.#oldestKept()) ?? 0) > seq
  }

  async #oldestKept(): Promise<number | undefined> {
    return (await this.#driver.head(this.#log).catch(unlessCorrupt))?.base.seq
  }

  /** Plain entries are authentic where one with a key follows them, which may lie beyond what was read. */
  async #verify(start: OpeningPoint, entries: readonly StoredEntry[]): Promise<OpenedEntries> {
    const pinned = this.#pinned
    const run = await this.#codec.open(pinned ? { ...start, pinned } : start, entries)
    const { plain, seq } = run.failure?.data ?? {}
    if (plain !== true || typeof seq !== 'number' || !this.#keys) return run
    const { incarnation, key } = start.before
    if (key !== null) return run
    const found = await pinPlainPast(this.#driver, this.#log, this.#keys, incarnation, seq)
    if (found === undefined) return run
    this.#pinned = found
    return this.#codec.open({ ...start, pinned: found }, entries)
  }

  #open({ head, entries }: Tail, onlyLast: boolean): Promise<OpenedEntries> {
    return this.#verify({ before: emptyFold(head.incarnation), fromKeyframe: true, onlyLast }, entries)
  }

  async #foldTail(tail: Tail, seq: number): Promise<Fold> {
    const { last, failure } = await this.#open(tail, true)
    if (failure === undefined && last?.seq === seq) return last
    const lastGood = last ?? (await this.#lastGoodBefore(Math.min(tail.entries[0]?.seq ?? seq, seq)))
    const error =
      failure ?? new CorruptError(`Entry ${(last?.seq ?? seq - 1) + 1} of ${nameLog(this.#log)} is missing.`, {})
    throw damageError(this.#log, error, lastGood)
  }

  /** Damage that the driver itself notices is reported with the newest entry that still verifies. */
  async #newestTail(): Promise<Tail | undefined> {
    try {
      return await this.#driver.tail(this.#log)
    } catch (damage) {
      if (!isHoldfastError(damage, 'corrupt')) throw damage
      const seq = await readableEnd(this.#driver, this.#log)
      const lastGood = seq === undefined ? undefined : await this.#lastGoodBefore(seq + 1)
      throw lastGood === undefined ? damage : damageError(this.#log, damage, lastGood)
    }
  }

  #lastGoodBefore(seq: number): Promise<Fold | undefined> {
    return lastGoodBefore(this.#driver, this.#log, seq, async (tail) => (await this.#open(tail, true)).last)
  }
}
