import { showValue } from '../../codec/clone.js'
import type { Requested, Requests } from '../step/call/requests.js'
import { awaitChild, type ChildOptions, failedChild } from './await-child.js'
import { type ChildProgram, planOfChild } from './child-program.js'

/** `ctx.run`: another thread, whose end this one waits for. */
export async function performChild(
  requests: Requests,
  requested: Requested,
  program: ChildProgram,
  id: string,
  input: unknown,
  options: ChildOptions = {},
): Promise<unknown> {
  const { run, records } = requests
  const plan = planOfChild(program, id, options)
  const { path, after } = requests.arrive(requested, 'child', id, true)
  await run.replay?.turn(path)
  if (records.isDoubted(path)) await requests.settleDoubt(path, 'effect')
  const work = requests.work(path, { input, effect: 'idempotent' }, () => undefined, { after })
  const again = failedChild(records.get(path), work)
  if (again !== undefined) throw again
  const found = records.find(path, work.inputHash)
  if (found?.status === 'done') return showValue(found.result)
  if (run.replay) return requests.gap(path)
  requested.isLive = true
  return awaitChild({
    run,
    work,
    id,
    plan,
    input,
    options,
    hold: () => requests.hold(path),
    wait: (waiting) => requests.waits.wait(waiting),
  })
}
