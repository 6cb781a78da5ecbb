import type { Holdfast, ThreadSummary } from '../../index.js'
import { CliError } from '../cli-error.js'
import { didYouMean, findSimilarNames } from '../../core/wording/similar.js'
import { formatThreadId } from './thread-id.js'

/**
 * The id of a checkpoint that a person names: an id as history lists it, a sequence number, `head`, `~2` for the second
 * before the newest, `first`, a tag, or a branch for its newest.
 */
export async function findCheckpoint(hf: Holdfast, { thread, branch }: ThreadSummary, name: string): Promise<string> {
  if (/~\d{1,15}~[0-9a-f]{12}$/.test(name)) return name
  const view = hf.inspect(thread, { branch })
  if (/^\d{1,15}$/.test(name)) {
    const [entry] = await view.history({ events: false, limit: 1, before: Number(name) + 1, all: true })
    if (entry?.seq === Number(name)) return entry.id
    const newest = entry === undefined ? '' : `${entry.seq} is the last before it. `
    throw missing(thread, name, `${newest}See \`holdfast history\`; older ones may have been pruned.`)
  }
  const back = name === 'head' ? 0 : /^~\d{1,4}$/.test(name) ? Number(name.slice(1)) : undefined
  if (back !== undefined) {
    const found = (await view.history({ events: false, limit: back + 1 }))[back]
    if (found) return found.id
    throw missing(thread, name, 'There are not that many checkpoints; see `holdfast history`.')
  }
  if (name === 'first') {
    const found = await oldest(view)
    if (found) return found
  }
  const log = await hf.log(thread, { branch })
  const { tags: tagged } = log.fold.index
  const seq = Object.hasOwn(tagged, name) ? tagged[name] : undefined
  if (seq !== undefined) return findCheckpoint(hf, { thread, branch } as ThreadSummary, String(seq))
  const [head] = await hf.inspect(thread, { branch: name }).history({ events: false, limit: 1, all: true })
  if (head) return head.id
  const tags = Object.keys(tagged)
  const branches = (await hf.threads({ thread, limit: 100 })).threads.map((one) => one.branch)
  const known = tags.length > 0 ? ` Tags: ${tags.join(', ')}.` : ''
  throw missing(
    thread,
    name,
    `Use an id of \`holdfast history\`, a number, head, ~1, first, a tag or a branch.${known}`,
    findSimilarNames(name, [...tags, ...branches, 'head', 'first']),
  )
}

async function oldest(view: ReturnType<Holdfast['inspect']>): Promise<string | undefined> {
  let found: { readonly id: string; readonly seq: number } | undefined
  for (;;) {
    const page = await view.history({ events: false, limit: 1000, ...(found ? { before: found.id } : {}) })
    const last = page.at(-1)
    if (last === undefined) return found?.id
    found = last
  }
}

function missing(
  thread: ThreadSummary['thread'],
  name: string,
  remedy: string,
  similar: readonly string[] = [],
): CliError {
  const message = `Thread ${formatThreadId(thread)} has no checkpoint "${name}"${didYouMean(similar)}`
  return new CliError('not-found', message, { remedy, data: { thread, checkpoint: name } })
}
