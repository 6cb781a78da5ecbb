import type { Holdfast, ThreadIdInput, ThreadSummary } from '../index.js'
import { CliError } from './cli-error.js'
import { formatThreadId, parseThreadId } from './thread-id.js'

/** How many threads are looked through for names that are like the one that was asked for. */
const LOOKED_THROUGH = 2000
const SUGGESTED = 3

/** The branch of a thread that was asked for, or an error that names what is like it. */
export async function findThread(hf: Holdfast, text: string, branch = 'main'): Promise<ThreadSummary> {
  const thread = parseThreadId(text)
  const [found] = (await hf.threads({ thread, branch, limit: 1 })).threads
  if (found) return found
  const others = (await hf.threads({ thread, limit: 100 })).threads
  if (others.length > 0) {
    const names = others.map((other) => other.branch)
    throw new CliError('not-found', `Thread ${text} has no branch "${branch}".`, {
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
  return new CliError(
    'not-found',
    `No thread ${text}${similar.length > 0 ? `; did you mean ${either(similar)}?` : '.'}`,
    {
      remedy: similar.length > 0 ? '' : 'List them with `holdfast threads`; check --store and --tenant.',
      data: { thread, similar },
    },
  )
}

async function findSimilar(hf: Holdfast, thread: ThreadIdInput, text: string): Promise<readonly string[]> {
  const wanted = [...new Set([text, plainForm(thread), inOrder(text.split(/[/:,\s]+/))])]
  const seen = new Map<string, number>()
  let cursor: string | undefined
  for (let looked = 0; looked < LOOKED_THROUGH; ) {
    const page = await hf.threads({ limit: 500, order: 'updated', ...(cursor ? { cursor } : {}) })
    for (const { thread: id } of page.threads) {
      const name = formatThreadId(id)
      const forms = [name, plainForm(id)]
      const distance = Math.min(...wanted.flatMap((want) => forms.map((form) => unlikeness(want, form))))
      if (distance < 0.5) seen.set(name, distance)
    }
    looked += page.threads.length
    cursor = page.cursor
    if (cursor === undefined) break
  }
  return [...seen]
    .sort((a, b) => a[1] - b[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, SUGGESTED)
    .map(([name]) => name)
}

/** The values alone, in an order of their own: people say `user-42/bf-847`, and don't know which part is which. */
function plainForm(id: ThreadIdInput): string {
  return typeof id === 'string' ? id : inOrder(Object.values(id))
}

function inOrder(parts: readonly string[]): string {
  return parts.toSorted().join('/')
}

/** 0 for equal, 1 for nothing in common. */
function unlikeness(a: string, b: string): number {
  const one = a.toLowerCase()
  const other = b.toLowerCase()
  if (one.length > 2 && other.length > 2 && (one.includes(other) || other.includes(one))) return 0.1
  const most = Math.max(one.length, other.length)
  return most === 0 ? 0 : editDistance(one.slice(0, 64), other.slice(0, 64)) / Math.min(most, 64)
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}

function either(names: readonly string[]): string {
  return names.length === 1 ? (names[0] as string) : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}
