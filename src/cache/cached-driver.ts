import type { Append, Driver, EraseRequest, LogKey } from '../log/contract.js'
import { overlay } from '../log/overlay.js'
import type { LogLife, NewTail, TailCache } from './tail-cache.js'

/** This many logs that the cache lacks are remembered, to be put there when they are read or at rest. */
const MOST_MISSED = 10_000
/** So many of them are read for it at a time. */
const MOST_FILLING = 2
const PAGE = 1000

/**
 * A driver with a cache of the ends of its logs in front. Everything is written and compared by the driver alone; what
 * it acknowledged is sent to the cache afterwards. Only `recent` reads from the cache, and only for callers whose next
 * append compares: a cache that is stale, empty or wrong costs them a second look, and nobody gets a wrong answer.
 */
export function withCache(driver: Driver, cache: TailCache): Driver {
  const missed = new Set<string>()
  /** Too large, or the cache is down: not read for it again until some of it was kept. */
  const refused = new Set<string>()
  let filling = 0

  function miss(name: string): void {
    if (missed.size >= MOST_MISSED) missed.clear()
    missed.add(name)
  }

  async function put(log: LogKey, tail: NewTail): Promise<void> {
    const name = nameOf(log)
    if (!(await cache.put(log, tail))) miss(name)
    else refused.delete(name)
  }

  async function fill(log: LogKey): Promise<void> {
    const found = await driver.tail(log).catch(() => undefined)
    if (found === undefined || found.entries.length === 0) return
    const isKept = await cache.put(log, { incarnation: found.head.incarnation, after: null, entries: found.entries })
    if (isKept) return
    if (refused.size >= MOST_MISSED) refused.clear()
    refused.add(nameOf(log))
  }

  function keep({ log, expect, incarnation, entries, copied }: Append): void {
    // Copying is no use: what is copied now need not be run soon.
    if (copied) return cache.forget(log)
    const keyframe = entries.findLastIndex(({ seq, keyframe }) => seq === keyframe)
    if (keyframe >= 0) void put(log, { incarnation, after: null, entries: entries.slice(keyframe) })
    else if (expect) void put(log, { incarnation, after: { seq: expect.seq, hash: expect.hash }, entries })
  }

  async function livesOf({ tenant, thread, branch, expect }: EraseRequest): Promise<readonly LogLife[]> {
    if (expect) return expect.map(({ branch, incarnation }) => ({ log: { tenant, thread, branch }, incarnation }))
    const lives: LogLife[] = []
    for (let cursor: string | undefined; ; ) {
      const query = { tenant, thread, limit: PAGE, ...(branch === undefined ? {} : { branch }) }
      const page = await driver.heads(cursor === undefined ? query : { ...query, cursor })
      lives.push(...page.heads)
      cursor = page.cursor
      if (cursor === undefined) return lives
    }
  }

  const { survives } = driver
  const overrides: Partial<Driver> = {
    survives: { ...survives, settings: { ...survives.settings, cache: cache.describe() } },

    async append(batch) {
      const results = await driver.append(batch)
      for (const [i, append] of batch.entries()) if (results[i]?.status === 'appended') keep(append)
      return results
    },

    async recent(log, from) {
      const found = await cache.get(log, from)
      const name = nameOf(log)
      if (found === undefined) miss(name)
      else missed.delete(name)
      return found
    },

    forgetRecent(log, isOnlyBehind = false) {
      miss(nameOf(log))
      if (!isOnlyBehind) cache.forget(log)
    },

    keepRecent(log) {
      const name = nameOf(log)
      if (filling >= MOST_FILLING || refused.has(name) || !missed.delete(name)) return
      filling++
      void fill(log).finally(() => filling--)
    },

    async tail(log, upTo) {
      const found = await driver.tail(log, upTo)
      if (upTo !== undefined || !missed.delete(nameOf(log)) || found === undefined) return found
      const { head, entries } = found
      if (entries.length > 0) void cache.put(log, { incarnation: head.incarnation, after: null, entries })
      return found
    },

    async prune(log, incarnation, seq, standIn) {
      const result = await driver.prune(log, incarnation, seq, standIn)
      cache.forget(log)
      return result
    },

    // The cache first: erased there and not yet in the store, it is read from the store a moment longer. The other way
    // around, a process that dies in between would leave it in the cache.
    async erase(request) {
      const lives = await livesOf(request)
      await cache.bar(lives)
      const result = await driver.erase(request)
      if (result === 'conflict') cache.unbar(lives)
      return result
    },

    async scrub() {
      const [own, cached] = await Promise.all([driver.scrub?.(), cache.scrub()])
      if (own === undefined) return cached
      return { complete: own.complete && cached.complete, note: `${own.note} ${cached.note}` }
    },

    async close() {
      await Promise.all([driver.close(), cache.close()])
    },
  }
  const { transact } = driver
  if (transact) {
    overrides.transact = async (work, options) => {
      let made: Append | undefined
      const result = await transact.call(
        driver,
        async (sql, blobs) => {
          made = await work(sql, blobs)
          return made
        },
        options,
      )
      if (made && result.status === 'appended') keep(made)
      return result
    }
  }
  return overlay(driver, overrides)
}

function nameOf({ tenant, thread, branch }: LogKey): string {
  return JSON.stringify([tenant, thread, branch])
}
