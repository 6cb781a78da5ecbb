import type { Fold } from '#src/log/entry/fold.js'
import type { RunState, ScopeState, StepRecord } from '#src/runtime/run/state/run-state.js'
import type { Landing } from './mortal.js'
import type { Known } from './rules.js'
import type { Place } from './world.js'

/** Reads from the store itself what is durably known of a place. */
export function lookInto(read: () => Promise<Fold>): (place: Place) => Promise<Known> {
  return async ({ record, mark, outer }) => {
    const { state, epoch } = await read()
    const scopes = allScopes(state as RunState)
    const own = scopes.filter((scope) => (scope.state?.['outer'] ?? '') === outer)
    const records = own.flatMap(({ steps = {} }) =>
      Object.entries(steps).flatMap(([path, step]) => (isRecord(record, path, step) ? [step] : [])),
    )
    const closed = mark !== '' && scopes.some((scope) => marksOf(scope.state).includes(mark))
    return {
      intended: records.some(({ status }) => status === 'started'),
      keys: records.flatMap(({ status, key }) => (status === 'started' && key !== undefined ? [key] : [])),
      acknowledged: closed || records.some(({ status }) => status === 'done'),
      isTakenOver: epoch > 1,
    }
  }
}

function isRecord(record: Place['record'], path: string, step: StepRecord): boolean {
  if ('path' in record) return path.endsWith(record.path)
  return step.input === record.input && path.slice(path.lastIndexOf('/') + 1).startsWith(`${record.name}[`)
}

function allScopes(scope: ScopeState): readonly ScopeState[] {
  return [scope, ...Object.values(scope.scopes ?? {}).flatMap(allScopes)]
}

/** What says in a state, or in a node's update of it, that a place is done: its mark, or the answer to its call. */
export function marksOf(state: unknown): readonly string[] {
  const { log = [], messages = [] } = (state ?? {}) as Marked
  return [...log, ...answersOf(messages).map(({ callId }) => callId)]
}

/** What the model is told of each call. */
export function answersOf(messages: Messages): readonly Answer[] {
  return messages.flatMap(({ parts }) =>
    parts.flatMap(({ type, callId, output }) => (type === 'tool-result' ? [{ callId, output }] : [])),
  )
}

interface Answer {
  readonly callId: string
  readonly output: { readonly type: string; readonly value?: unknown }
}

type Messages = readonly { readonly parts: readonly (Answer & { readonly type: string })[] }[]

interface Marked {
  readonly log?: readonly string[]
  readonly messages?: Messages
}

/** Epochs only rise, each by a claim, and only who claimed the newest writes as its owner. */
export function checkLandings(landings: readonly Landing[]): readonly string[] {
  const broken: string[] = []
  let epoch = 0
  let owner = ''
  for (const landing of landings) {
    if (landing.lease === 'claim') {
      if (landing.epoch !== epoch + 1) broken.push(`${landing.process} claimed epoch ${landing.epoch} after ${epoch}`)
      epoch = landing.epoch
      owner = landing.process
    } else if (landing.epoch !== epoch || (landing.lease !== 'keep' && landing.process !== owner)) {
      broken.push(`${landing.process} wrote as owner in epoch ${landing.epoch}, when ${owner} held ${epoch}`)
    }
  }
  return broken
}
