import { checkWhole } from '../../core/wording/choices.js'
import { isHoldfastError, NotFoundError } from '../../core/errors.js'
import type { OptionNames } from '../../core/wording/option-names.js'
import { isCheckpoint, parseCheckpointId } from '../../log/entry/checkpoint-id.js'
import type { LogKey } from '../../log/contract.js'
import type { HistoryEntry, Log } from '../../log/log.js'
import { type RecordedEvent, recordedEvents } from '../events/events.js'
import { cloneValue } from '../../codec/clone.js'
import type { Value } from '../../codec/value.js'
import type { PauseRecord, RunState } from '../run/state/run-state.js'

/** An entry after which the program can continue, as history lists it: without reading what it holds. */
export interface CheckpointInfo {
  readonly id: string
  readonly seq: number
  /** What happened: `input`, `step`, `effect`, `wait`, `answer`, `end`, `fork`, `migrate` … */
  readonly kind: string
  readonly at: Date
  readonly bytes: number
  readonly hash: string
  /**
   * The nodes, tools, model calls and steps that it records, in order. Absent if only headers were requested, and if
   * the entry can't be read: damaged, or its key is missing.
   */
  readonly steps?: readonly CheckpointStep[]
  /** The events of its entry, if requested: steps, questions, answers, costs. */
  readonly events?: readonly CheckpointEvent[]
}

/** The events of an entry. Questions are named and not shown: they may be large. */
export type CheckpointEvent = RecordedEvent extends infer Event
  ? Event extends { readonly question: unknown }
    ? Omit<Event, 'question'>
    : Event
  : never

/** Which checkpoints to list. */
export interface HistoryOptions {
  /** Default 100. */
  readonly limit?: number
  /** Only what comes before this checkpoint, by its id or its seq. */
  readonly before?: string | number
  /** Also entries that are not checkpoints: claims, releases, tags. */
  readonly all?: boolean
  /**
   * True: also the events of each entry. False: only headers are read, so the steps of each are left out; the cheap way
   * to page through a long history.
   */
  readonly events?: boolean
}

export const HISTORY_OPTIONS: OptionNames<HistoryOptions> = { limit: true, before: true, all: true, events: true }

const PAGE = 100

/** One page of checkpoints, newest first. */
export async function listCheckpoints(log: Log, options: HistoryOptions = {}): Promise<readonly CheckpointInfo[]> {
  const { limit = 100, before, all = false, events } = options
  checkWhole('limit', limit, 10_000, 'Ask for pages: pass the last id of a page as `before` to get the next one.')
  const found: CheckpointInfo[] = []
  let from = typeof before === 'string' ? seqOn(log.key, before) : before
  while (found.length < limit) {
    const page = await log.history({ limit: Math.max(PAGE, limit), ...(from === undefined ? {} : { before: from }) })
    for (const entry of page)
      if ((all || isCheckpoint(entry.header.kind)) && found.length < limit) found.push(describe(entry))
    const last = page.at(-1)
    if (last === undefined || last.header.seq === 0 || page.length < PAGE) break
    from = last.header.seq
  }
  return events === false ? found : withSteps(log, found, events ?? false)
}

async function withSteps(
  log: Log,
  found: readonly CheckpointInfo[],
  events: boolean,
): Promise<readonly CheckpointInfo[]> {
  const [newest, oldest] = [found[0], found.at(-1)]
  if (newest === undefined || oldest === undefined) return found
  const said = new Map<number, Pick<CheckpointInfo, 'steps' | 'events'>>()
  try {
    for await (const { header, body } of log.entries(oldest.seq, newest.seq)) {
      const recorded = recordedEvents(body)
      said.set(header.seq, { steps: describeSteps(recorded), ...(events ? { events: recorded.map(nameOnly) } : {}) })
    }
  } catch (error) {
    // What comes after the damage is still listed: someone who looks for the last good checkpoint has to see it. And
    // callers that did not ask for the contents of entries need not have their keys.
    if (!isHoldfastError(error, 'corrupt') && (events || !isHoldfastError(error, 'missing-key'))) throw error
  }
  return found.map((info) => ({ ...info, ...(said.get(info.seq) ?? (events ? { events: [] } : {})) }))
}

function nameOnly(event: RecordedEvent): CheckpointEvent {
  if (!('question' in event)) return event
  const { question: _, ...rest } = event
  return rest
}

