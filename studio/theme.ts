import { signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'
const KEY = 'holdfast-theme'

export const theme = signal<Theme>(read())

function read(): Theme {
  const kept = localStorage.getItem(KEY)
  return kept === 'light' || kept === 'dark' ? kept : 'system'
}

/** Shows what was chosen; `system` follows the machine. */
export function applyTheme(): void {
  if (theme.value === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = theme.value
}

export function nextTheme(): void {
  theme.value = theme.value === 'system' ? 'dark' : theme.value === 'dark' ? 'light' : 'system'
  if (theme.value === 'system') localStorage.removeItem(KEY)
  else localStorage.setItem(KEY, theme.value)
  applyTheme()
}
