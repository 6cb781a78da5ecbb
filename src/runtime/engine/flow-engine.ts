import { showValue } from '../../codec/clone.js'
import { Activation } from '../step/activation.js'
import type { Drive } from '../run/drive.js'
import type { FlowPlan } from '../program/program.js'
import type { Session } from '../run/session.js'

/** Calls a flow's function from its beginning; everything that is recorded returns at once. */
export async function driveFlow(session: Session, plan: FlowPlan): Promise<Drive> {
  const activation = new Activation(session, '', [], '', { defaults: plan.policy })
  const done = await activation.run(async () => {
    const input = showValue(session.state.run?.input)
    const value = await plan.run(activation.context(input), input)
    activation.checkRevisited()
    const output = await plan.checkOutput(value)
    return output === undefined ? undefined : session.keep(output)
  })
  if (done.status === 'failed') return { ...done, error: activation.explainFailure(done.error) }
  if (done.status !== 'done') return done
  if (done.writes.length > 0) session.recorder.add({ kind: 'step', store: done.writes })
  return { status: 'completed', output: done.value }
}
