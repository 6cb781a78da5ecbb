import { formatCheckpointId } from '../../log/entry/checkpoint-id.js'
import type { RecordedEvent } from '../events/events.js'
import type { Run } from '../run/run.js'
import type { Context, StepContext } from './context.js'
import { INTERNALS, type Internals, REPEAT } from './internals.js'
import { addWrite } from './step-store.js'

/** Everything of a context that is requested, and counted as in progress. */
type ContextRequests = Pick<Context, 'step' | 'transaction' | 'sleep' | 'receive' | 'run' | 'pause'>

/** The function that is called with a context. */
interface Called<Input> {
  readonly path: string
  readonly input: Input
  /** Of a node: the context of its attempt. */
  readonly step: StepContext | undefined
  readonly store: Context['store']
  readonly requests: ContextRequests
  heartbeat(): Promise<void>
  note(event: RecordedEvent): void
}

/** What a program's function is called with. */
export function makeContext<Input>(
  run: Run,
  { path, input, step, store, requests, heartbeat, note }: Called<Input>,
): Context<Input> & { readonly [INTERNALS]: Internals } {
  const { key, log } = run
  const { seq, hash, epoch } = log.fold
  const ownKey = run.keyMaker(path, 0)
  const { step: doStep, transaction, sleep, receive, run: runChild, pause } = requests
  return {
    input,
    context: run.context,
    thread: key.thread,
    branch: key.branch,
    tenant: key.tenant,
    runId: log.state.run?.id ?? '',
    checkpoint: seq < 0 ? '' : formatCheckpointId(key.branch, seq, hash),
    attempt: run.attempt,
    get abortSignal() {
      return step?.abortSignal ?? run.abort.signal
    },
    get idempotencyKey() {
      return step === undefined ? ownKey() : step.idempotencyKey
    },
    store,
    step: doStep,
    transaction,
    sleep,
    receive,
    run: runChild,
    pause,
    heartbeat,
    emit: (value) => run.emit({ type: 'custom', step: path, value }),
    [INTERNALS]: {
      path,
      clock: run.clock,
      random: run.random,
      watch: run.watch,
      claim: `${key.branch}:${epoch}`,
      isRepeat: step !== undefined && REPEAT in step && step[REPEAT] === true,
      secure: () => (run.lease?.isSure === false ? run.lease.secure() : undefined),
      emit: (event) => run.emit(event),
      note,
      put: (space, name, value) => {
        const kept = run.redactor ? run.keep(value) : value
        addWrite(store, ['put', space, name, kept, null])
      },
    },
  }
}
