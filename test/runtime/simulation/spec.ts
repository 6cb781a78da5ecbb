import fc from 'fast-check'
import type { Effect } from 'holdfast'

/** What one call of the outside world does, for the first calls of a place; all later ones succeed. */
export type Mishap =
  /** Nothing happened, and the caller hears an error that does not say so. */
  | 'throw-before'
  /** It happened, but the caller hears an error. */
  | 'throw-after'
  /** Nothing happened, and the error says so. */
  | 'not-executed'
  /** No reply within the time limit: nothing happened, or it did. */
  | 'hang-before'
  | 'hang-after'

/** A call of the outside world, with the policy that it is declared with. */
export interface WorkSpec {
  readonly effect: Effect
  readonly mishaps: readonly Mishap[]
  /** Never succeeds. */
  readonly hopeless: boolean
  readonly spareAttempts: number
  readonly ms: number
  /** Writes to the store, too. Only reads do: what another says of an effect can't bring back its writes. */
  readonly store: boolean
  /** How long the other side remembers a key; a day and more unless short. */
  readonly shortTtl: boolean
  /** What `reconcile` says at first. */
  readonly reconcile: 'truth' | 'unknown' | 'throws'
  readonly onUnknown: 'pause' | 'fail'
}

export type StatementSpec =
  | { readonly kind: 'step'; readonly work: WorkSpec; readonly caught: boolean }
  | { readonly kind: 'all'; readonly parts: readonly StatementSpec[] }
  | { readonly kind: 'loop'; readonly times: number; readonly body: readonly StatementSpec[] }
  | { readonly kind: 'sleep'; readonly ms: number }
  | { readonly kind: 'receive'; readonly inTime: boolean }
  | { readonly kind: 'pause'; readonly inTime: boolean }

export interface NodeSpec {
  readonly kind: 'node'
  /** Either the node as a whole is the work, or it is made of statements. */
  readonly work: WorkSpec | undefined
  readonly body: readonly StatementSpec[]
  readonly gate: 'none' | 'before' | 'after'
}

export type BlockSpec =
  | NodeSpec
  | { readonly kind: 'sequence'; readonly blocks: readonly BlockSpec[] }
  | { readonly kind: 'condition'; readonly blocks: readonly BlockSpec[]; readonly pick: number }
  | { readonly kind: 'parallel'; readonly blocks: readonly BlockSpec[] }
  | { readonly kind: 'repeat'; readonly times: number; readonly block: BlockSpec }
  | { readonly kind: 'fan'; readonly items: number; readonly each: NodeSpec | SubgraphSpec }
  | SubgraphSpec

export interface SubgraphSpec {
  readonly kind: 'subgraph'
  readonly block: BlockSpec
}

export type ProgramSpec =
  | { readonly kind: 'flow'; readonly body: readonly StatementSpec[] }
  | { readonly kind: 'graph'; readonly block: BlockSpec }

const workSpec = (hopeless: fc.Arbitrary<boolean>): fc.Arbitrary<WorkSpec> =>
  fc.record({
    effect: fc.constantFrom<Effect>('read', 'idempotent', 'reconcilable', 'once'),
    mishaps: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      {
        weight: 1,
        arbitrary: fc.array(
          fc.constantFrom<Mishap>('throw-before', 'throw-after', 'not-executed', 'hang-before', 'hang-after'),
          { minLength: 1, maxLength: 2 },
        ),
      },
    ),
    hopeless,
    spareAttempts: fc.constantFrom(2, 2, 0),
    ms: fc.constantFrom(0, 0, 0, 40),
    store: fc.constantFrom(false, false, true),
    shortTtl: fc.constantFrom(false, false, true),
    reconcile: fc.constantFrom('truth', 'truth', 'unknown', 'throws'),
    onUnknown: fc.constantFrom('pause', 'pause', 'pause', 'pause', 'pause', 'fail'),
  })

const rarely = (share: number): fc.Arbitrary<boolean> => fc.nat(share - 1).map((drawn) => drawn === share - 1)

const { statement } = fc.letrec<{ statement: StatementSpec }>((tie) => ({
  statement: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constant('step' as const),
        work: workSpec(rarely(12)),
        caught: rarely(3),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('sleep' as const), ms: fc.constantFrom(50, 4000, 60_000) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('receive' as const), inTime: fc.constantFrom(true, true, false) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('pause' as const), inTime: fc.constantFrom(true, true, false) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('all' as const),
        parts: fc.array(tie('statement'), { minLength: 1, maxLength: 3 }),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('loop' as const),
        times: fc.integer({ min: 1, max: 3 }),
        body: fc.array(tie('statement'), { minLength: 1, maxLength: 2 }),
      }),
    },
  ),
}))

const node: fc.Arbitrary<NodeSpec> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('node' as const),
      work: workSpec(rarely(20)),
      body: fc.constant([]),
      gate: fc.constantFrom('none' as const, 'none' as const, 'none' as const, 'before' as const, 'after' as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('node' as const),
      work: fc.constant(undefined),
      body: fc.array(statement, { minLength: 1, maxLength: 2 }),
      gate: fc.constantFrom('none' as const, 'none' as const, 'none' as const, 'before' as const, 'after' as const),
    }),
  },
)

const { block } = fc.letrec<{ block: BlockSpec; blocks: BlockSpec[]; subgraph: SubgraphSpec }>((tie) => ({
  blocks: fc.array(tie('block'), { minLength: 2, maxLength: 3 }),
  subgraph: fc.record({ kind: fc.constant('subgraph' as const), block: tie('block') }),
  block: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    { weight: 3, arbitrary: node },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('sequence' as const), blocks: tie('blocks') }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('parallel' as const), blocks: tie('blocks') }) },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('condition' as const), blocks: tie('blocks'), pick: fc.nat(2) }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('repeat' as const),
        times: fc.integer({ min: 1, max: 3 }),
        block: tie('block'),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('fan' as const),
        items: fc.integer({ min: 0, max: 3 }),
        each: fc.oneof(node, tie('subgraph')),
      }),
    },
    { weight: 1, arbitrary: tie('subgraph') },
  ),
}))

export const programSpec: fc.Arbitrary<ProgramSpec> = fc.oneof(
  fc.record({
    kind: fc.constant('flow' as const),
    body: fc.array(statement, { minLength: 1, maxLength: 4 }),
  }),
  fc.record({ kind: fc.constant('graph' as const), block }),
)
