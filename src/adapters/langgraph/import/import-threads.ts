import type { Checkpoint, CheckpointMetadata, PendingWrite, SerializerProtocol } from '@langchain/langgraph-checkpoint'
import type { Holdfast } from '../../../index.js'
import { checkOptionNames } from '../../../internal.js'
import { HoldfastSaver } from '../saver/saver.js'
import { type LangGraphSource, openSource, type Serialized, type SourceCheckpoint, type SourceWrite } from './source.js'

/** What to import, and how to follow the progress. */
export interface LangGraphImportOptions {
  /** Only these threads. */
  readonly threads?: readonly string[]
  readonly signal?: AbortSignal
  readonly onProgress?: (report: LangGraphImportReport) => void
}

/** What was imported, and what was not. */
export interface LangGraphImportReport {
  readonly threads: number
  readonly checkpoints: number
  readonly writes: number
  /** Checkpoints that were already here. */
  readonly same: number
  /** Threads of which nothing was imported, each with the reason. */
  readonly failed: readonly { readonly thread: string; readonly message: string }[]
  /** What else could not be imported, in plain words. */
  readonly notes: readonly string[]
  /** False if `signal` stopped it. */
  readonly complete: boolean
}

type Counts = { -readonly [Name in keyof LangGraphImportReport]: LangGraphImportReport[Name] } & {
  failed: { readonly thread: string; readonly message: string }[]
  notes: string[]
}

const PAGE = 100

/**
 * Imports threads that the official SQLite or Postgres saver of LangGraph.js wrote: checkpoints with their ids, parents
 * and metadata, forks, subgraphs, pending writes and interrupts. A graph with a `HoldfastSaver` then continues them.
 * The database is only read. Importing again brings over what is new.
 */
export async function importLangGraph(
  database: string,
  hf: Holdfast,
  options: LangGraphImportOptions = {},
): Promise<LangGraphImportReport> {
  checkOptionNames('importLangGraph()', options, { threads: true, signal: true, onProgress: true })
  const source = await openSource(database)
  const report: Counts = { threads: 0, checkpoints: 0, writes: 0, same: 0, failed: [], notes: [], complete: true }
  // Nothing read from a database is the same object as before: only a full comparison finds what is equal.
  const saver = new HoldfastSaver(hf, { compare: 'all' })
  try {
    for await (const thread of threadsOf(source, options.threads)) {
      if (options.signal?.aborted) break
      await importThread(source, saver, thread, report)
      options.onProgress?.(report)
    }
    report.notes.push(...(await source.besides()))
  } finally {
    await source.close()
  }
  return { ...report, complete: options.signal?.aborted !== true }
}

async function* threadsOf(source: LangGraphSource, only: readonly string[] | undefined): AsyncGenerator<string> {
  if (only !== undefined) {
    yield* only
    return
  }
  for (let after: string | undefined; ; ) {
    const page = await source.threads(after, PAGE)
    yield* page
    after = page.at(-1)
    if (page.length < PAGE) return
  }
}

async function importThread(
  source: LangGraphSource,
  saver: HoldfastSaver,
  thread: string,
  report: Counts,
): Promise<void> {
  const checkpoints = await source.checkpoints(thread)
  const fail = (message: string): void => void report.failed.push({ thread, message })
  if (checkpoints.length === 0) return fail('There is no thread of this name in the database.')
  const begun = await isBegun(saver, thread, checkpoints)
  if (begun === 'another')
    return fail('There already is another thread with this name. Erase it, or use another tenant.')
  const counts = { checkpoints: 0, writes: 0, same: 0 }
  try {
    const decoded = await decodeAll(saver.serde, checkpoints, await source.writes(thread))
    for (const one of decoded.checkpoints) await put(saver, thread, one, counts)
    report.notes.push(...decoded.notes.map((note) => `thread ${thread}: ${note}`))
  } catch (error) {
    // Half a thread would continue from an older state than it had. One that was here before is left as it was.
    if (begun === 'no') await saver.deleteThread(thread)
    return fail(error instanceof Error ? error.message : String(error))
  }
  report.threads++
  report.checkpoints += counts.checkpoints
  report.writes += counts.writes
  report.same += counts.same
}