// A number of another branch would show a page from somewhere else.
function seqOn({ branch }: LogKey, id: string): number {
  const { branch: of, seq } = parseCheckpointId(id)
  if (of === branch) return seq
  throw new NotFoundError(`Checkpoint ${id} is of branch "${of}", not of "${branch}".`, 'Ask that branch.', {
    checkpoint: id,
    branch: of,
  })
}

function describe({ id, hash, header, storedBytes }: HistoryEntry): CheckpointInfo {
  return { id, seq: header.seq, kind: header.kind, at: new Date(header.at), bytes: storedBytes, hash }
}

/** One piece of work that an entry records, by the name it has in the program. */
export interface CheckpointStep {
  /**
   * `model` and `tool` are calls of an agent, `node` is a node of a graph, `step` is what a function named with
   * `ctx.step`.
   */
  readonly kind: 'model' | 'tool' | 'node' | 'step'
  readonly name: string
  /** Its place in the run, as events and outcomes name it. */
  readonly path: string
  readonly status: 'started' | 'completed' | 'failed' | 'unknown'
  /** Which model was called. */
  readonly model?: string
}

/** The steps of an entry. One that begins and ends in it is listed once, as it ended. */
function describeSteps(events: readonly RecordedEvent[]): readonly CheckpointStep[] {
  const steps = new Map<string, CheckpointStep>()
  for (const event of events) {
    if (event.type !== 'step') continue
    const { step: path, status } = event
    const used = events.find((one) => one.type === 'usage' && one.step === path)
    const model = used?.type === 'usage' ? used.usage.model.id : undefined
    steps.set(path, { ...nameStep(path), path, status, ...(model === undefined ? {} : { model }) })
  }
  return [...steps.values()]
}

/** `12:tool getOrder[2]` is the tool getOrder, `3:plan` the node plan, `3:plan/fetch` the step fetch. */
function nameStep(path: string): Pick<CheckpointStep, 'kind' | 'name'> {
  const last = path.slice(path.lastIndexOf('/') + 1)
  const [, task] = /^\d+:(.*)$/s.exec(last) ?? []
  if (task === undefined) return { kind: 'step', name: last }
  if (task === 'model' || task === 'compact') return { kind: 'model', name: task }
  const name = task.replace(/\[\d+\]$/, '')
  return name.startsWith('tool ') ? { kind: 'tool', name: name.slice('tool '.length) } : { kind: 'node', name }
}

/** An answer that was given, and what it answered. */
export interface GivenAnswer {
  readonly pause: string
  readonly kind: PauseRecord['kind']
  /** The step that asked. */
  readonly step: string
  readonly question: Value
  readonly value: Value
  readonly by?: string
  readonly at: Date
  readonly askedAt: Date
  /** The checkpoint that the answer created. */
  readonly checkpoint: string
}

const ANSWER_PAGE = 1000

/** The answers that people gave on a branch, newest first. Only headers are read, and the entries that hold one. */
export async function listAnswers(log: Log, limit: number): Promise<readonly GivenAnswer[]> {
  const found: GivenAnswer[] = []
  for (let before: number | undefined; found.length < limit; ) {
    const page = await log.history({ limit: ANSWER_PAGE, ...(before === undefined ? {} : { before }) })
    for (const { id, header } of page) {
      if (header.kind !== 'answer' || found.length >= limit) continue
      for await (const { body, fold } of log.entries(header.seq, header.seq)) {
        const { events = [] } = (body.data ?? {}) as { readonly events?: readonly RecordedEvent[] }
        for (const event of events) {
          if (event.type !== 'answer') continue
          const asked = (fold.state as RunState).pauses?.[event.pause]
          if (asked?.answer !== undefined) found.push(describeAnswer(asked, asked.answer, id))
        }
      }
    }
    before = page.at(-1)?.header.seq
    if (before === undefined || page.length < ANSWER_PAGE) break
  }
  return found
}

function describeAnswer(
  asked: PauseRecord,
  answer: NonNullable<PauseRecord['answer']>,
  checkpoint: string,
): GivenAnswer {
  return {
    pause: asked.id,
    kind: asked.kind,
    step: asked.path,
    question: cloneValue(asked.question),
    value: cloneValue(answer.value),
    ...(answer.by === undefined ? {} : { by: answer.by }),
    at: new Date(answer.at),
    askedAt: new Date(asked.askedAt),
    checkpoint,
  }
}
