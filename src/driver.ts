export type { Clock } from './core/clock.js'
export { systemClock } from './core/system-clock.js'
export {
  type Append,
  type AppendResult,
  type BlobInfo,
  type BlobWriter,
  type Capabilities,
  type Driver,
  DUE,
  type Survives,
  type EraseRequest,
  type Expect,
  type Hash,
  type Head,
  type HeadPage,
  type HeadQuery,
  type IndexFields,
  type Lease,
  type LeaseChange,
  type LogKey,
  type MetadataValue,
  type Origin,
  type PossibleLoss,
  type RecentTail,
  type Scrubbed,
  type SqlSession,
  type StoredEntry,
  type StoredHeader,
  type Survival,
  type Tail,
  type Tombstone,
} from './log/contract.js'
export type { CopyDriver, NamedTombstone, TombstonePage } from './log/copy-contract.js'
export type {
  CarriedWrite,
  ItemDriver,
  ItemScan,
  ItemWrite,
  ItemWriteResult,
  NewItem,
  StoredItem,
} from './log/store-contract.js'
export { openDriver } from './open.js'
