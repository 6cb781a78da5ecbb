import { toJson } from '../../http/json.js'
import type { Call } from '../../http/route.js'
import { type ServerSentEvent, sseResponse } from '../../http/sse.js'
import type { Cursor } from '../../live/follow-thread.js'
import { followRun } from '../../run/follow-run.js'
import type { StartedRun } from '../../run/start-run.js'
import { eraseOwn, withRun } from './begin-run.js'
import { graphValues } from '../graphs/graph-threads.js'
import { GraphWriter } from '../graphs/graph-writer.js'
import { hostedOf } from '../graphs/hosted-graph.js'
import { type Ended, errorOf } from './run-values.js'
import { type Mode, StreamWriter } from './stream-writer.js'

/** Tells what happens in a run, in the modes that its client asked for. */
export function streamRun(
  call: Call,
  started: StartedRun,
  modes: readonly Mode[],
  from: Cursor | undefined,
  cancelsWhenLeft: boolean,
  isErased: boolean,
): Response {
  const { core, principal, request } = call
  const slot = core.slots.take(principal)
  const gone = new AbortController()
  const hosted = hostedOf(started.program)
  const writer =
    hosted === undefined
      ? new StreamWriter(started, modes)
      : new GraphWriter(started, modes, (checkpoint) => graphValues(call, hosted, started, checkpoint))
  let isOver = false
  const events = async function* (): AsyncGenerator<ServerSentEvent> {
    yield writer.first()
    const signal = AbortSignal.any([gone.signal, request.signal])
    for await (const news of followRun(core, started, signal, from)) {
      if (!('outcome' in news)) {
        for (const event of await writer.write(news.event)) yield { ...event, id: news.cursor }
        continue
      }
      isOver = true
      const { checkpoint } = news.outcome as Ended
      const error = errorOf(news.outcome as Ended)
      if (checkpoint !== undefined)
        for (const event of await writer.values(checkpoint)) yield { ...event, id: news.cursor }
      if (error) yield { event: 'error', data: toJson(error) }
      yield { event: 'end', data: 'null' }
    }
    if (isErased) await eraseOwn(call, started)
  }
  const response = sseResponse(events(), {
    ...core.limits,
    slot,
    stopping: core.stopping,
    onEnd() {
      gone.abort()
      // Not when the server stops: its clients come back.
      if (cancelsWhenLeft && !isOver && !core.stopping.aborted) {
        void started.thread.cancel({ by: principal.subject, reason: 'its client left' }).catch(() => {})
      }
    },
  })
  const path = `/threads/${encodeURIComponent(String(started.thread.id))}/runs/${started.run}`
  const query = new URLSearchParams(modes.map((mode): [string, string] => ['stream_mode', mode]))
  if (!cancelsWhenLeft) response.headers.set('location', `${path}/stream?${query}`)
  return withRun(response, started)
}
