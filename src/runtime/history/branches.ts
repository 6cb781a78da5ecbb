import type { Value } from '../../codec/value.js'
import { isHoldfastError, NotFoundError } from '../../core/errors.js'
import type { Head, HeadQuery, LogKey } from '../../log/contract.js'
import type { LogStore } from '../../log/log-store.js'
import { allHeads } from '../../log/read/heads.js'
import { formatCheckpointId, parseCheckpointId } from '../../log/entry/checkpoint-id.js'
import { type Difference, diffValues } from './diff.js'
import type { RunState } from '../run/state/run-state.js'
import { mapSome } from '../../core/map-some.js'
import type { RecordedError } from '../errors.js'
import type { RuntimeEnvironment } from '../run/environment.js'

/** A branch and those that were forked from it. */
export interface Branch {
  readonly name: string
  readonly status: string
  readonly entries: number
  /** The newest checkpoint. */
  readonly head: string
  readonly createdAt: Date
  readonly updatedAt: Date
  /** Where it was forked from. */
  readonly from?: { readonly branch: string; readonly seq: number; readonly checkpoint: string }
  readonly forks: readonly Branch[]
}

/** All branches of a thread as a tree. A fork whose origin is gone is at the top, next to main. */
export async function listBranches(logs: LogStore, { tenant, thread }: LogKey): Promise<readonly Branch[]> {
  const heads: Head[] = []
  const query: HeadQuery = { tenant, thread, order: 'created', direction: 'asc', limit: 1000 }
  for await (const head of allHeads((page) => logs.list(page), query)) heads.push(head)
  const names = new Set<string>(heads.map(({ log }) => log.branch))
  const under = (parent: string | undefined): readonly Branch[] =>
    heads
      .filter(({ index, log }) => {
        const origin = index.origin?.branch
        const known = origin !== undefined && origin !== log.branch && names.has(origin)
        return parent === undefined ? !known : known && origin === parent
      })
      .map((head) => describe(head, under(head.log.branch)))
  return under(undefined)
}

function describe({ log, seq, hash, base, index }: Head, forks: readonly Branch[]): Branch {
  const { origin } = index
  return {
    name: log.branch,
    status: index.status,
    entries: seq - base.seq + 1,
    head: formatCheckpointId(log.branch, seq, hash),
    createdAt: new Date(index.createdAt),
    updatedAt: new Date(index.updatedAt),
    ...(origin === null
      ? {}
      : {
          from: {
            branch: origin.branch,
            seq: origin.seq,
            checkpoint: formatCheckpointId(origin.branch, origin.seq, origin.hash),
          },
        }),
    forks,
  }
}

/** How two branches of a thread differ. */
export interface Comparison {
  /** The newest checkpoint that both have in their history; undefined if they have none in common. */
  readonly common: string | undefined
  readonly state: readonly Difference[]
  readonly branches: readonly {
    readonly name: string
    readonly head: string
    readonly status: string
    /** How many entries its history has that the other does not. */
    readonly since: number
  }[]
}

export async function compareBranches(
  logs: LogStore,
  key: LogKey,
  names: readonly [string, string],
): Promise<Comparison> {
  const all = flatten(await listBranches(logs, key))
  for (const branch of names) {
    if (all.has(branch)) continue
    throw new NotFoundError(`There is no branch "${branch}" of thread ${key.thread}.`, 'See thread.branches().', {
      thread: key.thread,
      branch,
    })
  }
  const pasts = names.map((name) => pastOf(all, name))
  const common = commonPast(pasts[0] ?? [], pasts[1] ?? [])
  const opened = await Promise.all(names.map((name) => logs.open({ ...key, branch: name as LogKey['branch'] })))
  const states = opened.map(({ fold }) => ((fold.state as RunState).state ?? {}) as Value)
  return {
    common: common?.checkpoint,
    state: diffValues(states[0], states[1]),
    branches: names.map((name, i) => {
      const { fold, checkpoint } = opened[i] as (typeof opened)[number]
      return { name, head: checkpoint ?? '', status: fold.index.status, since: entriesSince(pasts[i] ?? [], common) }
    }),
  }
}

/**
 * Entries of this history that the other does not have: those of branches on the way, and later ones of the common
 * branch.
 */
function entriesSince(past: readonly Past[], common: Past | undefined): number {
  let entries = 0
  for (const { branch, seq } of past) {
    if (branch === common?.branch) return entries + seq - common.seq
    entries += seq + 1
  }
  return entries
}

interface Past {
  readonly branch: string
  /** The newest of its entries that belongs to the history. */
  readonly seq: number
  readonly checkpoint: string
}

/** The branches a branch descends from, itself first, with how far each belongs to its history. */
function pastOf(all: ReadonlyMap<string, Branch>, name: string): readonly Past[] {
  const past: Past[] = []
  let branch = all.get(name)
  let reach: Past | undefined = branch && {
    branch: name,
    seq: parseCheckpointId(branch.head).seq,
    checkpoint: branch.head,
  }
  while (branch && reach && !past.some((seen) => seen.branch === reach?.branch)) {
    past.push(reach)
    reach = branch.from
    branch = reach && all.get(reach.branch)
  }
  return past
}

function commonPast(a: readonly Past[], b: readonly Past[]): Past | undefined {
  for (const one of a) {
    const other = b.find(({ branch }) => branch === one.branch)
    if (other) return one.seq <= other.seq ? one : other
  }
  return undefined
}

function flatten(branches: readonly Branch[]): ReadonlyMap<string, Branch> {
  const all = new Map<string, Branch>()
  const add = (branch: Branch) => {
    all.set(branch.name, branch)
    branch.forks.forEach(add)
  }
  branches.forEach(add)
  return all
}

const AT_ONCE = 8
/**
 * What keeps a thread from being read, for good or for those without its key. Other errors fail the call, because then
 * nobody knows.
 */
const UNREADABLE: ReadonlySet<string> = new Set(['corrupt', 'missing-key', 'not-found', 'schema-too-new'])
const BROKEN: ReadonlySet<string> = new Set(['failed', 'incompatible'])

/** Why each of these branches failed, by its place; undefined for those that did not. */
export function findErrors(
  { logs }: RuntimeEnvironment,
  heads: readonly Head[],
): Promise<readonly (RecordedError | undefined)[]> {
  return mapSome(heads, AT_ONCE, async (head) => (BROKEN.has(head.index.status) ? findError(logs, head) : undefined))
}

// One that can't be read must not hide the others, and why it can't is not why its run failed.
async function findError(logs: RuntimeEnvironment['logs'], { log, seq }: Head): Promise<RecordedError | undefined> {
  try {
    const { run, parked } = (await logs.unread(log).at(seq)).state as RunState
    return parked ?? run?.error
  } catch (error) {
    if (isHoldfastError(error) && UNREADABLE.has(error.code)) return undefined
    throw error
  }
}
