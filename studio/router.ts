import { computed, signal } from '@preact/signals'
import { BASE } from './api.js'

const HOME = `${BASE}/studio`

const address = signal(location.pathname + location.search)
addEventListener('popstate', () => {
  address.value = location.pathname + location.search
})

/** Where the page is: the parts of its path, decoded, and the query. */
export const route = computed(() => {
  const [path = '', search = ''] = address.value.split('?')
  const parts = path
    .slice(HOME.length)
    .split('/')
    .filter(Boolean)
    .map((part) => {
      try {
        return decodeURIComponent(part)
      } catch {
        return part
      }
    })
  return { parts, query: new URLSearchParams(search) }
})

export type Query = Readonly<Record<string, string | readonly string[] | undefined>>

/** The address of a view: every one of them can be kept, sent and opened again. */
export function to(parts: readonly string[], query: Query = {}): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    for (const one of typeof value === 'string' ? [value] : (value ?? [])) if (one !== '') search.append(name, one)
  }
  const suffix = search.size > 0 ? `?${search}` : ''
  return `${HOME}/${parts.map(encodeURIComponent).join('/')}${suffix}`
}

export function go(href: string, options: { readonly replace?: boolean } = {}): void {
  if (href === address.value) return
  if (options.replace) history.replaceState(null, '', href)
  else history.pushState(null, '', href)
  address.value = location.pathname + location.search
}

/** Changes the query of where the page is. */
export function setQuery(changes: Query, options: { readonly replace?: boolean } = { replace: true }): void {
  const { parts, query } = route.peek()
  const next: Record<string, string | readonly string[] | undefined> = {}
  for (const name of query.keys()) next[name] = query.getAll(name)
  go(to(parts, { ...next, ...changes }), options)
}

/** Links that this page can follow by itself. Others, and clicks that want another tab, are the browser's. */
export function followLinks(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return
  const link = (event.target as Element | null)?.closest('a')
  if (!link || link.target || link.hasAttribute('download') || link.origin !== location.origin) return
  if (!link.pathname.startsWith(`${HOME}/`)) return
  event.preventDefault()
  go(link.pathname + link.search)
}
