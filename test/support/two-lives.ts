import { Holdfast } from 'holdfast'
import { type Driver, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { faultyDriver, type VirtualClock, virtualClock } from 'holdfast/testing'

/** Two processes on one store in memory: the first dies when it is told to, the second finds what it left. */
export interface TwoLives {
  readonly clock: VirtualClock
  readonly driver: Driver
  readonly first: Holdfast
  /** From now on nothing that the first process does reaches the store. */
  die(): void
  /** The second process, from when the first one's lease has run out. */
  second(): Promise<Holdfast>
}

const LEASE_MS = 10_000

export async function twoLives(): Promise<TwoLives> {
  const clock = virtualClock()
  const driver = await openDriver('memory:', { clock })
  const mortal = faultyDriver(driver)
  const open = (on: Driver) => new Holdfast(new LogStore(on, { clock }))
  return {
    clock,
    driver,
    first: open(mortal),
    die: () => mortal.crashAt(1, 'before'),
    async second() {
      await clock.advance(LEASE_MS + 1)
      return open(driver)
    },
  }
}

/** Waits for a run whose process does not survive it. */
export async function dies(run: Promise<unknown>): Promise<void> {
  const error = await run.then(
    (outcome) => new Error(`It survived: ${JSON.stringify(outcome)}`),
    (thrown: unknown) => thrown,
  )
  if ((error as { readonly code?: unknown }).code !== 'closed') throw error
}
