import { isHoldfastError } from '../../../core/errors.js'
import { type Op, type Path, remove, type State, set, valueAt } from '../../../log/entry/ops.js'
import { describeError } from '../../errors.js'
import type { RunRecord, RunState, ScopeState, StepRecord } from '../../run/state/run-state.js'

// Which steps are retried when a failed run is resumed. If the error leads to them, those. A program may also lose them
// on the way: it throws another error, or a string, or looks only at how many of several failed. Then
// - a step that failed while nothing else ran is retried if the program requested nothing more: the failure is what it
//   ended with;
// - any other is in doubt. It is held back while the program reaches everything else that is recorded. If it does, and
//   waits for the step, nothing depends on the failure, and the step is retried. If it ends without the step, it did not
//   want it anymore. If the order of things shows that it continued from that failure or from one alongside it, an effect
//   stays failed, because it may be the one whose place something else has taken.

/** Where the records of the steps are that a failure may stem from. */
export interface Suspects {
  readonly retry: readonly Path[]
  readonly doubt: readonly Path[]
}

interface Heard {
  readonly at: Path
  readonly asked: number
  readonly isBeside: boolean
}

/** What failed in a function, in the order in which it was told. */
export class Failures {
  #heard: Heard[] = []

  /**
   * @param asked how often the function had requested something; @param isBeside something else was in progress in the
   * meantime.
   */
  hear(error: unknown, asked: number, isBeside: boolean): void {
    const at = recordOf(error)
    if (at) this.#heard.push({ at, asked, isBeside })
  }

  restart(): void {
    this.#heard = []
  }

  /** @param asked how often the function has asked by now. */
  suspects(asked: number): Suspects {
    // A question can't be held back: it is asked again if nothing came of its end.
    const retry = this.#heard.filter((one) => one.asked === asked && (!one.isBeside || one.at[0] === 'pauses'))
    const doubt = this.#heard.filter((one) => (one.isBeside || one.asked !== asked) && one.at[0] !== 'pauses')
    return { retry: retry.map(({ at }) => at), doubt: doubt.map(({ at }) => at) }
  }
}

const suspectsOf = new WeakMap<object, () => Suspects>()

/** The error, as something for which it is known what it may stem from. */
export function accuse(error: unknown, suspects: () => Suspects): object {
  const thrown = typeof error === 'object' && error !== null ? error : new Error(describeError(error).message)
  suspectsOf.set(thrown, suspects)
  return thrown
}

/** Where the records are that made a run fail, and those about which there is doubt. */
export function stemsOf(errors: readonly unknown[]): Suspects {
  const led: Path[] = []
  const accused: Suspects[] = []
  for (const error of errors) follow(error, undefined, { led, accused, seen: new Set() })
  const isSettled = (at: Path) => led.some((found) => activationOf(found) === activationOf(at))
  const retry = unique([...led, ...accused.flatMap((one) => one.retry)])
  return { retry, doubt: unique(accused.flatMap((one) => one.doubt)).filter((at) => !isSettled(at)) }
}

interface Search {
  readonly led: Path[]
  readonly accused: Suspects[]
  readonly seen: Set<unknown>
}

const MOST_ERRORS = 1000

/** @param outer the node that failed, of which only what is inside led to it. */
function follow(error: unknown, outer: Path | undefined, search: Search): void {
  if (typeof error !== 'object' || error === null || search.seen.has(error) || search.seen.size > MOST_ERRORS) return
  search.seen.add(error)
  const accused = suspectsOf.get(error)?.()
  if (accused) search.accused.push(accused)
  const at = recordOf(error)
  // What a step outside it had thrown before was caught, and the program continued from there.
  const leads = at !== undefined && (outer === undefined || at[0] === 'pauses' || isInside(at, outer))
  if (leads) search.led.push(at)
  const inner = leads ? at : outer
  for (const next of partsOf(error)) follow(next, inner, search)
}

/** What an error came from: its cause, those that it aggregates, and what a program attaches to one of its own. */
function partsOf(error: object): readonly unknown[] {
  if (isHoldfastError(error)) return [error.cause]
  try {
    const { cause, errors } = error as { readonly cause?: unknown; readonly errors?: unknown }
    return [cause, errors, ...Object.values(error)]
  } catch {
    // A getter of the program's own may throw.
    return []
  }
}

const OF_STEPS: ReadonlySet<string> = new Set(['step-failed', 'effect-unknown', 'child-failed'])

/** Where the record of what an error tells lies: a step that failed or whose outcome is unknown, or a question. */
function recordOf(error: unknown): Path | undefined {
  if (isHoldfastError(error, 'pause-closed')) return ['pauses', String(error.data['pause'])]
  const isOfStep = isHoldfastError(error) && OF_STEPS.has(error.code)
  if (!isOfStep) return undefined
  const { at } = error.data
  return Array.isArray(at) ? (at as unknown as Path) : undefined
}

/** Whether one record is that of a step inside of the other's node. */
function isInside(step: Path, node: Path): boolean {
  const last = node.length - 1
  const isSameScope = step.length === node.length && step.every((key, i) => i === last || key === node[i])
  return isSameScope && String(step[last]).startsWith(`${node[last]}/`)
}

/** The function that a step belongs to. */
function activationOf(at: Path): string {
  const id = String(at.at(-1))
  return JSON.stringify([...at.slice(0, -1), id.slice(0, Math.max(0, id.lastIndexOf('/')))])
}

function unique(paths: readonly Path[]): readonly Path[] {
  return [...new Map(paths.map((at) => [JSON.stringify(at), at])).values()]
}

/** Ops that let those steps be retried for which a failed run is resumed. */
export function retryFailed(state: RunState, { retry = [], doubt, takes }: RunRecord): readonly Op[] {
  const retried = new Set(retry.map((at) => JSON.stringify(at)))
  // 0.1 noted only those to which the error led: all others are in doubt.
  const doubted = doubt ?? failedIn(state, [])
  return [
    ...retry.map((at) => retryStep(state, at, takes + 1)),
    ...doubted
      .filter(
        (at) => !retried.has(JSON.stringify(at)) && isFailed(valueAt(state as State, at) as StepRecord | undefined),
      )
      .map((at) => set([...at, 'doubted'], true)),
  ]
}

/** Whether the program is told of a failure when it comes back to this record. */
export function isFailed(record: StepRecord | undefined): boolean {
  return record?.status === 'failed' || (record?.status === 'started' && record.unknown === true)
}

// The generation stays: the service may remember the keys of those that failed. And what may have happened stays begun:
// its outcome is resolved first.
export function retryStep(state: RunState, at: Path, take: number): Op {
  const { unknown: _, doubted: __, ...record } = (valueAt(state as State, at) ?? {}) as Partial<StepRecord>
  if (record.status === 'started') return set(at, record)
  const { generation } = record
  return generation === undefined ? remove(at) : set(at, { status: 'retry', generation, clearIn: take })
}

function failedIn(scope: ScopeState, prefix: readonly string[]): readonly Path[] {
  const own = Object.entries(scope.steps ?? {})
    .filter(([, record]) => isFailed(record))
    .map(([id]) => [...prefix, 'steps', id] as unknown as Path)
  const inner = Object.entries(scope.scopes ?? {}).flatMap(([id, sub]) => failedIn(sub, [...prefix, 'scopes', id]))
  return [...own, ...inner]
}
