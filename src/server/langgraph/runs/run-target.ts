import { isHoldfastError, type OpenPause } from '../../../index.js'
import { nameLog } from '../../../core/log-name.js'
import { mayDo } from '../../access/principal.js'
import { HttpProblem } from '../../http/problem.js'
import type { Call } from '../../http/route.js'
import type { ServerProgram } from '../../options.js'
import { type StartedRun, startRun } from '../../run/start-run.js'
import { assistantId, programNamed } from '../assistant-routes.js'
import { type Found, findThread, newestCheckpoint, statusOf } from '../threads/find-thread.js'
import { startGraph } from '../graphs/graph-run.js'
import { type GraphAsk, hostedOf } from '../graphs/hosted-graph.js'
import { fromChain } from '../messages.js'
import { createThread, label, updateState } from '../threads/change-thread.js'
import { notOffered } from '../not-offered.js'
import { checkpointOf, toAnswer } from '../threads/thread-state.js'

/** A run as a client asks for it. */
export interface RunBody {
  readonly assistant_id: string
  readonly input?: unknown
  readonly command?: { readonly resume?: unknown; readonly update?: unknown; readonly goto?: unknown } | null
  readonly checkpoint?: { readonly checkpoint_id?: string | null } | null
  readonly checkpoint_id?: string | null
  readonly metadata?: Readonly<Record<string, unknown>> | null
  readonly multitask_strategy?: 'reject' | 'interrupt' | 'rollback' | 'enqueue' | null
  readonly if_not_exists?: 'create' | 'reject' | null
  readonly config?: Readonly<Record<string, unknown>> | null
  readonly context?: unknown
  readonly stream_mode?: unknown
  readonly stream_subgraphs?: boolean | null
  readonly interrupt_before?: readonly string[] | '*' | null
  readonly interrupt_after?: readonly string[] | '*' | null
  readonly durability?: string | null
  readonly checkpoint_during?: boolean | null
}

/** Starts what a client asks for, on the branch where it belongs. */
export async function startOn(call: Call, id: string, body: RunBody): Promise<StartedRun> {
  const program = programNamed(call.core, body.assistant_id)
  const hosted = hostedOf(program)
  refuseUnknown(body, hosted !== undefined)
  let found = await findThread(call, id)
  if (found === undefined) {
    if (body.if_not_exists !== 'create')
      throw new HttpProblem(404, 'not-found', `There is no thread "${id.slice(0, 100)}".`)
    await createThread(call.hf, id, body.metadata ?? {})
    found = (await findThread(call, id)) as Found
  }
  // Clients find their threads by these.
  const { name } = program.plan
  await label(call.hf, found, { ...body.metadata, graph_id: name, assistant_id: assistantId(name) })
  const isBusy = statusOf(found) === 'busy'
  const strategy = body.multitask_strategy ?? 'enqueue'
  if (isBusy && strategy === 'reject') throw busy()
  const { command } = body
  const hasResume = command?.resume !== undefined && command.resume !== null
  if (hosted !== undefined) {
    // Answered as a question of the thread, by whoever it was, unless there is more to it.
    const isAnswer = hasResume && (command.update ?? command.goto ?? null) === null && found.facts.pauses.length > 0
    return isAnswer
      ? resume(call, found, program, command.resume)
      : startGraph(call, found, program, hosted, body, isBusy)
  }
  if (hasResume) return resume(call, found, program, command.resume)
  const branch = await branchFor(call, found, body, isBusy && strategy === 'rollback')
  const hasInput = body.input !== undefined && body.input !== null
  if (!hasInput && found.facts.run === undefined && branch === 'main')
    throw wrong('input', 'is missing, and nothing waits to be run')
  if (!hasInput) return goOn(call, id, branch, program)
  const started = await startRun(call.core, call.hf, {
    thread: id,
    branch,
    program: name,
    input: inputOf(program, body.input),
    // A run that waits for somebody, or failed, is not at work: new input takes its place.
    busy: isBusy && strategy === 'enqueue' ? 'queue' : isBusy && strategy === 'reject' ? 'reject' : 'interrupt',
  })
  return started
}

/** Where to run: on the current branch, or on a new one from an older checkpoint, a change of the state, or a rollback. */
async function branchFor(call: Call, found: Found, body: RunBody, isRollback: boolean): Promise<string> {
  const { hf } = call
  const view = hf.inspect(found.id, { branch: found.summary.branch })
  const update = body.command?.update as Readonly<Record<string, unknown>> | null | undefined
  if (update !== undefined && update !== null) {
    return updateState(call, found, checkpointOf(body) ?? found.summary.checkpoint, update)
  }
  if (isRollback) {
    await view.cancel({ by: call.principal.subject, reason: 'rolled back' })
    return forkAtRest(call, found, found.summary.checkpoint, found.facts.run?.id)
  }
  const checkpoint = checkpointOf(body)
  // The newest one is sent along with every submit, and means: go on.
  if (checkpoint === undefined || checkpoint === (await newestCheckpoint(hf, found))) return found.summary.branch
  if (body.input !== undefined && body.input !== null) return forkAtRest(call, found, checkpoint, undefined)
  return (await hf.inspect(found.id).look(checkpoint).fork()).branch
}

/**
 * A branch of the newest checkpoint up to this one at which nothing was in progress: that is where new input belongs.
 */
