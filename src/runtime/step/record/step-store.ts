import type { Value } from '../../../codec/value.js'
import type { Collection } from '../../../store/collection.js'
import type { CollectionOptions } from '../../../store/collection-options.js'
import type { Item, ItemPage, ListQuery, SearchQuery } from '../../../store/item.js'
import { encodeScope, encodeSpace, type ScopeInput } from '../../../store/space.js'
import type { SchemaInput, SchemaOutput, StandardSchema } from '../../../store/standard-schema.js'
import type { Scope, Store } from '../../../store/store.js'
import type { StoreWrite } from '../../../log/items/store-write.js'
import type { StepWrites } from './step-writes.js'

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
