import type { Holdfast, ThreadSummary } from '../../../index.js'
import type { Log } from '../../../log/index.js'
import { ADAPTER, baseBranch, highestIdAt, isTimeOrdered, namespaceLabel, threadIdOf, threadName } from './names.js'
import { isGone, OpenLogs } from './open-logs.js'
import { stateOf } from './state.js'
import { findInBranch, type Found, walkBelow } from './walk.js'

/** A checkpoint, and the log that holds it. */
export interface Located extends Found {
  readonly threadId: string
  readonly log: Log
}

export interface Selection {
  readonly threadId?: string | undefined
  readonly ns?: string | undefined
  readonly before?: string | undefined
}

const PAGE = 100
/** An id is older than the entry that brings it; this much is allowed for clocks that were set back in between. */
const CLOCK_SLACK_MS = 60_000

/** The branches of LangGraph threads: one per namespace, and one more for each fork. */
export class Branches {
  readonly logs: OpenLogs
  readonly #hf: Holdfast
  /** The branch that this process last used for a namespace of a thread: where the next checkpoint most likely goes. */
  readonly #active = new Map<string, string>()
  readonly #limit: number

  constructor(hf: Holdfast, limit: number) {
    this.#hf = hf
    this.#limit = limit
    this.logs = new OpenLogs(hf, limit)
  }

  active(threadId: string, ns: string): string {
    return this.#active.get(`${threadId}\n${ns}`) ?? baseBranch(ns)
  }

  use(threadId: string, ns: string, branch: string): void {
    const key = `${threadId}\n${ns}`
    this.#active.delete(key)
    this.#active.set(key, branch)
    for (const oldest of this.#active.keys()) {
      if (this.#active.size <= this.#limit) break
      this.#active.delete(oldest)
    }
  }

  forget(threadId: string): void {
    this.logs.forget(threadId)
    for (const key of this.#active.keys()) if (key.startsWith(`${threadId}\n`)) this.#active.delete(key)
  }

  /** The log that, as far as this process knows, ends with this checkpoint. */
  async endingWith(threadId: string, ns: string, id: string): Promise<Log | undefined> {
    const log = await this.logs.known(threadId, this.active(threadId, ns))
    return log && stateOf(log.fold).checkpoint?.id === id ? log : undefined
  }

  /**
   * A checkpoint by its id. Most are on the branch in use, which is asked first if it is open; the others are narrowed
   * down by when they were last written to.
   */
  async find(threadId: string, ns: string, id: string): Promise<Located | undefined> {
    const likely = [...new Set([this.active(threadId, ns), baseBranch(ns)])]
    const asked = new Set<string>()
    const look = async (log: Log): Promise<Located | undefined> => {
      asked.add(log.key.branch)
      const found = isOf(log, ns) ? await findInBranch(log, id) : undefined
      return found && { ...found, threadId, log }
    }
    for (const branch of likely) {
      if ((await this.logs.known(threadId, branch)) === undefined) continue
      const found = await look(await this.logs.fresh(threadId, branch))
      if (found) return found
    }
    const since = performance.now()
    for await (const page of this.#pages({ threadId, ns })) {
      const mayHold = page.filter(({ branch, updatedAt }) => !asked.has(branch) && mayHoldAbove({ updatedAt }, id))
      for (const { branch, checkpoint } of likelyFirst(mayHold, likely)) {
        const found = await look(await this.logs.endingAt(threadId, branch, checkpoint, since))
        if (found) return found
      }
      if (page.some(({ updatedAt }) => !mayHoldAbove({ updatedAt }, id))) return undefined
    }
    return undefined
  }

  /** The checkpoint with the highest id of a namespace. */
  async newest(threadId: string, ns: string): Promise<Located | undefined> {
    const first = await this.newestFirst({ threadId, ns }).next()
    return first.done ? undefined : first.value
  }

  /** Checkpoints by descending id, across branches, namespaces and threads, opening logs only as they are reached. */
  async *newestFirst({ threadId, ns, before }: Selection): AsyncGenerator<Located> {
    const since = performance.now()
    const summaries = this.#list({ threadId, ns })
    let waiting = await summaries.next()
    const cursors: { located: Located; rest: AsyncIterator<Found> }[] = []
    for (;;) {
      let best = highest(cursors)
      while (!waiting.done && (best === undefined || mayHoldAbove(waiting.value, best.located.id))) {
        const cursor = await this.#cursor(waiting.value, { ns, before }, since)
        if (cursor) cursors.push(cursor)
        waiting = await summaries.next()
        best = highest(cursors)
      }
      if (best === undefined) return
      yield best.located
      const next = await best.rest.next()
      if (next.done) cursors.splice(cursors.indexOf(best), 1)
      else best.located = { ...best.located, ...(next.value as Found) }
    }
  }

  async #cursor({ thread, branch, checkpoint }: ThreadSummary, { ns, before }: Selection, since: number) {
    const threadId = threadIdOf(thread)
    if (threadId === undefined) return undefined
    const log = await this.logs.endingAt(threadId, branch, checkpoint, since)
    if (!isOf(log, ns)) return undefined
    const rest =
      stateOf(log.fold).ordered === false
        ? sorted(walkBelow(log, before))
        : walkBelow(log, before)[Symbol.asyncIterator]()
    const first = await rest.next()
    return first.done ? undefined : { located: { ...first.value, threadId, log }, rest }
  }

  /** The branches of the saver, most recently written first. */
  async *#list(selection: Selection): AsyncGenerator<ThreadSummary, undefined> {
    for await (const page of this.#pages(selection)) yield* page
    return undefined
  }

  async *#pages({ threadId, ns }: Selection): AsyncGenerator<readonly ThreadSummary[]> {
    const labels = { adapter: ADAPTER, ...(ns === undefined ? {} : { ns: namespaceLabel(ns) }) }
    let cursor: string | undefined
    do {
      const page = await this.#hf.threads({
        ...(threadId === undefined ? {} : { thread: threadName(threadId) }),
        metadata: labels,
        order: 'updated',
        direction: 'desc',
        limit: PAGE,
        ...(cursor === undefined ? {} : { cursor }),
      })
      yield page.threads
      cursor = page.cursor
    } while (cursor !== undefined)
  }
}

