import { computed, signal } from '@preact/signals'
import { HoldfastClient, HoldfastClientError } from '../src/client/index.js'

/** Where the server is mounted. */
export const BASE = document.querySelector<HTMLMetaElement>('meta[name=holdfast-base]')?.content ?? ''

/** The tenant whose threads are shown; undefined for the token's own. */
export const tenant = signal<string | undefined>(undefined)

export const client = computed(
  () =>
    new HoldfastClient({
      baseUrl: BASE,
      ...(tenant.value === undefined ? {} : { headers: { 'x-holdfast-tenant': tenant.value } }),
    }),
)

export function isRefused(error: unknown): boolean {
  return error instanceof HoldfastClientError && error.status === 401
}

export function isMissing(error: unknown): boolean {
  return error instanceof HoldfastClientError && error.status === 404
}

export function isDamaged(error: unknown): boolean {
  return error instanceof HoldfastClientError && error.code === 'corrupt'
}

/** What went wrong, for whoever looks. */
export function explain(error: unknown): string {
  if (error instanceof HoldfastClientError) return error.message
  return error instanceof TypeError ? 'The server does not answer.' : String((error as Error).message ?? error)
}
