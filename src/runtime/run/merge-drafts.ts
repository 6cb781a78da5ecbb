import type { Draft } from '../../log/entry/draft.js'
import { applyOp, type State } from '../../log/entry/ops.js'

/** Drafts as one entry: what the last one says of the index holds. */
export function mergeAll(drafts: readonly Draft[]): Draft | undefined {
  const last = drafts.at(-1)
  if (last === undefined || drafts.length === 1) return last
  const events = drafts.flatMap(eventsOf)
  const indexes = drafts.flatMap(({ index }) => (index ? [index] : []))
  const writes = drafts.flatMap(({ store }) => store ?? [])
  return {
    kind: last.kind,
    ops: drafts.flatMap(({ ops }) => ops ?? []),
    ...(indexes.length > 0 ? { index: indexes.reduce(mergeIndex) } : {}),
    ...(writes.length > 0 ? { store: writes } : {}),
    ...(events.length > 0 ? { data: { events } } : {}),
    ...(drafts.some(({ keyframe }) => keyframe) ? { keyframe: true } : {}),
  }
}

type Index = NonNullable<Draft['index']>

function mergeIndex(first: Index, second: Index): Index {
  const metadata = { ...first.metadata, ...second.metadata }
  const tags = { ...first.tags, ...second.tags }
  return {
    ...first,
    ...second,
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
    ...(Object.keys(tags).length > 0 ? { tags } : {}),
  }
}

function eventsOf(draft: Draft): readonly unknown[] {
  return (draft.data as { readonly events?: readonly unknown[] } | undefined)?.events ?? []
}

/** The state after what a draft changes. */
export function applyOps(state: State, draft: Draft): State {
  const owned = new Set<object>()
  let after = state
  for (const op of draft.ops ?? []) after = applyOp(after, op, owned)
  return after
}
