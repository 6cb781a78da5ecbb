import { hash } from 'node:crypto'
import type { Run } from '../../run/run.js'

/**
 * The key a service sees: the same across crashes and retries, a different one on every branch and after a definite
 * failure. Made when it is asked for, of the run that is in progress now: most steps never look at theirs.
 */
export function keyMaker({ key, state: { run } }: Run, path: string, generation: number): () => string {
  let made: string | undefined
  return () => {
    if (made !== undefined) return made
    const { tenant, thread, branch } = key
    const parts = [tenant, thread, branch, run?.key ?? run?.id ?? '', path, `${generation}`]
    // An id that was erased and reused would collide with the charges of its former life.
    if (run?.incarnation !== undefined) parts.push(run.incarnation)
    made = hash('sha256', JSON.stringify(parts), 'base64url').slice(0, 32)
    return made
  }
}
