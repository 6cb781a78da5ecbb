import type { BaseCheckpointSaver, CheckpointTuple } from '@langchain/langgraph-checkpoint'
import { type CompiledGraph, type GraphConfig, placeOf } from './compiled-graph.js'
import { toPlain } from './to-plain.js'

/** A question of a graph that waits for an answer. */
export interface PendingInterrupt {
  readonly id: string
  readonly value: unknown
  readonly node: string
  /**
   * Which question of its task it is. A node that asks twice uses the same id: an answer that was taken before a crash
   * must not be given to the next question.
   */
  readonly place: string
}

/** Where to look for questions. */
export interface Asking {
  readonly graph: CompiledGraph
  readonly saver: BaseCheckpointSaver
  readonly head: GraphConfig
  /** The namespaces below one that were written to since a moment. */
  readonly namespaces: (below: string, since: Date) => Promise<readonly string[]>
}

const RESUME = '__resume__'
const INTERRUPT = '__interrupt__'

/** All questions of a graph, of its subgraphs too, however those are called. */
export async function pendingInterrupts(asking: Asking): Promise<readonly PendingInterrupt[]> {
  const { graph, saver, head } = asking
  const snapshot = await graph.getState(head)
  const asked = snapshot.tasks.filter(({ interrupts }) => interrupts.length > 0)
  if (asked.length === 0) return []
  const { thread, id } = placeOf(snapshot.config)
  const read = (ns: string, checkpoint?: string) =>
    saver.getTuple({
      configurable: {
        thread_id: thread,
        checkpoint_ns: ns,
        ...(checkpoint === undefined ? {} : { checkpoint_id: checkpoint }),
      },
    })
  const since = new Date(snapshot.createdAt ?? 0)
  // Below first: that is where a question was asked, and where its answer is noted first.
  const below = await Promise.all(
    asked.map(async ({ name, id: task }) => {
      const own = `${name}:${task}`
      return Promise.all((await asking.namespaces(own, since)).map((ns) => read(ns)))
    }),
  )
  const tuples = [...below.flat(), await read('', id)].filter((tuple) => tuple !== undefined)
  const found = new Map<string, PendingInterrupt>()
  for (const { name, interrupts } of asked) {
    for (const { id: interrupt, value } of interrupts) {
      if (interrupt === undefined) continue
      const place = JSON.stringify(tuples.flatMap((tuple) => placesIn(tuple, interrupt)))
      found.set(interrupt, { id: interrupt, value: toPlain(value), node: name, place })
    }
  }
  return [...found.values()]
}

/** The tasks of a checkpoint that ask this, each with how many answers it has taken. */
function placesIn({ config, pendingWrites = [] }: CheckpointTuple, interrupt: string): readonly unknown[] {
  const { ns, id } = placeOf(config as GraphConfig)
  return pendingWrites
    .filter(([, channel, value]) => channel === INTERRUPT && isAbout(value, interrupt))
    .map(([task]) => {
      const taken = pendingWrites.filter(([of, channel]) => of === task && channel === RESUME)
      return [ns, id, task, taken.map(([, , values]) => (Array.isArray(values) ? values.length : 1))]
    })
}

function isAbout(value: unknown, interrupt: string): boolean {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value]
  return all.some((one) => (one as { readonly id?: unknown } | null)?.id === interrupt)
}
