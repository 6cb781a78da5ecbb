import type { Holdfast } from '../../../index.js'
import type { Call } from '../../http/route.js'
import type { Found } from './find-thread.js'
import { toLabels } from './labels.js'
import { fromChain } from '../messages.js'

/** Makes an empty thread with labels. False when there is one. */
export async function createThread(
  hf: Holdfast,
  id: string,
  metadata: Readonly<Record<string, unknown>>,
): Promise<boolean> {
  const log = await hf.log(id)
  const { entries } = await log.update((fold) =>
    fold.seq >= 0 ? undefined : [{ kind: 'tag', ops: [], index: { status: 'idle', metadata: toLabels(metadata) } }],
  )
  return entries.length > 0
}

/** Writes labels to all branches, since any of them may be the newest. */
export async function label(hf: Holdfast, found: Found, metadata: Readonly<Record<string, unknown>>): Promise<void> {
  const labels = toLabels(metadata)
  const { threads } = await hf.threads({ thread: found.id, limit: 1000 })
  for (const { branch, metadata: known } of threads) {
    if (Object.entries(labels).every(([name, value]) => (known[name] ?? null) === value)) continue
    await (await hf.log(found.id, { branch })).update(() => [{ kind: 'tag', ops: [], index: { metadata: labels } }])
  }
}

/** A branch of a checkpoint with its state changed through its reducers. */
export async function updateState(
  call: Call,
  found: Found,
  checkpoint: string,
  values: Readonly<Record<string, unknown>>,
): Promise<string> {
  const { thread, program } = await call.core.thread(call.hf, found.id, found.summary.branch)
  const isAgent = program.plan.kind === 'graph' && program.plan.role === 'agent'
  const { messages, ...rest } = values
  const update =
    isAgent && messages !== undefined ? { ...rest, messages: fromChain(messages, 'values.messages') } : values
  return (await thread.at(checkpoint).fork({ update: update as never })).branch
}
