import { signal } from '@preact/signals'
import { BASE, client, isRefused, tenant } from './api.js'

export interface Me {
  readonly tenant: string
  readonly subject: string
  readonly roles: readonly string[]
  readonly tenants?: readonly string[] | '*'
}

/** Who looks; undefined while nobody is let in. */
export const me = signal<Me | undefined>(undefined)
/** Why nobody is let in. */
export const refusal = signal<string | undefined>(undefined)
export const programs = signal<readonly { readonly name: string; readonly version: string; readonly kind: string }[]>(
  [],
)
/** The tenants that can be chosen. */
export const tenants = signal<readonly string[]>([])

/** Takes the token out of the address, where it would stay in the history, and changes it for a cookie. */
export async function beginSession(): Promise<void> {
  const given = new URLSearchParams(location.hash.slice(1)).get('token')
  if (given !== null) {
    history.replaceState(history.state, '', location.pathname + location.search)
    await signIn(given)
    return
  }
  await look()
}

/** Changes a token for a session. */
export async function signIn(token: string): Promise<void> {
  try {
    const response = await fetch(`${BASE}/studio/session`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token.trim()}` },
    })
    if (!response.ok) {
      refusal.value =
        response.status === 401 ? 'This token is unknown here.' : `The server answered ${response.status}.`
      return
    }
  } catch {
    refusal.value = 'The server does not answer.'
    return
  }
  await look()
}

export async function signOut(): Promise<void> {
  await fetch(`${BASE}/studio/session`, { method: 'DELETE' })
  me.value = undefined
}

async function look(): Promise<void> {
  try {
    me.value = await client.value.me()
    refusal.value = undefined
    tenant.value = me.value.tenant
    programs.value = await client.value.programs()
    if (me.value.tenants !== undefined) tenants.value = await client.value.tenants()
  } catch (error) {
    me.value = undefined
    refusal.value = isRefused(error) ? undefined : (error as Error).message
  }
}

/** Looks at another tenant's threads. */
export async function chooseTenant(name: string): Promise<void> {
  tenant.value = name
  await look()
}

export function may(role: string): boolean {
  const roles = me.value?.roles ?? []
  return roles.includes(role) || roles.includes('admin')
}

export function canRun(program: unknown): boolean {
  return may('run') && programs.value.some(({ name }) => name === program)
}
