import fc from 'fast-check'
import { changingChaos, chaos } from './chaos.js'
import { compare, onMemory, type Opened, playOnce } from './compare.js'
import { deliver, deliveries } from './deliveries.js'
import { agentSpec, programSpec } from './draw.js'

/** The kinds of histories: an unchanged program, one that changes under its run, and messages by the hundred. */
export const KINDS = ['crashes', 'changes', 'deliveries'] as const
export type Kind = (typeof KINDS)[number]

/** A kind of history as a property: what is drawn, and what holds of it. */
export function historiesOf(kind: Kind, open: () => Promise<Opened> = onMemory): fc.IAsyncPropertyWithHooks<unknown[]> {
  if (kind === 'crashes') {
    return fc.asyncProperty(programSpec, chaos, (spec, blows) => compare(spec, blows, open)) as never
  }
  if (kind === 'changes') {
    const anySpec = fc.oneof({ weight: 3, arbitrary: programSpec }, { weight: 2, arbitrary: agentSpec })
    return fc.asyncProperty(anySpec, changingChaos, async (spec, blows) => {
      await playOnce(spec, blows, open)
    }) as never
  }
  return fc.asyncProperty(deliveries, async (plan) => {
    const place = await open()
    try {
      await deliver(plan, place)
    } finally {
      await place.close()
    }
  }) as never
}

export interface Played {
  readonly histories: number
  /** The first history that broke a rule; `seed` and `path` play it again. */
  readonly found?: { readonly seed: number; readonly path: string; readonly message: string; readonly history: unknown }
}

/** Plays so many histories, or until one breaks a rule. It is not made smaller: `npm test` does that with its seed. */
export async function play(kind: Kind, seed: number, count: number): Promise<Played> {
  const random = Math.random
  // Pauses between attempts are drawn by chance; a seed must give the same run each time.
  Math.random = () => 0.5
  try {
    const settings = { seed, numRuns: count, endOnFailure: true }
    const { failed, numRuns, counterexamplePath, errorInstance, counterexample } = await fc.check(
      historiesOf(kind),
      settings,
    )
    if (!failed) return { histories: numRuns }
    const message = (errorInstance as Error | null)?.message ?? 'failed'
    return { histories: numRuns, found: { seed, path: counterexamplePath ?? '', message, history: counterexample } }
  } finally {
    Math.random = random
  }
}
