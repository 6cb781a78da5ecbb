import { MAIN_BRANCH, parseThreadId } from '../../core/ids.js'
import type { LogKey } from '../../log/contract.js'
import type { Log } from '../../log/log.js'
import type { LogStore } from '../../log/log-store.js'
import type { Follower } from '../../log/news/follower.js'
import { isAtRest, isOnlyWaiting, isUnfinished } from '../run/state/read-run-state.js'
import type { RunState, Waiting } from '../run/state/run-state.js'
import { inputKeyOf } from './child-records.js'

export type WaitForChild = Waiting & { readonly kind: 'child' }

const POLL_MS = 500

interface Watched {
  readonly log: Log
  readonly follower: Follower
}

/**
 * Tells whether a thread is at rest together with all threads that it awaits: a run that waits for another one in
 * progress continues by itself. Follows those as well while it is open.
 */
export class FamilyRest {
  readonly #logs: LogStore
  readonly #watched = new Map<string, Watched>()
  #wake = () => {}
  /** One of those that are awaited may have continued since the last look. */
  isReady = false
  #closed = false

  constructor(logs: LogStore) {
    this.#logs = logs
  }

  /** Calls back when one of those that are awaited continued. */
  attach(wake: () => void): void {
    this.#wake = wake
  }

  /** @param log as new as the question. */
  async isAtRest(log: Log): Promise<boolean> {
    this.isReady = false
    if (!isAtRest(log.fold, this.#logs.clock.now())) return false
    for (const wait of awaitedBy((log.fold.state as RunState).run)) {
      const child = await this.#watch(childLog(log.key, wait))
      if (!this.#isSilent(child, wait) || !(await this.isAtRest(child))) return false
    }
    return true
  }

  /** Whether nothing is to be heard of an awaited run by itself. One that is over, or about to begin, is about to tell. */
  #isSilent({ fold }: Log, { child }: WaitForChild): boolean {
    return isBehindAnother(fold.state as RunState, inputKeyOf(child)) || isOnlyWaiting(fold, this.#logs.clock.now())
  }

  close(): void {
    this.#closed = true
    for (const { follower } of this.#watched.values()) follower.close()
  }

  async #watch(key: LogKey): Promise<Log> {
    const known = this.#watched.get(key.thread)
    if (known) {
      await known.log.refresh()
      return known.log
    }
    const log = await this.#logs.open(key)
    const follower = log.follow()
    this.#watched.set(key.thread, { log, follower })
    if (this.#closed) follower.close()
    else void this.#tell(follower)
    return log
  }

  async #tell(follower: Follower): Promise<void> {
    while (!this.#closed) {
      await follower.rest(POLL_MS)
      this.isReady = true
      this.#wake()
    }
  }
}

/** The threads that a run at rest waits for. */
export function awaitedBy(run: { readonly waiting?: readonly Waiting[] } | undefined): readonly WaitForChild[] {
  return (run?.waiting ?? []).filter((wait): wait is WaitForChild => wait.kind === 'child')
}

function childLog({ tenant }: LogKey, { thread }: WaitForChild): LogKey {
  return { tenant, thread: parseThreadId(thread), branch: MAIN_BRANCH }
}

/** Whether an input has its turn only when another run of its thread is over, which may have failed or be parked. */
function isBehindAnother({ run, inputs = [] }: RunState, key: string): boolean {
  const at = inputs.findIndex((input) => input.key === key)
  return at > 0 || (at === 0 && isUnfinished(run))
}
