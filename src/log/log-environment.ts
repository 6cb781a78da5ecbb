import type { Limits } from '../codec/limits.js'
import type { Observer } from '../telemetry/observer.js'
import type { AnchorBook } from './anchors/anchor-book.js'
import type { Driver } from './contract.js'
import type { GroupCommit } from './write/group-commit.js'
import type { ItemSealer } from './items/item-sealer.js'
import type { KeySource } from './keys/keys.js'
import type { News } from './news/news.js'
import type { StoreClock } from './store-clock.js'

/** What all logs of one open store share. */
export interface LogEnvironment {
  readonly driver: Driver
  readonly commit: GroupCommit
  /** Notifies those who wait of what is appended, here and elsewhere. */
  readonly news: News
  readonly clock: StoreClock
  readonly limits: Limits
  readonly blobThreshold: number
  readonly keys: KeySource | undefined
  /** Seals and opens the store's items. */
  readonly items: ItemSealer
  /** How long a write is retried while the backend does not answer, in milliseconds. */
  readonly retryMs: number
  readonly randomId: () => string
  /** Records elsewhere what was acknowledged, and compares. */
  readonly anchors: AnchorBook | undefined
  /** Told how long appends and loads take, how large they are, and what conflicts. */
  readonly observer: Observer
}
