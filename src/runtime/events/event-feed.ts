import type { Draft } from '../../log/entry/draft.js'
import type { Fold } from '../../log/entry/fold.js'
import type { Log } from '../../log/log.js'
import type { ClaimEntry } from '../../log/write/claim-options.js'
import { formatCheckpointId } from '../../log/entry/checkpoint-id.js'
import type { State } from '../../log/entry/ops.js'
import { entryEvents, type LiveEvent, type RunEvent } from './events.js'

/** For runs that nobody listens to. */
export function unheard(): void {}

/**
 * Reports what happens on a log to a listener, in the order of its entries and without a gap: what others wrote in the
 * meantime, such as an answer, is read and reported first. So the id of any event is a place to reconnect at, with
 * nothing before it left out.
 */
export class EventFeed {
  readonly #emit: (event: RunEvent) => void
  readonly #live: ((event: RunEvent) => void) | undefined
  readonly #log: Log | undefined
  /** The newest entry that was reported. */
  #told: number
  #id: string
  /** The log as it was claimed: what comes right after it is read without reading the log again. */
  readonly #before: Fold | undefined
  readonly #claimed: readonly ClaimEntry[]
  #telling: Promise<void> | undefined

  constructor(
    emit: (event: RunEvent) => void,
    start: {
      readonly log?: Log
      /** The entries that the log was claimed with. */
      readonly claimed: readonly ClaimEntry[]
      readonly id: string
      readonly before?: Fold
      /** Told of live events also where nobody follows this run itself. */
      readonly live?: (event: RunEvent) => void
    },
  ) {
    this.#emit = emit
    this.#live = start.live
    this.#log = emit === unheard ? undefined : start.log
    this.#claimed = start.claimed
    this.#told = (start.claimed[0]?.seq ?? 0) - 1
    this.#id = start.id
    this.#before = start.before
  }

  /** Reports what the log was claimed with. */
  begin(): void {
    // Claims leave the program's state alone, so what it was before them is not needed.
    for (const { draft, ...entry } of this.#claimed) this.recorded(draft, entry, {})
  }

  live(event: LiveEvent): void {
    this.#inTurn(() => {
      const told = { ...event, id: this.#id }
      this.#emit(told)
      this.#live?.(told)
    })
  }

  /** An acknowledged entry of ours; without one, for a run that keeps nothing. */
  recorded(draft: Draft, entry: { readonly id: string; readonly seq: number } | undefined, before: State): void {
    if (this.#emit === unheard) {
      this.#id = entry?.id ?? this.#id
      return
    }
    if (entry) this.#catchUp(entry.seq - 1)
    const events = entryEvents(entry ?? { id: '', seq: -1 }, draft, before)
    if (entry) this.#told = entry.seq
    this.#inTurn(() => {
      this.#id = entry?.id ?? ''
      for (const event of events) this.#emit(event)
    })
  }

  /** Reports everything up to an entry that was not reported yet. */
  #catchUp(seq: number): void {
    const log = this.#log
    const from = this.#told + 1
    if (log === undefined || from > seq) return
    this.#told = seq
    this.#inTurn(async () => {
      // Guests leave the program's state alone, so what it was before them is not needed.
      for await (const { header, hash, body } of log.entries(from, seq, this.#before)) {
        this.#id = formatCheckpointId(log.key.branch, header.seq, hash)
        for (const event of entryEvents({ id: this.#id, seq: header.seq }, body, {})) this.#emit(event)
      }
    })
  }

  /** Resolves when everything was reported; undefined if it was. */
  ended(): Promise<void> | undefined {
    return this.#telling?.then(() => this.ended())
  }

  // Immediately if nothing is waiting, so that tokens are not delayed by a turn of the event loop each.
  #inTurn(tell: () => void | Promise<void>): void {
    if (this.#telling === undefined) {
      const told = tell()
      if (told === undefined) return
      this.#wait(told)
    } else this.#wait(this.#telling.then(tell))
  }

  #wait(turn: Promise<void>): void {
    // What can't be read now is not reported; it is in the log, where `thread.events` finds it or says what is wrong.
    const telling = turn
      .catch(() => {})
      .finally(() => {
        if (this.#telling === telling) this.#telling = undefined
      })
    this.#telling = telling
  }
}
