import { randomBytes } from 'node:crypto'
import { DUE, type Driver, type DuePage, type DueQuery, PROGRAM_LABEL } from '../../../log/contract.js'
import { createLog, LONG_MS, logKey, type SuiteContext } from '../suite-context.js'

export const NOW = 1_700_000_000_000
export const MINUTE = 60_000

export const exempt = (driver: Driver): string | undefined =>
  driver.takeDue ? undefined : 'it has no index of what is due'
// Servers are shared, and workers look at all tenants: programs tell the tests apart.
export const newProgram = (): string => `p-${randomBytes(6).toString('hex')}`

export function leave(
  { driver, tenant }: Pick<SuiteContext, 'driver' | 'tenant'>,
  thread: string,
  program: string,
  wakeAt: number | null = DUE,
  updatedAt = NOW,
  labels: Readonly<Record<string, string | number>> = {},
) {
  const other = 'x"],["holdfast.program","fake"],["holdfast.priority",9]'
  const index = { wakeAt, updatedAt, metadata: { [PROGRAM_LABEL]: program, other, ...labels } }
  return createLog(driver, logKey(tenant, thread), { index })
}

export function take(driver: Driver, programs: readonly string[], more: Partial<DueQuery> = {}) {
  return driver.takeDue?.(query(programs, more)) as Promise<DuePage>
}

function query(programs: readonly string[], more: Partial<DueQuery>): DueQuery {
  return { programs, now: NOW, limit: 100, reserveMs: LONG_MS, ...more }
}

export const names = ({ heads }: DuePage): string[] => heads.map(({ log }) => log.thread)
