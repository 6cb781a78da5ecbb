import { HttpProblem } from '../../http/problem.js'
import type { Call } from '../../http/route.js'
import { MAX_HISTORY } from '../../run/all-history.js'
import type { StartedRun } from '../../run/start-run.js'
import { assistantId } from '../assistant-routes.js'

/** A run as these clients read it. */
export interface DescribedRun {
  readonly run_id: string
  readonly thread_id: string
  readonly assistant_id: string
  readonly status: 'pending' | 'running' | 'error' | 'success' | 'interrupted'
  readonly created_at: string
  readonly updated_at: string
  readonly metadata: object
  readonly multitask_strategy: string
}

interface KnownRun {
  readonly id: string
  readonly status: DescribedRun['status']
  /** What the record says. */
  readonly recorded: string
  readonly branch: string
  readonly begunAt: Date
  changedAt: Date
  /** The entry before its first one. */
  readonly after: string | undefined
  readonly program: string
}

const STATUS: Readonly<Record<string, DescribedRun['status']>> = {
  started: 'running',
  resumed: 'running',
  interrupted: 'running',
  completed: 'success',
  // As a recursion limit is there.
  limited: 'error',
  paused: 'interrupted',
  cancelled: 'interrupted',
  failed: 'error',
  incompatible: 'error',
}

/** All runs that a thread's records tell of, oldest first. Reads the whole thread. */
async function scanRuns({ hf }: Call, id: string): Promise<readonly KnownRun[]> {
  const runs = new Map<string, KnownRun>()
  const { threads } = await hf.threads({ thread: id, order: 'created', direction: 'asc', limit: 1000 })
  for (const { branch, checkpoint, metadata, updatedAt } of threads) {
    const program = String(metadata['holdfast.program'] ?? '')
    const view = hf.inspect(id, { branch })
    const times = new Map(
      (await view.history({ events: false, limit: MAX_HISTORY, all: true })).map((item) => [item.id, item.at]),
    )
    let before: string | undefined
    let changed: KnownRun[] = []
    for await (const event of view.events({ untilRest: false })) {
      if (event.type === 'run') {
        const status = STATUS[event.status] ?? 'running'
        const known = runs.get(event.run) ?? {
          id: event.run,
          status,
          recorded: event.status,
          branch,
          after: before,
          program,
          begunAt: updatedAt,
          changedAt: updatedAt,
        }
        // A fork begins with the runs of the branch it came from, and goes its own way.
        if (known.branch === branch) changed.push({ ...known, status, recorded: event.status })
      }
      if (event.type !== 'checkpoint') continue
      before = event.checkpoint
      const at = times.get(event.checkpoint) ?? updatedAt
      for (const run of changed) runs.set(run.id, { ...run, begunAt: runs.get(run.id)?.begunAt ?? at, changedAt: at })
      changed = []
      if (event.checkpoint === checkpoint) break
    }
    const { inputs = [] } = (await view.look(checkpoint).fold()).state as {
      inputs?: readonly { readonly id: string; readonly at: number }[]
    }
    for (const { id: run, at } of inputs) {
      const begunAt = new Date(at)
      if (!runs.has(run))
        runs.set(run, {
          id: run,
          status: 'pending',
          recorded: 'pending',
          branch,
          after: checkpoint,
          program,
          begunAt,
          changedAt: begunAt,
        })
    }
  }
  return [...runs.values()]
}

export async function listRuns(call: Call, id: string): Promise<readonly DescribedRun[]> {
  return (await scanRuns(call, id)).map((run) => describe(id, run)).reverse()
}

/** One run, with what is needed to follow it. */
export async function findRun(call: Call, id: string, run: string) {
  const found = (await scanRuns(call, id)).find((one) => one.id === run)
  if (found === undefined)
    throw new HttpProblem(404, 'not-found', `There is no run "${run.slice(0, 100)}" on this thread.`)
  const { thread, program } = await call.core.thread(call.hf, id, found.branch)
  const [newest] = await thread.history({ events: false, limit: 1, all: true })
  const started: StartedRun = {
    thread,
    program,
    request: { thread: id, branch: found.branch, input: undefined },
    input: 'taken',
    run,
    ended: false,
    checkpoint: newest?.id,
  }
  const isOver = ['completed', 'limited', 'cancelled', 'incompatible'].includes(found.recorded)
  return { started, after: found.after, described: describe(id, found), isOver }
}

/** A run that was just started: it waits to be taken, or is in progress. */
export async function describeRun(call: Call, { thread, run }: StartedRun): Promise<DescribedRun> {
  return (await findRun(call, String(thread.id), run ?? '')).described
}

function describe(thread: string, { id, status, program, begunAt, changedAt }: KnownRun): DescribedRun {
  return {
    run_id: id,
    thread_id: thread,
    assistant_id: assistantId(program),
    status,
    created_at: begunAt.toISOString(),
    updated_at: changedAt.toISOString(),
    metadata: {},
    multitask_strategy: 'enqueue',
  }
}
