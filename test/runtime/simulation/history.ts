import type { Op, State } from '#src/log/entry/ops.js'
import { withRecords } from '#src/runtime/engine/closings.js'
import type { RunRecord, RunState, ScopeState, StepRecord } from '#src/runtime/run/state/run-state.js'
import type { Log } from 'holdfast/log'
import { marksOf } from './check.js'
import { isGuarded } from './rules.js'

/**
 * What the log itself says happened, entry by entry: which inputs were run, and what was lost on the way, effects that
 * were begun and results that were recorded. Knows nothing of how the runtime keeps that in mind.
 */
export class History {
  /** How many runs were begun for each input key. */
  readonly begun = new Map<string, number>()
  /** Keys of the inputs whose runs are over. */
  readonly ended = new Set<string>()
  readonly violations: string[] = []
  /** The records of the run that is under way, by where they lie. */
  readonly #steps = new Map<string, StepRecord>()
  /** What was recorded by a node, with the node. */
  readonly #results = new Map<string, string>()
  /** The state before the entry that is read next. */
  #before: State = {}
  #run = ''
  #seq = -1
  #reading: Promise<void> = Promise.resolve()

  /** Reads what was written since it last did, each entry once. */
  update(log: Log): Promise<void> {
    this.#reading = this.#reading.then(() => this.#catchUp(log))
    return this.#reading
  }

  async #catchUp(log: Log): Promise<void> {
    const { seq } = log.fold
    if (seq <= this.#seq) return
    for await (const { body, fold } of log.entries(this.#seq + 1, seq)) {
      // What one node alone did is told by its changes.
      this.#read(withRecords(body.ops ?? [], this.#before))
      this.#before = fold.state
    }
    this.#seq = seq
  }

  #read(ops: readonly Op[]): void {
    // Who cancels a run gives up what it had begun, and the log says so.
    const isCancelled = ops.some((op) => op[0] === 'set' && nameOf(op[1]) === RUN_STATUS && op[2] === 'cancelled')
    for (const op of ops) this.#take(op, isCancelled)
  }

  #take(op: Op, isCancelled: boolean): void {
    const path = op[1]
    const at = nameOf(path)
    if (op[0] === 'set' && at === 'run') {
      const { key = '' } = op[2] as unknown as RunRecord
      this.#run = key
      this.begun.set(key, (this.begun.get(key) ?? 0) + 1)
      this.#steps.clear()
    }
    if (op[0] === 'set' && at === RUN_STATUS) {
      if (op[2] === 'completed') this.#checkForgotten('')
      if (op[2] === 'completed' || op[2] === 'cancelled') this.ended.add(this.#run)
    }
    if (op[0] === 'delete') {
      if (!isCancelled) this.#checkForgotten(at)
      for (const known of this.#steps.keys()) if (isWithin(known, at)) this.#steps.delete(known)
    }
    if (op[0] !== 'set' || path.at(-2) !== 'steps') return
    const record = op[2] as unknown as StepRecord
    this.#steps.set(at, record)
    const node = String(path.at(-1))
    if (node.includes('/') || record.status !== 'done') return
    for (const mark of marksOf(record.result)) this.#results.set(mark, node)
  }

  /** However the run ended: what is recorded is in the state, or still lies there for whoever goes on. */
  checkKept(state: RunState): void {
    const kept = new Set(openResults(state))
    for (const [mark, node] of this.#results) {
      if (!kept.has(mark)) this.violations.push(`The state lost what ${node} had recorded: ${mark}`)
    }
  }

  #checkForgotten(folder: string): void {
    for (const [path, { status, effect, inherited, unknown }] of this.#steps) {
      const isOpen = status === 'started' && !inherited && !unknown && effect !== undefined && isGuarded(effect)
      if (!isOpen || !isWithin(path, folder)) continue
      this.violations.push(`${path} (${effect}) was begun, and the run went on as if it had not been`)
    }
  }
}

/** Names of steps hold slashes themselves. */
const SEPARATOR = '  '
const RUN_STATUS = nameOf(['run', 'status'])

function nameOf(path: readonly (string | number)[]): string {
  return path.join(SEPARATOR)
}

function isWithin(path: string, folder: string): boolean {
  return folder === '' || path === folder || path.startsWith(folder + SEPARATOR)
}

/** What is recorded and not part of the state yet: of a run that is not over, or that a process ended without its program. */
function openResults(scope: ScopeState & Pick<RunState, 'left'>): readonly string[] {
  const { state, steps = {}, scopes = {}, left = [] } = scope
  return [
    ...marksOf(state),
    ...Object.values(steps).flatMap(({ result }) => marksOf(result)),
    ...[...Object.values(scopes), ...left].flatMap(openResults),
  ]
}
