import type { RunState, ScopeState } from '#src/runtime/run-state.js'
import type { Landing } from './mortal.js'
import type { Known, Place } from './world.js'

/** Reads from the store itself what is durably known of a place. */
export function lookInto(read: () => Promise<RunState>): (place: Place) => Promise<Known> {
  return async ({ record, mark, outer }) => {
    const state = await read()
    const scopes = allScopes(state)
    const own = scopes.filter((scope) => (scope.state?.['outer'] ?? '') === outer)
    const records = own.flatMap(({ steps = {} }) =>
      Object.entries(steps).flatMap(([path, step]) => (path.endsWith(record) ? [step] : [])),
    )
    const closed = mark !== '' && scopes.some((scope) => ((scope.state?.['log'] ?? []) as string[]).includes(mark))
    return {
      intended: records.some(({ status }) => status === 'started'),
      acknowledged: closed || records.some(({ status }) => status === 'done'),
    }
  }
}

function allScopes(scope: ScopeState): readonly ScopeState[] {
  return [scope, ...Object.values(scope.scopes ?? {}).flatMap(allScopes)]
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
