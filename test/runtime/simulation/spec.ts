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
  /** No reply within the time limit, and the request can't be called back: it takes effect afterwards. */
  | 'late'

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
  /** An idempotency key of the program's own; steps and tools can have one. */
  readonly ownKey?: string
  /** What the program calls it now; a later version may have renamed it. */
  readonly name?: string
  /** A later version does not have it any more. */
  readonly gone?: true
  /** A later version hands it another input. */
  readonly input?: string
}

/** How the failure of one of several parts reaches the program's end: as it is, or wrapped so that its cause is lost. */
export type Joined = 'as-is' | 'settled' | 'aggregate'

export type StatementSpec = { readonly id?: string } & (
  | { readonly kind: 'step'; readonly work: WorkSpec; readonly caught: boolean; readonly longKey?: boolean }
  | { readonly kind: 'all'; readonly parts: readonly StatementSpec[]; readonly joined?: Joined }
  | { readonly kind: 'loop'; readonly times: number; readonly body: readonly StatementSpec[] }
  | { readonly kind: 'sleep'; readonly ms: number; readonly keyed?: boolean }
  /** `shared`: of a name that other places wait for, too. */
  | { readonly kind: 'receive'; readonly inTime: boolean; readonly shared?: boolean; readonly keyed?: boolean }
  /** `same`: asks in the same words as other places do. */
  | {
      readonly kind: 'pause'
      readonly inTime: boolean
      readonly same?: boolean
      readonly keyed?: boolean
      readonly words?: string
    }
  /** Code between steps that takes long. */
  | { readonly kind: 'think'; readonly ms: number }
)

export interface NodeSpec {
  readonly kind: 'node'
  readonly id?: string
  /** Either the node as a whole is the work, or it is made of statements. */
  readonly work: WorkSpec | undefined
  readonly body: readonly StatementSpec[]
  readonly gate: 'none' | 'before' | 'after'
  /** What the program calls it now. */
  readonly name?: string
}

export type BlockSpec =
  | NodeSpec
  | ({ readonly id?: string } & (
      | { readonly kind: 'sequence'; readonly blocks: readonly BlockSpec[] }
      | { readonly kind: 'condition'; readonly blocks: readonly BlockSpec[]; readonly pick: number }
      | { readonly kind: 'parallel'; readonly blocks: readonly BlockSpec[] }
      | { readonly kind: 'repeat'; readonly times: number; readonly block: BlockSpec }
      | { readonly kind: 'fan'; readonly items: number; readonly each: NodeSpec | SubgraphSpec }
    ))
  | SubgraphSpec

export interface SubgraphSpec {
  readonly kind: 'subgraph'
  readonly id?: string
  readonly block: BlockSpec
}

/** One call of a tool that the model asks for. */
export interface CallSpec {
  readonly id?: string
  readonly work: WorkSpec
  /** A person must agree first. */
  readonly approval: boolean
}

export type ProgramSpec =
  | { readonly kind: 'flow'; readonly body: readonly StatementSpec[] }
  | { readonly kind: 'graph'; readonly block: BlockSpec }
  | { readonly kind: 'agent'; readonly turns: readonly (readonly CallSpec[])[] }