/** Whether an earlier import began with this thread, or somebody else has one of its name. */
async function isBegun(
  saver: HoldfastSaver,
  thread: string,
  checkpoints: readonly SourceCheckpoint[],
): Promise<'no' | 'yes' | 'another'> {
  for await (const _ of saver.list({ configurable: { thread_id: thread } }, { limit: 1 })) {
    const { ns, id } = checkpoints[0] as SourceCheckpoint
    return (await saver.getTuple(configOf(thread, ns, id))) === undefined ? 'another' : 'yes'
  }
  return 'no'
}

interface Decoded {
  readonly source: SourceCheckpoint
  readonly checkpoint: Checkpoint
  readonly metadata: CheckpointMetadata
  readonly tasks: ReadonlyMap<string, readonly { readonly index: number; readonly write: PendingWrite }[]>
}

/** All of a thread before any of it is written, so that a value that can't be read leaves nothing behind. */
async function decodeAll(
  serde: SerializerProtocol,
  checkpoints: readonly SourceCheckpoint[],
  writes: readonly SourceWrite[],
): Promise<{ readonly checkpoints: readonly Decoded[]; readonly notes: readonly string[] }> {
  const notes: string[] = []
  const known = new Set(checkpoints.map(({ ns, id }) => `${ns}\n${id}`))
  const waiting = new Map<string, SourceWrite[]>()
  for (const write of writes) {
    const place = `${write.ns}\n${write.checkpoint}`
    if (!known.has(place))
      notes.push(`a write to "${write.channel}" waits for checkpoint ${write.checkpoint}, which is gone`)
    else waiting.set(place, [...(waiting.get(place) ?? []), write])
  }
  const decoded: Decoded[] = []
  for (const source of checkpoints) {
    const { ns, id, parent } = source
    if (parent !== undefined && !known.has(`${ns}\n${parent}`))
      notes.push(`the parent ${parent} of checkpoint ${id} is gone; its history begins there`)
    const values = source.values && (await loadEach(serde, source.values))
    const loaded = (await load(serde, source.checkpoint)) as Checkpoint
    const checkpoint = values === undefined ? loaded : { ...EMPTY, ...loaded, channel_values: values }
    const metadata = (await load(serde, source.metadata)) as CheckpointMetadata
    const tasks = new Map<string, { readonly index: number; readonly write: PendingWrite }[]>()
    for (const { task, index, channel, value } of waiting.get(`${ns}\n${id}`) ?? []) {
      const write = { index, write: [channel, await load(serde, value)] as PendingWrite }
      tasks.set(task, [...(tasks.get(task) ?? []), write])
    }
    decoded.push({ source, checkpoint, metadata, tasks })
  }
  return { checkpoints: decoded, notes }
}

const EMPTY = { channel_versions: {}, versions_seen: {} }

async function put(
  saver: HoldfastSaver,
  thread: string,
  { source, checkpoint, metadata, tasks }: Decoded,
  counts: { checkpoints: number; writes: number; same: number },
): Promise<void> {
  const { ns, id, parent } = source
  const isHere = (await saver.getTuple(configOf(thread, ns, id))) !== undefined
  if (isHere) counts.same++
  else {
    await saver.put(configOf(thread, ns, parent), checkpoint, metadata)
    counts.checkpoints++
  }
  for (const [task, writes] of tasks) {
    // Apart, as LangGraph writes them: a special write replaces one that is there, an ordinary one does not.
    const special = writes.filter(({ index }) => index < 0).map(({ write }) => write)
    const ordinary = writes.filter(({ index }) => index >= 0).map(({ write }) => write)
    for (const some of [ordinary, special]) {
      if (some.length > 0) await saver.putWrites(configOf(thread, ns, id), some, task)
    }
    if (!isHere) counts.writes += writes.length
  }
}

function configOf(thread: string, ns: string, id: string | undefined) {
  return { configurable: { thread_id: thread, checkpoint_ns: ns, ...(id === undefined ? {} : { checkpoint_id: id }) } }
}

async function loadEach(
  serde: SerializerProtocol,
  values: ReadonlyMap<string, Serialized>,
): Promise<Record<string, unknown>> {
  const loaded: Record<string, unknown> = {}
  for (const [channel, value] of values) loaded[channel] = await load(serde, value)
  return loaded
}

// What a jsonb column made of it is read as the official saver reads it: written and read once more.
async function load(serde: SerializerProtocol, value: Serialized): Promise<unknown> {
  if (!('json' in value)) return serde.loadsTyped(value.type, value.bytes)
  const [type, bytes] = await serde.dumpsTyped(value.json)
  return serde.loadsTyped(type, bytes)
}
