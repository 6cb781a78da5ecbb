import type { Run } from '../../run/run.js'
import { type Internals, REPEAT } from './internals.js'
import type { Called } from './make-context.js'
import { addWrite } from '../record/step-store.js'

/** What the programs of this library find in the context of a function besides what is public. */
export function makeInternals(run: Run, path: string, { step, store, note }: Called<unknown>): Internals {
  return {
    path,
    clock: run.clock,
    random: run.random,
    watch: run.watch,
    claim: `${run.key.branch}:${run.log.fold.epoch}`,
    isRepeat: step !== undefined && REPEAT in step && step[REPEAT] === true,
    secure: () => (run.lease?.isSure === false ? run.lease.secure() : undefined),
    emit: (event) => run.emit(event),
    note,
    put: (space, name, value) => {
      const kept = run.redactor ? run.keep(value) : value
      addWrite(store, ['put', space, name, kept, null])
    },
  }
}
