import assert from 'node:assert/strict'
import { type Collection, Holdfast, isHoldfastError } from '../../index.js'
import type { Driver } from '../../driver.js'
import { LogStore, type LogStoreOptions } from '../../log/index.js'
import { newTenant } from '../driver-suite/suite-context.js'
import type { VirtualClock } from '../virtual-clock.js'
import type { Random } from './random.js'

/** What one test of the suite works with. */
export interface StoreContext {
  /** The store under test, narrowed to a tenant that no other test uses. */
  readonly hf: Holdfast
  readonly tenant: string
  /** Drives expiry. It stands still until it is told to continue. */
  readonly clock: VirtualClock
  /** Another driver of the same backend, closed after the test. */
  driver(): Promise<Driver>
  /** Another process, so to speak: the same tenant through a driver of its own. */
  open(options?: LogStoreOptions, driver?: Driver): Promise<Holdfast>
  /** Repeats with the seed that a failure prints. */
  readonly random: Random
  /** How often random tests run. */
  readonly rounds: number
}

export interface StoreTest {
  /** Reads as the specification. */
  readonly name: string
  readonly run: (context: StoreContext) => Promise<void>
  readonly timeoutMs?: number
}

/** A Holdfast over a driver, which is closed by whoever opened it. */
export function holdfastOver(driver: Driver, tenant: string, options: LogStoreOptions): Holdfast {
  return new Holdfast(new LogStore(driver, options)).tenant(tenant)
}

export { newTenant }

/** A collection of whatever values. */
export function notes(
  hf: Holdfast,
  scope: Record<string, string> = { user: 'u' },
  name = 'notes',
): Collection<unknown> {
  return hf.store.scope(scope).collection<unknown>(name)
}

/** All keys and values of a collection, page by page. */
export async function contents(
  collection: Collection<unknown>,
  limit = 50,
): Promise<readonly (readonly [string, unknown])[]> {
  const found: [string, unknown][] = []
  let cursor: string | undefined
  for (let pages = 0; ; pages++) {
    assert.ok(pages < 1000, 'the pages come to an end')
    const page = await collection.list({ limit, ...(cursor === undefined ? {} : { cursor }) })
    found.push(...page.items.map(({ key, value }) => [key, value] as [string, unknown]))
    cursor = page.cursor
    if (cursor === undefined) return found
  }
}

export function keysOf(page: { readonly items: readonly { readonly key: string }[] }): string[] {
  return page.items.map(({ key }) => key)
}

/** Fails with one of these codes, and not with an error that nobody named. */
export async function refuses(work: () => unknown, ...codes: readonly string[]): Promise<void> {
  let error: unknown
  try {
    await work()
  } catch (thrown) {
    error = thrown
  }
  assert.ok(error !== undefined, `it is refused with ${codes.join(' or ')}`)
  assert.ok(isHoldfastError(error) && codes.includes(error.code), `${String(error)} has the code ${codes.join(' or ')}`)
}

/** Order by UTF-8 bytes, the plain way. */
export function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}
