import type { Log } from '../log/log.js'
import type { Op } from '../log/ops.js'
import type { PauseRecord, RunState, StepRecord } from './run-state.js'

/** Everything a run recorded, also what was taken away when it was no longer needed to go on. */
export interface Records {
  /** By full path. */
  readonly steps: ReadonlyMap<string, StepRecord>
  readonly pauses: ReadonlyMap<string, PauseRecord>
}

/** Collects the records of one run from the entries of a log, from `from` on. */
export async function collectRecords(log: Log, from: number, run: string): Promise<Records> {
  const steps = new Map<string, StepRecord>()
  const pauses = new Map<string, PauseRecord>()
  for await (const { body, fold } of log.entries(from)) {
    const state = fold.state as RunState
    if (state.run !== undefined && state.run.id !== run) {
      // Before the run there is nothing of it; after it nothing more.
      if (steps.size > 0) break
      continue
    }
    for (const op of body.ops ?? []) noteStep(steps, op)
    for (const pause of Object.values(state.pauses ?? {})) pauses.set(pause.id, pause)
  }
  return { steps, pauses }
}

function noteStep(steps: Map<string, StepRecord>, op: Op): void {
  const path = stepPath(op)
  if (path === undefined || op[0] !== 'set') return
  const record = op[2] as unknown as StepRecord
  const before = steps.get(path)
  if (before?.status === 'done' && record.status !== 'done') return
  steps.set(path, record)
}

/** The full path of the step whose record an operation sets: `['scopes', 'a', 'steps', 'b']` is `a/b`. */
function stepPath(op: Op): string | undefined {
  const path = op[1]
  const names: string[] = []
  let at = 0
  while (path[at] === 'scopes') {
    names.push(String(path[at + 1]))
    at += 2
  }
  if (path[at] !== 'steps' || path.length !== at + 2) return undefined
  return [...names, String(path[at + 1])].join('/')
}
