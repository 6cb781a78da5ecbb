import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until something is so. Never for ever: the test's own time limit ends it with where it waited. */
export async function until(isSo: () => boolean | Promise<boolean>, everyMs = 20): Promise<void> {
  while (!(await isSo())) await sleep(everyMs)
}
