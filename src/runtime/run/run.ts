import { showValue } from '../../codec/clone.js'
import type { Draft } from '../../log/entry/draft.js'
import { set, type State } from '../../log/entry/ops.js'
import { GraphEngine } from '../engine/graph-engine.js'
import { GraphScope } from '../engine/graph-scope.js'
import type { FlowPlan, ProgramPlan } from '../program/program.js'
import { Activation } from '../step/call/activation.js'
import type { Drive } from './run-terms.js'
import { SharedRun } from './shared-run.js'

/** One run of a thread, for as long as this process drives it. */
export class Run extends SharedRun {
  #progressed = false

  /** Calls the program, which continues from what is recorded. Never rejects. */
  async drive(plan: ProgramPlan): Promise<Drive> {
    const driven = await this.watch.within(() => this.#drive(plan))
    // What the program itself threw is recorded, too.
    return driven.status === 'failed' ? { ...driven, error: this.keepError(driven.error) } : driven
  }

  async #drive(plan: ProgramPlan): Promise<Drive> {
    try {
      this.throwIfAborted()
      if (plan.kind === 'flow') return await this.#driveFlow(plan)
      const driven = await new GraphEngine(new GraphScope(this, plan)).drive()
      if (driven.status !== 'completed') return driven
      return { ...driven, limit: plan.limit?.(driven.output as State) }
    } catch (error) {
      return { status: 'failed', error }
    }
  }

  /** Calls a flow's function from the beginning; everything that is recorded returns at once. */
  async #driveFlow(plan: FlowPlan): Promise<Drive> {
    const activation = new Activation(this, '', [], '', { defaults: plan.policy })
    const done = await activation.run(async () => {
      const input = showValue(this.state.run?.input)
      const value = await plan.run(activation.context(input), input)
      activation.checkRevisited()
      const checking = plan.checkOutput(value)
      const output = checking instanceof Promise ? await checking : checking
      return output === undefined ? undefined : this.keep(output)
    })
    if (done.status === 'failed') return { ...done, error: activation.explainFailure(done.error) }
    if (done.status !== 'done') return done
    if (done.writes.length > 0) this.log.add({ kind: 'step', store: done.writes })
    return { status: 'completed', output: done.value }
  }

  /** Records the end of a step. The first of a claim also shows that the thread does not kill its workers. */
  record(draft: Draft): Promise<void> {
    const recorded = this.progress(draft)
    this.#progressed = true
    return this.log.record(recorded)
  }

  /** The draft, and that there was progress unless that is known. */
  progress(draft: Draft): Draft {
    if (this.#progressed || !this.log.durable) return draft
    const { alone } = this.log.acknowledged
    return { ...draft, ops: [...(draft.ops ?? []), set('claims', 0), ...(alone ? [set('alone', 0)] : [])] }
  }
}
