import type { CheckpointInfo, Holdfast, ThreadIdInput } from '../../index.js'
import type { Branch } from '../../types.js'
import { HttpProblem } from '../http/problem.js'

/** A checkpoint with its branch, and the one before it on whichever branch that is. */
export interface HistoryItem extends CheckpointInfo {
  readonly branch: string
  readonly parent?: string
}

/** How many checkpoints can be listed at once. */
export const MAX_HISTORY = 9999

interface Options {
  readonly branch?: string | undefined
  readonly limit: number
  readonly cursor?: string | undefined
  readonly all?: boolean
  readonly events?: boolean
}

/** One page of the checkpoints of all branches, newest first, each with its parent. */
export async function listHistory(
  hf: Holdfast,
  thread: ThreadIdInput,
  branches: readonly Branch[],
  { branch, limit, cursor, all = false, events = false }: Options,
): Promise<{ readonly checkpoints: readonly HistoryItem[]; readonly cursor?: string }> {
  const flat = flatten(branches).filter(({ name }) => branch === undefined || name === branch)
  const places = cursor === undefined ? {} : readCursor(cursor)
  const pages = await Promise.all(
    flat.map(async ({ name, from }) => {
      const before = places[name]
      // Everything of this branch was listed.
      if (before === '') return []
      const view = hf.inspect(thread, { branch: name })
      const origin = from && (await checkpointUpTo(hf, thread, from))
      // One more than is shown: the last one's parent.
      const page = await view.history({ limit: limit + 1, all, events, ...(before === undefined ? {} : { before }) })
      return page.map((info, i): HistoryItem => {
        const parent = page[i + 1]?.id ?? origin
        return { ...info, branch: name, ...(parent === undefined ? {} : { parent }) }
      })
    }),
  )
  const checkpoints = pages.flat().sort(byAge).slice(0, limit)
  const left: Record<string, string> = { ...places }
  let isMore = false
  for (const [i, page] of pages.entries()) {
    const name = flat[i]?.name ?? ''
    const shown = checkpoints.filter((item) => item.branch === name)
    const last = shown.at(-1)
    if (shown.length < page.length) {
      isMore = true
      if (last !== undefined) left[name] = last.id
    } else left[name] = ''
  }
  return isMore ? { checkpoints, cursor: Buffer.from(JSON.stringify(left)).toString('base64url') } : { checkpoints }
}

/** The newest checkpoint up to where a branch was forked: that may have been a claim or a tag, which is none. */
async function checkpointUpTo(hf: Holdfast, thread: ThreadIdInput, from: NonNullable<Branch['from']>) {
  const view = hf.inspect(thread, { branch: from.branch })
  return (await view.history({ events: false, limit: 1, before: from.seq + 1 }))[0]?.id
}

/** All branches of a tree, each before its forks. */
function flatten(branches: readonly Branch[]): readonly Branch[] {
  return branches.flatMap((branch) => [branch, ...flatten(branch.forks)])
}

// Clocks of processes differ and entries may share a millisecond: on one branch the number decides.
function byAge(a: HistoryItem, b: HistoryItem): number {
  if (a.branch === b.branch) return b.seq - a.seq
  return b.at.getTime() - a.at.getTime() || (a.branch < b.branch ? -1 : 1)
}

function readCursor(cursor: string): Readonly<Record<string, string>> {
  try {
    const read: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8'))
    if (typeof read === 'object' && read !== null && Object.values(read).every((id) => typeof id === 'string')) {
      return read as Record<string, string>
    }
  } catch {}
  throw new HttpProblem(400, 'invalid-option', 'The cursor does not belong to this list.', {
    remedy: 'Send the cursor that the last page returned.',
    fields: { field: 'cursor' },
  })
}
