import type { StepOptions } from 'holdfast'
import type { ProgramPlan } from '#src/runtime/program/program.js'
import type { Mortal } from './mortal.js'
import type { WorkSpec } from './spec.js'
import { isTimed, TIMEOUT_MS, ttlOf, type World } from './world.js'

/** What a program is built into. */
export interface Surroundings {
  readonly world: World
  readonly process: Mortal
}

export interface Program {
  readonly kind: string
  readonly plan: ProgramPlan
}

export interface Input {
  readonly n: number
}

export const NAME = 'random'

export function policyOf(work: WorkSpec, { world, process }: Surroundings, caught: boolean) {
  // What is caught must fail, or not, in every run alike: as many attempts as it needs, however the crashes fall.
  const attempts = caught ? work.mishaps.length + 2 : Math.max(1, work.mishaps.length + work.spareAttempts - 1)
  return {
    effect: work.effect,
    retry: { attempts, initialMs: 100, jitter: 0 },
    keyTtlMs: ttlOf(work),
    onUnknown: caught ? 'pause' : work.onUnknown,
    reconcile: (key: string) => world.reconcile(process, work, key),
    ...(isTimed(work) ? { timeoutMs: TIMEOUT_MS } : {}),
  } satisfies StepOptions
}

/** The program's own key, which says what it is about; of another thread, or another life of it, it is another. */
export function ownKeyOf(work: WorkSpec, place: string): { readonly idempotencyKey?: string } {
  return work.ownKey === undefined ? {} : { idempotencyKey: `${work.ownKey} ${place}` }
}
