import fc from 'fast-check'
import type { Effect } from 'holdfast'
import type {
  BlockSpec,
  CallSpec,
  Joined,
  Mishap,
  NodeSpec,
  ProgramSpec,
  StatementSpec,
  SubgraphSpec,
  WorkSpec,
} from './spec.js'

const workSpec = (hopeless: fc.Arbitrary<boolean>, own = false): fc.Arbitrary<WorkSpec> =>
  fc.record({
    effect: fc.constantFrom<Effect>('read', 'idempotent', 'reconcilable', 'once'),
    mishaps: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      {
        weight: 1,
        arbitrary: fc.array(
          fc.constantFrom<Mishap>('throw-before', 'throw-after', 'not-executed', 'hang-before', 'hang-after', 'late'),
          { minLength: 1, maxLength: 2 },
        ),
      },
    ),
    hopeless,
    spareAttempts: fc.constantFrom(2, 2, 0),
    ms: fc.constantFrom(0, 0, 0, 0, 0, 0, 40, 40, 2500),
    store: fc.constantFrom(false, false, true),
    shortTtl: fc.constantFrom(false, false, true),
    reconcile: fc.constantFrom('truth', 'truth', 'unknown', 'throws'),
    onUnknown: fc.constantFrom('pause', 'pause', 'pause', 'pause', 'pause', 'fail'),
    ...(own ? { ownKey: fc.constantFrom(undefined, undefined, undefined, 'own') as fc.Arbitrary<string> } : {}),
  })

const rarely = (share: number): fc.Arbitrary<boolean> => fc.nat(share - 1).map((drawn) => drawn === share - 1)

const mostly = fc.nat(2).map((drawn) => drawn < 2)

const step: fc.Arbitrary<StatementSpec> = fc.record({
  kind: fc.constant('step' as const),
  work: workSpec(rarely(12), true),
  caught: rarely(3),
  longKey: rarely(6),
})

/** Steps and waits, which have no parts. */
const leaf: fc.Arbitrary<StatementSpec> = fc.oneof(
  { weight: 6, arbitrary: step },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('sleep' as const),
      ms: fc.constantFrom(50, 4000, 60_000),
      keyed: mostly,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('receive' as const),
      inTime: fc.constantFrom(true, true, false),
      shared: rarely(3),
      keyed: mostly,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('pause' as const),
      inTime: fc.constantFrom(true, true, false),
      same: rarely(3),
      keyed: mostly,
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('think' as const), ms: fc.constantFrom(900, 1500, 20_000) }) },
)

const joined = fc.constantFrom<Joined>('as-is', 'as-is', 'as-is', 'settled', 'aggregate')

const { statement } = fc.letrec<{ statement: StatementSpec }>((tie) => ({
  statement: fc.oneof(
    { maxDepth: 2, withCrossShrink: true },
    { weight: 10, arbitrary: leaf },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('all' as const),
        parts: fc.array(tie('statement'), { minLength: 1, maxLength: 3 }),
        joined,
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

/**
 * Without a key the runtime refuses waits that it can't tell apart. Branches that come to a wait behind code of their own
 * alone look alike to it: there the programs give keys.
 */
function apart(body: readonly StatementSpec[]): readonly StatementSpec[] {
  const text = JSON.stringify(body)
  if (!text.includes('"kind":"all"') || !text.includes('"kind":"think"')) return body
  return JSON.parse(text.replaceAll('"keyed":false', '"keyed":true')) as readonly StatementSpec[]
}

/** Chains side by side, each with waits and steps of its own: what one of them asks for comes in another order later. */
const chains: fc.Arbitrary<StatementSpec> = fc.record({
  kind: fc.constant('all' as const),
  parts: fc.array(
    fc.record({
      kind: fc.constant('loop' as const),
      times: fc.constant(1),
      body: fc.array(leaf, { minLength: 1, maxLength: 3 }),
    }),
    { minLength: 2, maxLength: 3 },
  ),
  joined,
})

/** Chains that wait for the same with no key: who asked first is no way to tell them apart. */
const twins: fc.Arbitrary<StatementSpec> = fc
  .record({
    wait: fc.oneof(
      fc.record({ kind: fc.constant('pause' as const), inTime: fc.constant(true), same: fc.constant(true) }),
      fc.record({ kind: fc.constant('receive' as const), inTime: fc.constant(true), shared: fc.constant(true) }),
      fc.record({ kind: fc.constant('sleep' as const), ms: fc.constantFrom(4000, 60_000) }),
    ),
    around: fc.array(fc.tuple(step, leaf), { minLength: 2, maxLength: 3 }),
  })
  .map(({ wait, around }) => ({
    kind: 'all',
    parts: around.map(([before, after], i) => {
      const own = wait.kind === 'sleep' ? { ...wait, ms: wait.ms + 2000 * i } : wait
      return { kind: 'loop', times: 1, body: [before, { ...own, keyed: false }, after] }
    }),
    joined: 'as-is',
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
      body: fc.array(statement, { minLength: 1, maxLength: 2 }).map(apart),
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
    body: fc.oneof(
      { weight: 4, arbitrary: fc.array(statement, { minLength: 1, maxLength: 4 }).map(apart) },
      { weight: 2, arbitrary: fc.tuple(chains).map(apart) },
      { weight: 1, arbitrary: fc.tuple(twins) },
    ),
  }),
  fc.record({ kind: fc.constant('graph' as const), block }),
)

const call: fc.Arbitrary<CallSpec> = fc.record({ work: workSpec(rarely(20), true), approval: rarely(3) })

/** Agents are judged by the rules alone: their messages are dated, so no two runs are the same. */
export const agentSpec: fc.Arbitrary<ProgramSpec> = fc.record({
  kind: fc.constant('agent' as const),
  turns: fc.array(fc.array(call, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 2 }),
})
