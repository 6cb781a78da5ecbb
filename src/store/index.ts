export type { EmbedOptions } from './embedding.js'
export type { FieldInput } from './field.js'
export type { Clause, Filter, Operators } from './filter.js'
export type {
  BatchOperation,
  BatchResult,
  ItemPage,
  ListQuery,
  PutOptions,
  SearchQuery,
  StoreWriter,
  Written,
} from './item.js'
export type { ScopeInput } from './space.js'
export type { SpaceName } from './store.js'
