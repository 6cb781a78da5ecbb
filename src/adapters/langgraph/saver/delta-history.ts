import type { CheckpointPendingWrite, DeltaChannelHistory } from '@langchain/langgraph-checkpoint'
import type { Log } from '../../../log/index.js'
import type { Located } from './branches.js'
import { decode } from '../values/decode.js'
import { stateOf } from './state.js'
import { writesOf } from './tuple.js'
import { walkDown } from './walk.js'

type OpenBranch = (branch: string) => Promise<Log>

/**
 * What was written to channels since an ancestor last held their value, oldest first, and that value. The ancestors of
 * a checkpoint come before it in its branch, and before the fork point in the branch it was forked from: usually one
 * query each.
 */
export async function deltaHistory(
  target: Located,
  channels: readonly string[],
  open: OpenBranch,
): Promise<Record<string, DeltaChannelHistory>> {
  const seeds = new Map<string, unknown>()
  const blocks = new Map<string, CheckpointPendingWrite[][]>(channels.map((channel) => [channel, []]))
  const remaining = new Set(channels)
  for await (const ancestor of ancestors(target, open)) {
    const { channels: stored = {} } = stateOf(ancestor.fold)
    const writes = writesOf(ancestor)
    for (const channel of remaining) {
      const own = writes.filter((write) => write[2] === channel)
      own.sort(([a, i], [b, j]) => (a === b ? i - j : a < b ? -1 : 1))
      blocks.get(channel)?.push(own.map(([task, , name, node]) => [task, name, decode(node)]))
      if (!Object.hasOwn(stored, channel)) continue
      const seed = decode(stored[channel] ?? null)
      if (seed === undefined) continue
      seeds.set(channel, seed)
      remaining.delete(channel)
    }
    if (remaining.size === 0) break
  }
  return Object.fromEntries(
    channels.map((channel) => {
      const writes = (blocks.get(channel) ?? []).reverse().flat()
      return [channel, seeds.has(channel) ? { writes, seed: seeds.get(channel) } : { writes }]
    }),
  )
}

async function* ancestors(target: Located, open: OpenBranch): AsyncGenerator<Located> {
  let { log } = target
  let upTo = target.fold.seq
  let skip: string | undefined = target.id
  for (;;) {
    for await (const found of walkDown(log, upTo, skip)) yield { ...found, threadId: target.threadId, log }
    const { origin } = log.fold
    if (origin === null) return
    log = await open(origin.branch)
    upTo = origin.seq
    skip = undefined
  }
}
