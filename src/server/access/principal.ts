/**
 * What a caller may do. `read`: look. `answer`: answer and postpone questions. `run`: start, cancel, signal, write to
 * the store. `fork`: fork and tag. `admin`: everything, plus erase, repair and metrics of the whole store.
 */
export type Role = 'read' | 'answer' | 'run' | 'fork' | 'admin'

/** All roles, the most powerful last. */
export const ROLES: readonly Role[] = ['read', 'answer', 'run', 'fork', 'admin']

/** Who makes a request. Everything that it reads and writes belongs to its tenant. */
export interface Principal {
  readonly tenant: string
  /** Identifies the caller in the record of answers and cancellations: an account, an email address. */
  readonly subject: string
  readonly roles: readonly Role[]
  /** Other tenants that it may act for, one per request, named by the header `x-holdfast-tenant`; `*`: any. */
  readonly tenants?: readonly string[] | '*'
}

/** Whether a principal has a role. An admin has all of them. */
export function mayDo({ roles }: Principal, role: Role): boolean {
  return roles.includes(role) || roles.includes('admin')
}
