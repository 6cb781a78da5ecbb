import type { LogKey } from '../../log/contract.js'
import type { Log } from '../../log/log.js'
import { Children, runWithChildren } from '../child/run-with-children.js'
import { errandsOf } from '../child/errands.js'
import { isOnlyOwing, runErrands } from '../child/run-errands.js'
import type { ProgramPlan } from '../program/program.js'
import { admit, clearWake } from './request/admit.js'
import { answerBusy, answerSettled, asItIs } from './request/answer-request.js'
import type { RuntimeEnvironment } from './environment.js'
import { driveUnrecorded } from './hold/drive-unrecorded.js'
import { hold } from './hold/hold.js'
import { againIfExpired, onLog, openOrRecover } from './request/on-log.js'
import { type Outcome, withOutput } from './state/outcome.js'
import { RecordedReads } from './record/recorded-reads.js'
import { Request } from './request/request.js'
import { checkChoices, checkSettings, type RequestOptions } from './request/run-options.js'
import { StoppedError, stopInTime } from './request/stop-in-time.js'

/** Starts, resumes or continues a thread: the only entry point. */
export async function runThread(
  environment: RuntimeEnvironment,
  plan: ProgramPlan,
  key: LogKey,
  options: RequestOptions,
): Promise<Outcome> {
  const { defaults } = plan.kind === 'graph' ? plan : { defaults: undefined }
  const children = new Children(environment, key)
  const run = (given: RequestOptions): Promise<Outcome> => {
    const request = new Request(environment, plan, key, { ...defaults, ...given }, children)
    checkSettings(request.policy)
    checkChoices(request.options)
    const { signal } = request.options
    signal?.throwIfAborted()
    return stopInTime(openAndRun(request), signal, environment.clock)
  }
  // A worker leaves them to whoever has their programs, perhaps itself: it would hold a place for nothing.
  const isWorker = options.makeRoom !== undefined
  const outcome = isWorker ? await run(options) : await runWithChildren(environment, children, options, run, runThread)
  return withOutput(plan, outcome)
}

async function openAndRun(request: Request): Promise<Outcome> {
  const { environment, options, policy, key: given } = request
  const { logs } = environment
  await request.read(options.hasInput)
  const open = async (opening: { readonly atLeast: number }) => {
    const { log, key, restart, begins } = await openOrRecover(logs, given, options.onCorrupt ?? 'fail', opening)
    Object.assign(request, { key, restart, begins })
    return log
  }
  let isClaimed = false
  const claimed = () => {
    isClaimed = true
  }
  // A run that records nothing appends nothing, and so never learns whether it was the newest.
  const atLeast = policy.frequency === 'none' ? Infinity : (options.atLeast ?? 0)
  return againIfExpired(
    () => onLog(logs, open, (log) => runOn(request, log, claimed), atLeast),
    () => isClaimed,
  )
}

async function runOn(request: Request, log: Log, onClaimed: () => void): Promise<Outcome> {
  if (request.options.expect === 'existing') await request.noteRestart(log)
  const reading = RecordedReads.of(request.environment.logs, log)
  const reads = reading && (await reading)
  if (request.policy.frequency === 'none') return driveUnrecorded(request, log, reads)
  const isTaken = request.options.makeRoom !== undefined
  if (errandsOf(log.fold.state).length > 0) {
    await runErrands(request.environment, request.plan, log)
    if (isTaken && isOnlyOwing(log.fold, request.now)) return asItIs(request, log)
  }
  for (;;) {
    if (request.options.signal?.aborted) throw new StoppedError()
    const { situation, claimed } = await admit(request, log, onClaimed)
    if (claimed) {
      // A run that waited may have been dropped with the claim: what it began is to end before the next one begins.
      if (request.owes(log)) await request.runErrands(log)
      const outcome = await hold(request, claimed, reads)
      if (request.owes(log)) await request.runErrands(log)
      // The run before it came to wait only now: it is dropped as one is that waited all along.
      const isDropped = request.onPaused === 'cancel' && outcome.status === 'paused' && outcome.input === 'queued'
      if (isDropped) continue
      return outcome
    }
    if (situation?.do === 'settle') await request.runErrands(log)
    if (isTaken && situation?.do === 'answer') await clearWake(request, log)
    const answer = situation ? await answerSettled(request, log, situation) : await answerBusy(request, log)
    if (answer) return answer
  }
}
