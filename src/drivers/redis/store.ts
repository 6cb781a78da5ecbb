import type { DataLossError } from '../../core/errors.js'
import type { Reply } from './client.js'
import type { Connection } from './connection.js'
import { lostStore } from './server/errors.js'
import type { Generation, Trust } from './server/generations.js'
import type { Keys } from './rows/keys.js'
import type { Scripts } from './scripts.js'

/** What every operation of an open store needs. */
export interface Store {
  readonly prefix: string
  readonly connection: Connection
  readonly scripts: Scripts
  readonly keys: Keys
  /** The member of each bucket's index by which scripts see that the bucket still is what it was. */
  readonly marker: string
  /** By bucket. */
  readonly generations: Generation[]
  trust: Trust
}

/** A script answers 'lost' when it finds nothing and the marker is gone as well: that is no absence. */
export function checkLost(store: Store, reply: Reply): Reply {
  if (reply === 'lost' || (Buffer.isBuffer(reply) && reply.length === 4 && reply.toString() === 'lost')) {
    throw loseStore(store)
  }
  return reply
}

/** From here on every operation of this driver is refused: going on would write beside a hole. */
export function loseStore(store: Store): DataLossError {
  store.connection.lost ??= lostStore(store.prefix, store.keys.buckets.length)
  return store.connection.lost
}
