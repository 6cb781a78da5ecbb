import type { BaseCheckpointSaver, BaseStore } from '@langchain/langgraph-checkpoint'
import type { StepContext } from '../../../index.js'
import type { HoldfastSaver } from '../saver/saver.js'
import { type CompiledGraph, type GraphConfig, placeOf, withSaver } from './compiled-graph.js'
import { type GraphRequest, readConfig, toCommand } from './graph-request.js'
import { GraphChunks } from './graph-chunks.js'
import { type Asking, type PendingInterrupt, pendingInterrupts } from './pending-interrupts.js'
import { StampedSaver } from './stamped-saver.js'

/** How far a graph got: where it is, what it would do next, and what it asks. */
export interface TurnEnd {
  readonly checkpoint: string | null
  readonly next: readonly string[]
  readonly interrupts: readonly PendingInterrupt[]
}

/** What one turn is about. */
export interface Turn {
  readonly graph: CompiledGraph
  readonly saver: HoldfastSaver
  readonly store: BaseStore
  readonly namespaces: Asking['namespaces']
  readonly name: string
  readonly thread: string
  readonly run: string
  readonly request: GraphRequest
  /** What the graph asked before, and the answers by id. Undefined in the first turn of a run. */
  readonly answered?: {
    readonly asked: readonly PendingInterrupt[]
    readonly answers: Readonly<Record<string, unknown>>
  }
}

/**
 * Runs a graph until it ends or asks. May be repeated after a crash at any moment: it continues from the newest
 * checkpoint, and passes the graph its input, or an answer, only if the graph has not taken it yet.
 */
export async function runTurn(turn: Turn, step: StepContext): Promise<TurnEnd> {
  const { saver, store, name, thread, run, request } = turn
  const own = { run_id: run, graph_id: name, thread_id: thread }
  const stamp = {
    metadata: { ...request.metadata, ...own },
    abort: step.abortSignal,
    heartbeat: () => step.heartbeat(),
  }
  const stamped = new StampedSaver(saver, stamp)
  const graph = withSaver(turn.graph, stamped, store)
  const head: GraphConfig = { configurable: { thread_id: thread, checkpoint_ns: '' } }
  const { configurable, options } = readConfig(request)
  const asking: Asking = { graph, saver: stamped, head, namespaces: turn.namespaces }
  const { input, checkpoint } = await inputOf(turn, asking)
  const chunks = new GraphChunks(request.modes ?? ['values'], (chunk) => step.emit({ langgraph: chunk }))
  const stream = await graph.stream(input, {
    ...options,
    configurable: {
      ...configurable,
      ...own,
      ...(request.by === undefined ? {} : { langgraph_auth_user_id: request.by }),
      ...(checkpoint === undefined ? {} : { checkpoint_id: checkpoint, checkpoint_ns: '' }),
    },
    metadata: stamp.metadata,
    signal: step.abortSignal,
    streamMode: chunks.graphModes,
    subgraphs: request.subgraphs === true,
  })
  for await (const chunk of stream) chunks.add(chunk as readonly unknown[])
  step.abortSignal.throwIfAborted()
  const snapshot = await graph.getState(head)
  const interrupts = await pendingInterrupts(asking)
  return { checkpoint: placeOf(snapshot.config).id ?? null, next: [...snapshot.next], interrupts }
}

/** What is passed to the graph now: null means to continue from where it is. */
async function inputOf(turn: Turn, asking: Asking) {
  const { request, answered, thread, run } = turn
  const { graph, saver, head } = asking
  const { command } = request
  if (answered !== undefined) {
    const { asked, answers } = answered
    const open = new Set((await pendingInterrupts(asking)).map(({ place }) => place))
    const resume = Object.fromEntries(asked.filter(({ place }) => open.has(place)).map(({ id }) => [id, answers[id]]))
    const more = command !== undefined && !(await isOurs(saver, head, run)) ? command : {}
    const given = { ...more, resume: Object.keys(resume).length > 0 ? resume : undefined }
    const isEmpty = given.resume === undefined && (given.update ?? given.goto ?? null) === null
    return { input: isEmpty ? null : await toCommand(given) }
  }
  if (await isOurs(saver, head, run)) return { input: null }
  let { checkpoint } = request
  if (request.rollback !== undefined) {
    checkpoint = await before(graph, head, request.rollback)
    if (checkpoint === undefined) await saver.deleteThread(thread)
  }
  const place = checkpoint === undefined ? {} : { checkpoint }
  if (command !== undefined) return { input: await toCommand(command), ...place }
  return { input: request.input ?? null, ...place }
}

/** Whether the newest checkpoint is of this run: then its input was taken. */
async function isOurs(saver: BaseCheckpointSaver, head: GraphConfig, run: string): Promise<boolean> {
  const tuple = await saver.getTuple(head)
  return (tuple?.metadata as Record<string, unknown> | undefined)?.['run_id'] === run
}

/** The newest checkpoint that is not of a run. */
async function before(graph: CompiledGraph, head: GraphConfig, run: string): Promise<string | undefined> {
  for await (const { config, metadata } of graph.getStateHistory(head)) {
    if (metadata?.['run_id'] !== run) return placeOf(config).id
  }
  return undefined
}
