export type { EmbedOptions } from './search/embedding.js'
export type { FieldInput } from './search/field.js'
export type { Clause, Filter, Operators } from './search/filter.js'
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
