import { mayDo } from '../../access/principal.js'
import { HttpProblem } from '../../http/problem.js'
import type { Call } from '../../http/route.js'
import type { ServerProgram } from '../../options.js'
import { type StartedRun, startRun } from '../../run/start-run.js'
import type { Found } from '../threads/find-thread.js'
import { graphCheckpoint } from './graph-threads.js'
import type { HostedGraph } from './hosted-graph.js'
import type { RunBody } from '../runs/run-target.js'
import { readModes } from '../runs/stream-writer.js'

/** Starts a run of a graph of LangGraph, from what a client asks for. */
export async function startGraph(
  call: Call,
  found: Found,
  { plan }: ServerProgram,
  hosted: HostedGraph,
  body: RunBody,
  isBusy: boolean,
): Promise<StartedRun> {
  const { input, command, multitask_strategy: strategy } = body
  const state = await hosted.state(call.principal.tenant, found.id)
  if (command?.resume !== undefined && command.resume !== null) checkResume(call, state?.tasks ?? [])
  const { checkpoint } = graphCheckpoint(body)
  const isHead = checkpoint === state?.checkpoint.checkpoint_id
  if ((input ?? command ?? checkpoint ?? null) === null && state === undefined) {
    throw new HttpProblem(422, 'invalid-value', 'The value at input is missing, and nothing waits to be run.', {
      fields: { path: 'input' },
    })
  }
  const rollback = isBusy && strategy === 'rollback' ? await runUnderWay(call, found) : undefined
  const request = {
    input,
    command,
    // The newest one is sent along with every submit, and means: go on.
    checkpoint: isHead ? undefined : checkpoint,
    rollback,
    config: body.config,
    context: body.context,
    metadata: body.metadata,
    modes: readModes(body.stream_mode, hosted),
    subgraphs: body.stream_subgraphs,
    interruptBefore: body.interrupt_before,
    interruptAfter: body.interrupt_after,
    durability: body.durability ?? (body.checkpoint_during === false ? 'exit' : undefined),
    by: call.principal.subject,
  }
  return startRun(call.core, call.hf, {
    thread: found.id,
    branch: 'main',
    program: plan.name,
    input: Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined && value !== null)),
    busy: isBusy && (strategy ?? 'enqueue') === 'enqueue' ? 'queue' : 'interrupt',
  })
}

/** The run that is not over, or the one that is about to begin. */
async function runUnderWay({ hf }: Call, { id, summary, facts }: Found): Promise<string | undefined> {
  const { run, inputs = [] } = (await hf.inspect(id, { branch: summary.branch }).look(facts.id).fold()).state as {
    readonly run?: { readonly id: string; readonly status: string }
    readonly inputs?: readonly { readonly id: string }[]
  }
  const isOver = run === undefined || run.status === 'completed' || run.status === 'cancelled'
  return isOver ? inputs[0]?.id : run.id
}

function checkResume(call: Call, tasks: readonly { readonly interrupts: readonly unknown[] }[]): void {
  if (!mayDo(call.principal, 'answer')) {
    throw new HttpProblem(403, 'not-allowed', 'Resuming with an answer needs the role "answer".', {
      fields: { role: 'answer' },
    })
  }
  if (tasks.some(({ interrupts }) => interrupts.length > 0)) return
  throw new HttpProblem(
    422,
    'invalid-value',
    'The value at command.resume answers nothing: the thread asks no question.',
    {
      fields: { path: 'command.resume' },
    },
  )
}
