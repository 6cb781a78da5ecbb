import { batch, signal } from '@preact/signals'
import type { ThreadInfo } from '../src/client/index.js'
import { client, explain } from './api.js'

export interface ListFilters {
  readonly status: readonly string[]
  readonly program: string
  readonly tag: string
  readonly metadata: string
  readonly since: string
}

const PAGE = 500
/** As many as are kept in the page: what lies further back is found by a filter. */
const MOST = 20_000
const RENEW = 100

/** Threads as the index has them, page after page, and kept up to date at their newer end. */
export class ThreadList {
  readonly rows = signal<readonly ThreadInfo[]>([])
  readonly error = signal<string | undefined>(undefined)
  readonly loading = signal(true)
  readonly more = signal(false)
  #known = new Map<string, ThreadInfo>()
  #cursor: string | undefined
  #filters: ListFilters | undefined
  #turn = 0

  /** Starts over with other filters. */
  async begin(filters: ListFilters): Promise<void> {
    this.#filters = filters
    this.#turn++
    this.#known = new Map()
    this.#cursor = undefined
    this.loading.value = true
    await this.#take(undefined)
  }

  async loadMore(): Promise<void> {
    if (this.loading.peek() || this.#cursor === undefined || this.#known.size >= MOST) return
    this.loading.value = true
    await this.#take(this.#cursor)
  }

  /** Looks for what has changed since. */
  async renew(): Promise<void> {
    if (this.#filters === undefined || this.loading.peek()) return
    const own = this.#turn
    try {
      // Of every status: a row has to hear that it left the one that is shown.
      const { threads, cursor } = await client
        .peek()
        .threads({ ...query({ ...this.#filters, status: [] }), limit: RENEW })
      if (own !== this.#turn) return
      const isNews = threads.some((row) => isNewer(row, this.#known.get(keyOf(row))))
      const gone = this.#goneSince(threads, cursor !== undefined)
      for (const key of gone) this.#known.delete(key)
      if (isNews || gone.length > 0) this.#add(threads)
      this.error.value = undefined
    } catch (error) {
      if (own === this.#turn) this.error.value = explain(error)
    }
  }

  async #take(cursor: string | undefined): Promise<void> {
    const own = this.#turn
    try {
      const filters = this.#filters as ListFilters
      const page = await client
        .peek()
        .threads({ ...query(filters), limit: PAGE, ...(cursor === undefined ? {} : { cursor }) })
      if (own !== this.#turn) return
      this.#cursor = page.cursor
      batch(() => {
        this.#add(page.threads)
        this.more.value = page.cursor !== undefined
        this.error.value = undefined
        this.loading.value = false
      })
    } catch (error) {
      if (own !== this.#turn) return
      this.error.value = explain(error)
      this.loading.value = false
    }
  }

  /** Rows that would be among these by their time and are not: they were erased. */
  #goneSince(threads: readonly ThreadInfo[], more: boolean): readonly string[] {
    const there = new Set(threads.map(keyOf))
    const oldest = more ? (threads.at(-1)?.updatedAt ?? '') : ''
    return [...this.#known].flatMap(([key, row]) => (row.updatedAt > oldest && !there.has(key) ? [key] : []))
  }

  #add(threads: readonly ThreadInfo[]): void {
    const wanted = this.#filters?.status ?? []
    for (const thread of threads) {
      const isWanted = wanted.length === 0 || wanted.includes(thread.status)
      if (isWanted) this.#known.set(keyOf(thread), thread)
      else this.#known.delete(keyOf(thread))
    }
    const all = [...this.#known.values()]
    this.rows.value = all.sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : a.updatedAt > b.updatedAt ? -1 : 0))
  }
}

function keyOf({ id, branch }: ThreadInfo): string {
  return `${id} ${branch}`
}

function isNewer(row: ThreadInfo, known: ThreadInfo | undefined): boolean {
  const { checkpoint, status, claimedBy } = row
  return known?.checkpoint !== checkpoint || known.status !== status || known.claimedBy !== claimedBy
}

const SINCE: Readonly<Record<string, number>> = { hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000 }

function query({ status, program, tag, metadata, since }: ListFilters) {
  const labels = [
    ...(program === '' ? [] : [`holdfast.program=${program}`]),
    ...(/.=./.test(metadata) ? [metadata] : []),
  ]
  const ms = SINCE[since]
  return {
    order: 'updated' as const,
    ...(status.length === 0 ? {} : { status }),
    ...(tag === '' ? {} : { tag: [tag] }),
    ...(labels.length === 0 ? {} : { metadata: labels }),
    ...(ms === undefined ? {} : { updatedAfter: new Date(Date.now() - ms).toISOString() }),
  }
}
