import type { Holdfast, ThreadIdInput, ThreadSummary } from '../../index.js'
import { CliError } from '../cli-error.js'
import { didYouMean, findSimilarNames, likest, unlikeness } from '../../core/wording/similar.js'
import { formatThreadId, parseThreadId } from './thread-id.js'

/** How many threads are looked through for names that are like the one that was asked for. */
const LOOKED_THROUGH = 2000

/** The branch of a thread that was asked for, or an error that names what is like it. */
export async function findThread(hf: Holdfast, text: string, branch = 'main'): Promise<ThreadSummary> {
  const thread = parseThreadId(text)
  const [found] = (await hf.threads({ thread, branch, limit: 1 })).threads
  if (found) return found
  const others = (await hf.threads({ thread, limit: 100 })).threads
  if (others.length > 0) {
    const names = others.map((other) => other.branch)
    const similar = findSimilarNames(branch, names)
    throw new CliError('not-found', `Thread ${text} has no branch "${branch}"${didYouMean(similar)}`, {
      remedy: `Its branches: ${names.join(', ')}.`,
      data: { thread, branch, branches: names },
    })
  }
  throw await missingThread(hf, thread, text)
}

async function missingThread(hf: Holdfast, thread: ThreadIdInput, text: string): Promise<CliError> {
  const tombstone = await hf.tombstone(thread)
  if (tombstone) {
    const at = new Date(tombstone.at).toISOString()
    return new CliError('not-found', `Thread ${text} is gone: ${tombstone.reason} at ${at}.`, {
      data: { thread, tombstone },
    })
  }
  const similar = await findSimilar(hf, thread, text)
  return new CliError('not-found', `No thread ${text}${didYouMean(similar)}`, {
    remedy: similar.length > 0 ? '' : 'List them with `holdfast threads`; check --store and --tenant.',
    data: { thread, similar },
  })
}

async function findSimilar(hf: Holdfast, thread: ThreadIdInput, text: string): Promise<readonly string[]> {
  const wanted = [...new Set([text, plainForm(thread), inOrder(text.split(/[/:,\s]+/))])]
  const seen = new Map<string, number>()
  let cursor: string | undefined
  for (let looked = 0; looked < LOOKED_THROUGH; ) {
    const page = await hf.threads({ limit: 500, order: 'updated', ...(cursor ? { cursor } : {}) })
    for (const { thread: id } of page.threads) {
      const name = formatThreadId(id)
      // A part of it alone may be all that somebody remembers.
      const parts = typeof id === 'string' ? [] : Object.values(id)
      const forms = [name, plainForm(id), ...parts]
      seen.set(name, Math.min(...wanted.flatMap((want) => forms.map((form) => unlikeness(want, form)))))
    }
    looked += page.threads.length
    cursor = page.cursor
    if (cursor === undefined) break
  }
  return likest(seen)
}

/** The values alone, in an order of their own: people say `user-42/bf-847`, and don't know which part is which. */
function plainForm(id: ThreadIdInput): string {
  return typeof id === 'string' ? id : inOrder(Object.values(id))
}

function inOrder(parts: readonly string[]): string {
  return parts.toSorted().join('/')
}