async function forkAtRest({ hf }: Call, found: Found, checkpoint: string, not: string | undefined): Promise<string> {
  const at = hf.inspect(found.id).look(checkpoint)
  const view = hf.inspect(found.id, { branch: at.branch })
  const older = await view.history({ events: false, limit: 10_000, all: true, before: checkpoint })
  for (const id of [checkpoint, ...older.map((item) => item.id)]) {
    const look = view.look(id)
    const { inputs = [], run } = (await look.fold()).state as {
      inputs?: readonly unknown[]
      run?: { id: string; status: string }
    }
    const isOver = run === undefined || run.status === 'completed' || run.status === 'cancelled'
    if (inputs.length === 0 && isOver && (not === undefined || run?.id !== not)) return (await look.fork()).branch
  }
  // Its first run began with its first entry: nothing comes before that.
  const { facts } = found
  const empty = 'messages' in facts.state ? { set: { messages: [] } } : {}
  return (await view.look(facts.id).fork(empty)).branch
}

/** Answers what the thread asks. */
async function resume(call: Call, found: Found, program: ServerProgram, given: unknown): Promise<StartedRun> {
  if (!mayDo(call.principal, 'answer')) {
    throw new HttpProblem(403, 'not-allowed', 'Resuming with an answer needs the role "answer".', {
      fields: { role: 'answer' },
    })
  }
  const isGraph = hostedOf(program) !== undefined
  const pauses = found.facts.pauses.map((pause) => ({ pause, id: isGraph ? askedBy(pause) : pause.id }))
  if (pauses.length === 0) throw wrong('command.resume', 'answers nothing: the thread asks no question')
  const byId = given as Readonly<Record<string, unknown>>
  const isMap =
    typeof given === 'object' && given !== null && Object.keys(given).some((key) => pauses.some(({ id }) => id === key))
  if (!isMap && pauses.length > 1)
    throw wrong('command.resume', 'must name each interrupt by its id: there are several')
  const { thread } = await call.core.thread(call.hf, found.id, found.summary.branch)
  const early = call.core.hub.expect(nameLog(thread.key))
  const answers = pauses
    .filter(({ id }) => !isMap || Object.hasOwn(byId, id))
    .map(({ pause, id }) => {
      const said = isMap ? byId[id] : given
      return { pause: pause.id, value: isGraph ? (said ?? null) : toAnswer(pause, said) }
    })
  const by = { by: call.principal.subject }
  const refused = (await early.orClose(thread.answerSeveral(answers, by))).find(
    ({ error }) => !isHoldfastError(error, 'pause-closed') || error.data.reason !== 'answered',
  )
  if (refused) {
    early.take()?.close()
    throw refused.error
  }
  const request = { thread: found.id, branch: thread.branch, input: undefined }
  const run = found.facts.run?.id
  return { thread, program, request, input: 'queued', run, ended: false, checkpoint: found.facts.id, early }
}

/** The interrupt of a graph that a question stands for. */
function askedBy({ question }: OpenPause): string {
  return (question as unknown as GraphAsk).interrupt
}

/** No input: what was interrupted, failed, or waits on a new branch is run. */
async function goOn(call: Call, id: string, branch: string, program: ServerProgram): Promise<StartedRun> {
  const { thread } = await call.core.thread(call.hf, id, branch)
  const [newest] = await thread.history({ events: false, limit: 1, all: true })
  const at = thread.look(newest?.id as string)
  const { run, inputs = [] } = (await at.fold()).state as {
    readonly run?: { readonly id: string; readonly status: string }
    readonly inputs?: readonly { readonly id: string }[]
  }
  const isOver = run === undefined || run.status === 'completed' || run.status === 'cancelled'
  const early = call.core.hub.expect(nameLog(thread.key))
  const goesOn = (await early.orClose(thread.wake())) || !(await at.rests())
  return {
    thread,
    program,
    request: { thread: id, branch, input: undefined },
    // What continues is followed from here, however soon it is over; of what rests there is nothing more to hear.
    input: goesOn ? 'queued' : 'taken',
    // What only waits to be begun has no record of its own yet.
    run: isOver ? (inputs[0]?.id ?? run?.id) : run.id,
    ended: false,
    checkpoint: newest?.id,
    early,
  }
}

/** What the program takes, from what these clients send: an agent takes messages of ours. */
function inputOf({ plan }: ServerProgram, input: unknown): unknown {
  if (plan.kind !== 'graph' || plan.role !== 'agent' || typeof input !== 'object' || input === null) return input
  const { messages } = input as { readonly messages?: unknown }
  return messages === undefined ? input : fromChain(messages, 'input.messages')
}

function refuseUnknown(body: RunBody, isGraph: boolean): void {
  const given = body as unknown as Readonly<Record<string, unknown>>
  const ofGraphs = isGraph ? [] : ['interrupt_before', 'interrupt_after']
  for (const name of [...ofGraphs, 'webhook', 'after_seconds', 'feedback_keys']) {
    const value = given[name]
    if (value === undefined || value === null || (Array.isArray(value) && value.length === 0)) continue
    throw notOffered(name, 'Leave it out.')
  }
  const { goto } = body.command ?? {}
  if (!isGraph && goto !== undefined && goto !== null)
    throw notOffered('command.goto', 'A program decides itself where it goes.')
}

function busy(): HttpProblem {
  return new HttpProblem(422, 'busy', 'The thread is running, and multitask_strategy is "reject".', {
    remedy: 'Wait for it, or use another strategy.',
    fields: { retryable: true },
  })
}

function wrong(path: string, problem: string): HttpProblem {
  return new HttpProblem(422, 'invalid-value', `The value at ${path} ${problem}.`, { fields: { path } })
}
