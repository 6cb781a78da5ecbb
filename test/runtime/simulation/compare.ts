import { isDeepStrictEqual } from 'node:util'
import { openDriver } from 'holdfast/driver'
import { virtualClock } from 'holdfast/testing'
import type { Chaos } from './chaos.js'
import { type Place, type Result, simulate } from './simulate.js'
import type { ProgramSpec } from './spec.js'

/** A place that is to be closed. */
export type Opened = Place & { close(): Promise<void> }

/** A store in memory whose clock is the simulation's. */
export async function onMemory(): Promise<Opened> {
  const clock = virtualClock()
  const driver = await openDriver('memory:', { clock })
  return { driver, clock, leasesByClock: true, thread: 't', close: () => driver.close() }
}

/** Plays a history. Throws when a rule was broken. */
export async function playOnce(spec: ProgramSpec, chaos: Chaos, open: () => Promise<Opened>): Promise<Result> {
  const place = await open()
  try {
    return await simulate(spec, chaos, place)
  } finally {
    await place.close()
  }
}

/** Plays a history, and the same program undisturbed: both end alike. Throws when they don't, or a rule was broken. */
export async function compare(spec: ProgramSpec, chaos: Chaos, open: () => Promise<Opened>): Promise<void> {
  const crashed = await playOnce(spec, chaos, open)
  const expected = await playOnce(spec, { ...chaos, blows: [], skews: [], reuse: false }, open)
  if (crashed.cut || expected.cut) return
  const [ends, shouldEnd] = [essence(spec, crashed), essence(spec, expected)]
  if (isDeepStrictEqual(ends, shouldEnd)) return
  throw new Error(`It ends as\n${JSON.stringify(ends)}\nand undisturbed as\n${JSON.stringify(shouldEnd)}`)
}

/**
 * What must not depend on crashes. Of several steps that fail side by side any may be the first: which one ended the run
 * is a matter of luck. So is how far one got by then that waited for somebody: a crash gives people the time to answer
 * before the failure is found. And who of several gets a signal that all of them wait for.
 */
function essence(spec: ProgramSpec, { status, state, output, error, items }: Result): unknown {
  const text = JSON.stringify(spec)
  const failed = (error as { readonly code?: string } | undefined)?.code ?? error !== undefined
  if (text.includes('"shared":true')) return { status, failed }
  const isWaiting = /"kind":"(receive|pause|sleep|think)"|"gate":"(before|after)"/.test(text)
  const found = { state, output, items: failed !== false && isWaiting ? 'any' : items }
  // Another life of the thread has places of its own, and is otherwise the same.
  return { status, failed, ...JSON.parse(JSON.stringify(found).replaceAll(/\b\d+(?=[/ ]\d+:)/g, '')) }
}
