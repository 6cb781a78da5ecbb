import type { RunEvent, ThreadView } from '../../index.js'
import { nameLog } from '../../core/log-name.js'
import { HttpProblem } from '../http/problem.js'
import { isEventId, seqOf } from './event-position.js'
import type { LiveHub, LivePlace, LiveSubscription } from './live-hub.js'

/** Where a reader of a thread is: the last record seen, and the last live event. */
export interface Cursor {
  /** Undefined: before the first record. */
  readonly after: string | undefined
  readonly live: LivePlace | undefined
}

/** An event with the cursor to come back with after it. */
export interface Followed {
  readonly cursor: string
  readonly event: RunEvent
}

const WITH_LIVE = /^(.*);([0-9a-f]{8})\.(\d{1,15})$/

function writeCursor({ after, live }: Cursor): string {
  return live === undefined ? (after ?? '') : `${after ?? ''};${live.hub}.${live.n}`
}

/** Reads what a client was told to come back with. */
export function readCursor(text: string): Cursor {
  const [, after = text, hub, n] = WITH_LIVE.exec(text) ?? []
  if (after !== '' && !isEventId(after)) {
    throw new HttpProblem(400, 'invalid-id', 'The event id was not issued by this server.', {
      remedy: 'Send the last id of the stream, or none.',
      fields: { field: 'Last-Event-ID' },
    })
  }
  return {
    after: after === '' ? undefined : after,
    live: hub === undefined ? undefined : { hub, n: Number(n) },
  }
}

/**
 * Everything that happens on a thread from a cursor on, until the signal: records from the log, in order, none left out
 * and none twice; between them, where it runs in this process, tokens and what else is live. A reader that comes back
 * is given what was kept of steps that are still in progress.
 * @param listening what has listened for this reader since before the run was asked for.
 */
export async function* followThread(
  view: ThreadView<unknown, unknown>,
  hub: LiveHub,
  from: Cursor,
  signal: AbortSignal,
  listening?: LiveSubscription,
): AsyncGenerator<Followed> {
  const stop = new AbortController()
  const letGo = () => stop.abort()
  signal.addEventListener('abort', letGo, { once: true })
  if (signal.aborted) letGo()
  const live = listening ?? hub.subscribe(nameLog(view.key), from.live)
  let { after } = from
  const cursor = () => writeCursor({ after, live: live.seen < 0 ? undefined : { hub: hub.id, n: live.seen } })
  const events = view.events({
    ...(after === undefined ? {} : { after }),
    untilRest: false,
    signal: stop.signal,
  })
  // It may fail while its reader is busy, which must not count as a failure that nobody looks at.
  const ask = () => {
    const asked = events.next()
    asked.catch(() => {})
    return asked
  }
  let next = ask()
  try {
    for (;;) {
      for (let found = live.take(seqOf(after)); found; found = live.take(seqOf(after))) {
        yield { cursor: cursor(), event: found.event }
      }
      // Whoever reads this slowly would get pieces of text with holes in between.
      if (live.isOverflowed) return
      const got = await Promise.race([next, live.more()])
      if (stop.signal.aborted) return
      if (got === undefined) continue
      if (got.done) return
      for (let found = live.take(seqOf(after)); found; found = live.take(seqOf(after))) {
        yield { cursor: cursor(), event: found.event }
      }
      after = got.value.id
      next = ask()
      yield { cursor: cursor(), event: got.value }
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error
  } finally {
    signal.removeEventListener('abort', letGo)
    stop.abort()
    live.close()
    await events.return(undefined).catch(() => {})
  }
}
