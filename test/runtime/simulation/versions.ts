import fc from 'fast-check'
import type { Effect } from 'holdfast'
import type { BlockSpec, CallSpec, NodeSpec, ProgramSpec, StatementSpec, WorkSpec } from './spec.js'

/** What somebody changed in the program while a run of it was under way. */
export type Change =
  /** An effect is declared to be of another kind. */
  | { readonly kind: 'effect'; readonly to: Effect }
  /** It brings another idempotency key of its own. */
  | { readonly kind: 'own-key'; readonly to: string }
  /** It is handed another input, as after a change of its schema. */
  | { readonly kind: 'input' }
  /** A question is worded otherwise; a person is asked first who was not, or is no longer asked. */
  | { readonly kind: 'ask' }
  /** What runs side by side is started in another order. */
  | { readonly kind: 'order' }
  | { readonly kind: 'rename' }
  | { readonly kind: 'remove' }

export interface Edit {
  /** The first process that has it, by its number. */
  readonly from: number
  /** Which of the parts that can be changed so. */
  readonly target: number
  readonly change: Change
}

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('effect' as const),
      to: fc.constantFrom<Effect>('read', 'idempotent', 'reconcilable', 'once'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('own-key' as const), to: fc.constantFrom('new', 'newer') }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('ask' as const, 'order' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('rename' as const, 'remove' as const, 'input' as const) }),
  },
)

export const edits: fc.Arbitrary<readonly Edit[]> = fc.array(
  fc.record({ from: fc.integer({ min: 1, max: 3 }), target: fc.nat(5), change }),
  { minLength: 1, maxLength: 3 },
)

/** The program as the process of this number has loaded it, and its version. */
export function versionFor(
  spec: ProgramSpec,
  edits: readonly Edit[],
  process: number,
): { readonly spec: ProgramSpec; readonly version: string } {
  const due = edits.filter(({ from }) => from <= process)
  if (due.length === 0) return { spec, version: '1.0.0' }
  const copy = structuredClone(spec) as ProgramSpec
  for (const { change, target } of due) apply(partsOf(copy), change, target)
  return { spec: copy, version: `1.${due.length}.0` }
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

/** Everything in a program that can be changed, in the order in which it is written. */
interface Parts {
  readonly works: Mutable<WorkSpec>[]
  readonly asking: (() => void)[]
  readonly orders: (() => void)[]
  readonly nodes: Mutable<NodeSpec>[]
}

function apply({ works, asking, orders, nodes }: Parts, change: Change, target: number): void {
  const work = pick(works, target)
  switch (change.kind) {
    case 'ask':
      return pick(asking, target)?.()
    case 'order':
      return pick(orders, target)?.()
    case 'rename': {
      const all = [...works, ...nodes]
      const renamed = all.length === 0 ? undefined : all[target % all.length]
      if (renamed) renamed.name = 'renamed'
      return
    }
    default:
      if (work === undefined) return
      if (change.kind === 'effect') work.effect = change.to
      if (change.kind === 'own-key') work.ownKey = change.to
      if (change.kind === 'input') work.input = 'changed'
      if (change.kind === 'remove') work.gone = true
  }
}

function pick<Part>(parts: readonly Part[], target: number): Part | undefined {
  return parts.length === 0 ? undefined : parts[target % parts.length]
}

function partsOf(spec: ProgramSpec): Parts {
  const parts: Parts = { works: [], asking: [], orders: [], nodes: [] }
  if (spec.kind === 'flow') for (const one of spec.body) ofStatement(one, parts)
  else if (spec.kind === 'graph') ofBlock(spec.block, parts)
  else for (const calls of spec.turns) ofCalls(calls, parts)
  return parts
}

function ofCalls(calls: readonly CallSpec[], parts: Parts): void {
  parts.orders.push(() => (calls as CallSpec[]).reverse())
  for (const call of calls as readonly Mutable<CallSpec>[]) {
    parts.works.push(call.work)
    parts.asking.push(() => {
      call.approval = !call.approval
    })
  }
}

function ofStatement(one: Mutable<StatementSpec>, parts: Parts): void {
  if (one.kind === 'step') parts.works.push(one.work)
  if (one.kind === 'pause') {
    parts.asking.push(() => {
      one.words = 'in other words'
    })
  }
  if (one.kind === 'loop') for (const inner of one.body) ofStatement(inner, parts)
  if (one.kind !== 'all') return
  parts.orders.push(() => (one.parts as StatementSpec[]).reverse())
  for (const inner of one.parts) ofStatement(inner, parts)
}

function ofBlock(one: Mutable<BlockSpec>, parts: Parts): void {
  switch (one.kind) {
    case 'node':
      parts.nodes.push(one)
      parts.asking.push(() => {
        one.gate = one.gate === 'before' ? 'none' : 'before'
      })
      if (one.work) parts.works.push(one.work)
      for (const inner of one.body) ofStatement(inner, parts)
      return
    case 'parallel':
      parts.orders.push(() => (one.blocks as BlockSpec[]).reverse())
      for (const inner of one.blocks) ofBlock(inner, parts)
      return
    case 'sequence':
    case 'condition':
      for (const inner of one.blocks) ofBlock(inner, parts)
      return
    case 'fan':
      return ofBlock(one.each, parts)
    default:
      return ofBlock(one.block, parts)
  }
}
