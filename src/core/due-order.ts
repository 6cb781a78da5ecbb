/** What decides when something that is due has its turn. */
export interface DuePlace {
  readonly priority: number
  readonly tenant: string
  /** Since when it is due. */
  readonly since: number
}

/**
 * The order in which what is due has its turn: higher priorities first; of the same priority tenants by turns, beginning
 * behind `after`; of a tenant the one that has waited longest. So a flood of one tenant takes nobody's turn but its own.
 */
export function inDueOrder<Place extends DuePlace>(places: readonly Place[], after: string = ''): Place[] {
  const lanes = new Map<string, Place[]>()
  for (const place of places) {
    const name = `${place.priority} ${place.tenant}`
    const lane = lanes.get(name)
    if (lane) lane.push(place)
    else lanes.set(name, [place])
  }
  const ranked: { readonly place: Place; readonly turn: number }[] = []
  for (const lane of lanes.values()) {
    lane.sort((a, b) => a.since - b.since)
    for (const [turn, place] of lane.entries()) ranked.push({ place, turn })
  }
  const isBehind = ({ tenant }: Place) => (tenant > after ? 0 : 1)
  ranked.sort(
    (a, b) =>
      b.place.priority - a.place.priority ||
      a.turn - b.turn ||
      isBehind(a.place) - isBehind(b.place) ||
      (a.place.tenant < b.place.tenant ? -1 : a.place.tenant > b.place.tenant ? 1 : 0),
  )
  return ranked.map(({ place }) => place)
}
