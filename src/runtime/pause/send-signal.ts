import { DEFAULT_LIMITS } from '../../codec/limits.js'
import { copyValue } from '../../codec/value.js'
import { TooLargeError } from '../../core/errors.js'
import { DUE } from '../../log/contract.js'
import { push, set } from '../../log/entry/ops.js'
import type { Log } from '../../log/log.js'
import type { RuntimeEnvironment } from '../run/environment.js'
import { checkKey } from '../run/input/given-input.js'
import { placeOf } from '../run/input/input-keys.js'
import { signalsOf } from '../run/state/read-run-state.js'
import type { RunState, SignalRecord } from '../run/state/run-state.js'
import { badSignalName, isSignalName } from './waits.js'

const MAX_SIGNALS = 1000

/** What happened to a signal: it is waiting to be received, or one with its key had been sent before. */
export interface Signalled {
  readonly signal: 'sent' | 'known'
}

/** A signal that was checked and copied. */
interface Checked {
  readonly name: string
  readonly signal: SignalRecord
  /** Where its key is in the index of keys, if it has one. */
  readonly place: readonly [bucket: string, name: string] | undefined
}

export function checkSignal(
  { clock, randomId, redactor }: RuntimeEnvironment,
  name: string,
  value: unknown,
  given: string | undefined,
): Checked {
  const key = checkKey(given)
  if (!isSignalName(name)) throw badSignalName(name)
  const copied = value === undefined ? undefined : copyValue(value, DEFAULT_LIMITS)
  const stored = copied === undefined ? undefined : (redactor?.value(copied) ?? copied)
  const signal = { id: randomId(), at: clock.now(), ...(stored === undefined ? {} : { value: stored }) }
  return { name, signal, place: key === undefined ? undefined : placeOf(JSON.stringify([name, key])) }
}

/** Leaves a signal with a thread, unless one with its key is there. */
export async function sendSignal(log: Log, { name, signal, place }: Checked): Promise<Signalled> {
  const { entries } = await log.update((fold) => {
    const state = fold.state as RunState
    if (place && state.signalKeys?.[place[0]]?.[place[1]] !== undefined) return undefined
    const waiting = signalsOf(state, name).length
    if (waiting >= MAX_SIGNALS) {
      throw new TooLargeError(`signals.${name}`, 'unreceived signals', MAX_SIGNALS, waiting, 'Receive them first.')
    }
    // A signal that nobody waits for would make workers look at the thread over and over.
    const wake = isAwaited(state, name) ? { index: { wakeAt: DUE } } : {}
    const known = place === undefined ? [] : [set(['signalKeys', ...place], fold.seq + 1)]
    return [{ kind: 'signal', ops: [push(['signals', name], signal), ...known], ...wake }]
  })
  return { signal: entries.length > 0 ? 'sent' : 'known' }
}

// A signal does not fix a failed run: it is received when somebody resumes the run.
function isAwaited({ run }: RunState, signal: string): boolean {
  if (run?.status !== 'running') return false
  return run.waiting === undefined || run.waiting.some((wait) => wait.kind === 'signal' && wait.name === signal)
}