/** Repeats something once, if the thread was deleted and started over since this process last looked. */
export async function againIfGone<T>(branches: Branches, threadId: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action()
  } catch (error) {
    if (!isGone(error)) throw error
    branches.forget(threadId)
    return action()
  }
}

function highest<Cursor extends { located: Located }>(cursors: readonly Cursor[]): Cursor | undefined {
  let best: Cursor | undefined
  for (const cursor of cursors) if (best === undefined || cursor.located.id > best.located.id) best = cursor
  return best
}

// The label of a long namespace is short, and might be the name of another.
function isOf({ fold }: Log, ns: string | undefined): boolean {
  return ns === undefined || stateOf(fold).ns === ns
}

/** The same branches, with those first where the checkpoint most likely is. */
function likelyFirst(page: readonly ThreadSummary[], likely: readonly string[]): readonly ThreadSummary[] {
  const isLikely = ({ branch }: ThreadSummary) => likely.includes(branch)
  return [...page.filter(isLikely), ...page.filter((summary) => !isLikely(summary))]
}

function mayHoldAbove({ updatedAt }: Pick<ThreadSummary, 'updatedAt'>, id: string): boolean {
  return !isTimeOrdered(id) || highestIdAt(updatedAt.getTime() + CLOCK_SLACK_MS) >= id
}

async function* sorted(walk: AsyncIterable<Found>): AsyncGenerator<Found> {
  const all: Found[] = []
  for await (const found of walk) all.push(found)
  yield* all.sort((a, b) => (a.id < b.id ? 1 : -1))
}
