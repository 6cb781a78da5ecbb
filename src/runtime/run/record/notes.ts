import type { Draft } from '../../../log/entry/draft.js'
import { applyOp, type State } from '../../../log/entry/ops.js'

/** A write in progress. */
export class Flight {
  /** Where the log ended when it was last decided on. */
  on = -1
  /** Not written as it was: the log can't hold it, or something before it. */
  refused = false
  /** What of it waits again. */
  left: readonly Note[] = []
  /** What nobody but the writer can be told. */
  failure: { readonly error: unknown } | undefined
  #isOver = false
  #over: Deferred | undefined

  /** Resolves when it is over, whatever the outcome. Most are over before anybody asks. */
  over(): Promise<void> {
    if (this.#isOver) return DONE
    this.#over ??= deferred()
    return this.#over.promise
  }

  end(failure?: { readonly error: unknown }): void {
    this.#isOver = true
    this.failure = failure
    this.#over?.resolve()
  }
}

export const DONE = Promise.resolve()

/** Something that waits to be written. */
export interface Note {
  readonly draft: Draft
  /**
   * The end of a step: if the log can't hold it, that step is told. The others are written with whatever comes next.
   */
  readonly step: Step | undefined
  /** Not worth a write of its own. */
  readonly along?: string
}

/** Who brought the record of a step. */
export class Step {
  /** False if the program has continued without waiting for the record. */
  waits = false
  #isWritten = false
  #refused: { readonly error: unknown } | undefined
  #deferred: Deferred | undefined

  /** Settles when the record is written, or refused. Made when it is asked for: many continue without it. */
  get written(): Promise<void> {
    if (this.#isWritten) return DONE
    if (this.#refused) return Promise.reject(this.#refused.error)
    this.#deferred ??= deferred()
    return this.#deferred.promise
  }

  resolve(): void {
    this.#isWritten = this.#refused === undefined
    this.#deferred?.resolve()
  }

  reject(error: unknown): void {
    if (this.#isWritten) return
    this.#refused ??= { error }
    this.#deferred?.reject(error)
  }
}

/** A state and what is noted on top of it, which is applied on demand: most steps land before anybody looks. */
export class View {
  #state: State
  #noted: Draft[]

  constructor(state: State, noted: readonly Draft[] = []) {
    this.#state = state
    this.#noted = [...noted]
  }

  add(draft: Draft): void {
    this.#noted.push(draft)
  }

  get state(): State {
    for (const draft of this.#noted) this.#state = applyOps(this.#state, draft)
    this.#noted = []
    return this.#state
  }
}

/** Drafts combined into one entry: what the last one says about the index counts. */
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

export function draftsOf(notes: readonly Note[]): readonly Draft[] {
  return notes.map(({ draft }) => draft)
}

interface Deferred {
  promise: Promise<void>
  resolve: () => void
  reject: (error: unknown) => void
}

function deferred(): Deferred {
  const made = {} as Deferred
  made.promise = new Promise((resolve, reject) => {
    made.resolve = resolve
    made.reject = reject
  })
  return made
}
