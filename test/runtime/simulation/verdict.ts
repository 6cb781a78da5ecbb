import type { Outcome } from 'holdfast'
import { answersOf, checkLandings } from './check.js'
import { keyOf, type Stage } from './stage.js'
import { resultOf } from './world.js'

/** Looks at a thread that has come to its end, and at the world, and notes each rule that was broken. */
export async function judge(stage: Stage, outcome: Outcome, cut: boolean): Promise<void> {
  const { world, universe, observer, thread, spec, kept, untold, asking } = stage
  const { violations } = world
  world.checkCounts()
  // A person may reject what a node with such a gate brought.
  const mayDrop = JSON.stringify(spec).includes('"gate":"after"')
  const history = await stage.history()
  if (!mayDrop) history.checkKept(await stage.state())
  violations.push(...history.violations, ...checkLandings(universe.landings))
  for (const n of [1, 2, 3, 4]) {
    const begun = history.begun.get(keyOf(n)) ?? 0
    if (begun > 1) violations.push(`Input ${n} was run ${begun} times`)
    if (begun === 0 && kept.has(n) && outcome.status === 'completed') violations.push(`Input ${n} was never run`)
    if (begun > 0 && !kept.has(n) && !untold.has(n) && !asking.includes(n))
      violations.push(`Input ${n} was run, though whoever gave it was told otherwise`)
  }
  if (outcome.status === 'completed' && !cut) {
    if (!mayDrop) checkState(stage, outcome.state)
    const state = await stage.state()
    const left = Object.values(state.signals ?? {}).flatMap((signals) => signals.map(({ value }) => value))
    world.waits.checkLost(left)
  }
  if (outcome.status === 'failed' && outcome.canResume) checkHope(stage, outcome.error)
  const verified = await observer.verify(thread)
  if (verified && verified.problems.length > 0) violations.push(JSON.stringify(verified.problems))
}

/** What a node or a tool did is in the state. Both runs that are compared could have lost it. */
function checkState({ world, universe, spec, chaos }: Stage, state: Outcome['state']): void {
  const era = `${universe.era}/`
  if (spec.kind === 'graph') {
    const { date, bytes } = state as unknown as { readonly date: Date; readonly bytes: Uint8Array }
    if (date.getTime() !== 0 || bytes[0] !== 1) world.violations.push('A node changed a date or bytes in place')
    const results = (state['results'] ?? {}) as Record<string, unknown>
    for (const { mark, effect, executed } of world.calls) {
      if (!mark.startsWith(era) || Object.hasOwn(results, mark)) continue
      // A later version may leave out what nobody recorded, or what did not happen.
      const isRecorded = executed && effect !== 'read' && effect !== 'idempotent'
      if (!isRecorded && (chaos.edits ?? []).length > 0) continue
      world.violations.push(`The state lost what ${mark} brought`)
    }
  }
  if (spec.kind !== 'agent') return
  const told = new Map(answersOf(state['messages'] as never).map(({ callId, output }) => [callId, output]))
  for (const { mark, executed, effect } of world.calls) {
    if (!mark.startsWith(era) || !executed || effect === 'read') continue
    const output = told.get(mark)
    // Of an idempotent effect that was begun nothing is recorded: a gate that a later version has is asked.
    if (output?.type === 'denied' && effect === 'idempotent') continue
    if (output?.value !== resultOf(mark)) {
      world.violations.push(`${mark} took effect, and the model is told ${JSON.stringify(output)}`)
    }
  }
}

/** Everything that fails here for a while succeeds later: who resumes a failed run often enough comes to its end. */
function checkHope({ spec, world, chaos }: Stage, error: object): void {
  const text = JSON.stringify(spec)
  if (/"hopeless":true|"onUnknown":"fail"/.test(text) || (chaos.edits ?? []).length > 0) return
  // Waits that can't be told apart are refused.
  if (world.isRefused && text.includes('"keyed":false')) return
  world.violations.push(`It is resumed again and again, and fails each time: ${JSON.stringify(error)}`)
}
