import { signal } from '@preact/signals'

export interface Key {
  readonly keys: string
  readonly what: string
  readonly run: () => void
}

/** What keys do now: the last that was added for a key wins, so a view's own come before those of the whole page. */
const layers = signal<readonly (readonly Key[])[]>([])
export const helpOpen = signal(false)

let pending = ''
let pendingTimer: ReturnType<typeof setTimeout> | undefined

/** Adds keys until they are taken away again. */
export function addKeys(keys: readonly Key[]): () => void {
  layers.value = [...layers.peek(), keys]
  return () => {
    layers.value = layers.peek().filter((layer) => layer !== keys)
  }
}

/** All keys that do something now, each once. */
export function activeKeys(): readonly Key[] {
  const seen = new Map<string, Key>()
  for (const layer of [...layers.value].reverse())
    for (const key of layer) if (!seen.has(key.keys)) seen.set(key.keys, key)
  return [...seen.values()]
}

export function onKey(event: KeyboardEvent): void {
  if (event.metaKey || event.ctrlKey || event.altKey || event.isComposing) return
  const target = event.target as HTMLElement | null
  const isTyping = target?.closest('input, textarea, select, [contenteditable]') !== null
  if (isTyping || document.querySelector('dialog[open]')) {
    if (event.key === 'Escape' && isTyping && !target?.closest('dialog')) target?.blur()
    return
  }
  const pressed = pending === '' ? event.key : `${pending} ${event.key}`
  const known = activeKeys()
  const found = known.find(({ keys }) => keys === pressed)
  clearTimeout(pendingTimer)
  pending = ''
  if (found) {
    event.preventDefault()
    found.run()
  } else if (known.some(({ keys }) => keys.startsWith(`${pressed} `))) {
    pending = pressed
    pendingTimer = setTimeout(() => {
      pending = ''
    }, 1500)
  }
}
