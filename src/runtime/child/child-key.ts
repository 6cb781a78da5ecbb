import { createHash } from 'node:crypto'
import { MAX_ID_BYTES, parseThreadId, type ThreadId, threadIdInput } from '../../core/ids.js'
import type { LogKey } from '../../log/contract.js'
import type { RunRecord } from '../run/state/run-state.js'

/**
 * The name of a child among those of its parent: derived from the place that awaits it, in this run, on this branch, in
 * this incarnation of the thread. The generation is raised when the child is over and is to be started again.
 */
export function nameChild(
  { tenant, thread, branch }: LogKey,
  run: RunRecord,
  step: string,
  generation: number,
): string {
  return shorten([tenant, thread, run.incarnation ?? '', branch, run.id, step, generation], 24)
}

/** The key of the input that begins a child: given twice, it is taken once. */
export function inputKeyOf(child: string): string {
  return `child ${child}`
}

/**
 * The thread that a child runs on unless the program names one: below its parent's, and a different one for each run
 * and branch of it. Parts of a structured id stay, so that a search for a user's threads finds these too.
 */
export function childThread(parent: LogKey, run: RunRecord, step: string, id: string): ThreadId {
  const of = threadIdInput(parent.thread)
  const mark = shorten([parent.tenant, parent.thread, run.incarnation ?? '', parent.branch, run.id, step], 10)
  const name = `${id}~${mark}`
  const whole =
    typeof of === 'string'
      ? `${of}/${name}`
      : { ...of, child: of['child'] === undefined ? name : `${of['child']}/${name}` }
  try {
    return parseThreadId(whole)
  } catch {
    // Deeply nested, or an id that already uses all the space.
    const short = shorten([parent.tenant, parent.thread, step, mark], 32)
    const root = typeof of === 'string' ? [...of].slice(0, (MAX_ID_BYTES - 64) / 4).join('') : undefined
    return parseThreadId(root === undefined ? `child~${short}` : `${root}~${short}`)
  }
}

function shorten(parts: readonly unknown[], length: number): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, length)
}
