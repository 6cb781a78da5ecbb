import type { Effect } from 'holdfast'

/** What the log holds of a place when a call of it starts. */
export interface Known {
  /** Its intent is recorded. */
  readonly intended: boolean
  /** The keys that it was begun with. */
  readonly keys: readonly string[]
  /** Its result is. */
  readonly acknowledged: boolean
  /** The thread was claimed before, by whomever: also by a process that slept and lost it, and took it up again. */
  readonly isTakenOver: boolean
}

/** One call that reached the outside world. */
export interface Call {
  readonly place: string
  /** What the program that makes it calls it, where a version renamed it: another name is another step, with a key of its own. */
  readonly name: string | undefined
  readonly mark: string
  /** As the program that makes it declares it. */
  readonly effect: Effect
  readonly key: string
  readonly ownKey: boolean
  readonly process: string
  /** A process that stands still in the middle of its call uses a key that was good when the call began. */
  readonly begunAt: number
  /** Its intent was durable when it began. */
  intended: boolean
  /** It was begun with another key, as is recorded. */
  isKnownOtherwise: boolean
  executed: boolean
  /** The caller heard for certain that nothing happened. */
  denied: boolean
}

/** What is known of keys by now. */
interface Fates {
  /** The other side refused a call with this key. */
  readonly denied: ReadonlySet<string>
  /** Somebody said what became of the last call with this key; taken back by the next one. */
  readonly resolved: Set<string>
}

/** What is wrong about a call that starts now. */
export function judgeStart(
  call: Call,
  known: Known,
  calls: readonly Call[],
  { denied, resolved }: Fates,
): readonly string[] {
  const wrong: string[] = []
  const before = calls.filter(({ place }) => place === call.place)
  const effects = before.filter(({ effect }) => effect !== 'read')
  const last = effects.at(-1)
  if (known.acknowledged && (call.effect !== 'read' || last !== undefined)) {
    wrong.push('runs again after its result was acknowledged')
  }
  if (!known.intended && isGuarded(call.effect)) wrong.push('started without a durable intent')
  if (last === undefined) return wrong
  const isSettled = last.denied || resolved.has(last.key)
  // Whatever the program calls it today: it was begun as one that must not come again.
  if (isGuarded(last.effect) && !isSettled) wrong.push('starts again, though nobody knows what the last did')
  if (call.effect === 'read') return wrong
  if (last.key !== call.key) {
    // A version before the rename may have come between, or one with a key of its own that was rolled back; the step of
    // this name has given up nothing by that.
    const own = effects.filter(({ name, ownKey }) => name === call.name && !ownKey)
    if (!call.ownKey && own.at(-1)?.key !== call.key && own.some(({ key }) => key === call.key)) {
      wrong.push('comes back to a key that it had given up')
    }
    // Of an idempotent effect there is no record: who changes its own key in the program, or its name, can't be helped.
    const isChanged = (last.ownKey || call.ownKey || last.name !== call.name) && last.effect === 'idempotent'
    if (!denied.has(last.key) && !resolved.has(last.key) && !isChanged) {
      wrong.push('has another key, though nothing says that the last one failed')
    }
  } else if (last.denied && last.process === call.process && !call.ownKey && !known.isTakenOver) {
    if (!mayHaveHappened(calls, call)) wrong.push('keeps the key of a call that failed for certain')
  }
  resolved.delete(last.key)
  return wrong
}

/**
 * A refusal speaks of one attempt: while another with the same key may have happened, the key must stay. Who takes a
 * run up can't know what was tried before.
 */
function mayHaveHappened(calls: readonly Call[], { place, key }: Call): boolean {
  return calls.some((other) => other.place === place && other.effect !== 'read' && other.key === key && !other.denied)
}

export function isGuarded(effect: Effect): boolean {
  return effect === 'once' || effect === 'reconcilable'
}
