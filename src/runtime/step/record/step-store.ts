import type { Value } from '../../../codec/value.js'
import type { Collection } from '../../../store/collection.js'
import type { CollectionOptions } from '../../../store/collection-options.js'
import type { Item, ItemPage, ListQuery, SearchQuery } from '../../../store/item.js'
import { encodeScope, encodeSpace, type ScopeInput } from '../../../store/space.js'
import type { SchemaInput, SchemaOutput, StandardSchema } from '../../../store/standard-schema.js'
import type { Scope, Store } from '../../../store/store.js'
import type { StoreWrite } from '../../../log/items/store-write.js'
import { noop } from '../../../core/async/rejected.js'

/** For programs of this library: a write that is known to be valid costs no checks and no promise. */
export let addWrite: (store: StepStore, write: StoreWrite) => void

/**
 * The store as a step sees it: reads are live, writes are part of the entry that records the step, so they happen
 * exactly if the step is recorded. Reads do not see the step's own writes. Writes of an effect whose answer was lost
 * are kept with its intent, and are applied if it turns out to have happened.
 */
export class StepStore {
  /** Most steps never look at it. */
  readonly #store: () => Store
  readonly #writes: StepWrites

  constructor(store: () => Store, writes: StepWrites) {
    this.#store = store
    this.#writes = writes
  }

  static {
    addWrite = (store, write) => store.#writes.add(write)
  }

  scope(scope: ScopeInput): StepScope {
    return new StepScope(this.#store().scope(scope), this.#writes)
  }
}

/** A scope of the store as a step sees it. */
export class StepScope {
  readonly #scope: Scope
  readonly #writes: StepWrites

  constructor(scope: Scope, writes: StepWrites) {
    this.#scope = scope
    this.#writes = writes
  }

  collection<Schema extends StandardSchema>(
    name: string,
    options: CollectionOptions & { readonly schema: Schema },
  ): StepCollection<SchemaOutput<Schema>, SchemaInput<Schema>>
  collection<Held = Value>(name: string, options?: Omit<CollectionOptions, 'schema'>): StepCollection<Held>
  collection(name: string, options: CollectionOptions = {}): StepCollection<unknown> {
    return new StepCollection(this.#scope.collection(name, options), this.#writes)
  }
}

/** A collection as a step sees it: it reads what is there, and its own writes land when the step is recorded. */
export class StepCollection<Output = Value, Input = Output> {
  readonly #collection: Collection<Output, Input>
  readonly #writes: StepWrites

  constructor(collection: Collection<Output, Input>, writes: StepWrites) {
    this.#collection = collection
    this.#writes = writes
  }

  get(key: string): Promise<Item<Output> | undefined> {
    return this.#collection.get(key)
  }

  getMany(keys: readonly string[]): Promise<ReadonlyMap<string, Item<Output>>> {
    return this.#collection.getMany(keys)
  }

  list(query?: ListQuery): Promise<ItemPage<Output>> {
    return this.#collection.list(query)
  }

  search(query?: SearchQuery): Promise<ItemPage<Output>> {
    return this.#collection.search(query)
  }

  /** Written when the step is recorded. */
  put(key: string, value: Input, options: { readonly ttlMs?: number | null } = {}): Promise<void> {
    return this.#writes.begin(this.#collection.write.put(key, value, options))
  }

  /** Removed when the step is recorded. */
  delete(key: string): void {
    this.#writes.add(this.#collection.write.delete(key))
  }
}

/** What a collection of a scope is called among all items: for `put` of the internals. */
export function spaceOf(scope: ScopeInput, collection: string): string {
  return encodeSpace(encodeScope(scope), collection)
}

/** What the code of a step writes to the store, whether or not it waits for it. */
export class StepWrites {
  readonly #made: StoreWrite[]
  /** Begun and not yet known, with what the code was handed for it. */
  #begun: Map<Promise<void>, Promise<void>> | undefined

  constructor(made: StoreWrite[]) {
    this.#made = made
  }

  add(write: StoreWrite): void {
    this.#made.push(write)
  }

  /** A write whose value is still being checked. */
  begin(writing: Promise<StoreWrite>): Promise<void> {
    const added = writing.then((write) => this.add(write))
    this.#begun ??= new Map()
    const begun = this.#begun
    const forget = () => begun.delete(added)
    const handed = added.then(noop)
    begun.set(added, handed)
    added.then(forget, forget)
    return handed
  }

  /**
   * Resolves when the writes that were begun are known; undefined if all are. A step that ended before would be recorded
   * without those that its code did not wait for. Rejects if one of them can't be made.
   */
  settled(): Promise<unknown> | undefined {
    if (this.#begun === undefined || this.#begun.size === 0) return undefined
    // Whoever waits here reports the failure: nobody else does if the code did not wait.
    for (const handed of this.#begun.values()) handed.catch(noop)
    return Promise.all(this.#begun.keys())
  }
}
