import type { ComponentChildren } from 'preact'
import { ago, clock } from '../format.js'
import { Icon, type IconName } from './icon.js'

const TONES: Readonly<Record<string, string>> = {
  completed: 'good',
  active: 'busy',
  running: 'busy',
  waiting_tool: 'busy',
  waiting_human: 'ask',
  paused: 'ask',
  failed: 'bad',
  limited: 'bad',
  incompatible: 'bad',
  parked: 'bad',
  forked: 'fork',
}

export function toneOf(status: string): string {
  return TONES[status] ?? 'calm'
}

/** How a thread or run stands: by word and by color. */
export function Status({ status }: { readonly status: string }) {
  return (
    <span class="status" data-tone={toneOf(status)}>
      {status.replaceAll('_', ' ')}
    </span>
  )
}

export function Time({ at }: { readonly at: string | number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={clock(at)}>
      {ago(at)}
    </time>
  )
}

export function Chip({ children, title }: { readonly children: ComponentChildren; readonly title?: string }) {
  return (
    <span class="chip" title={title}>
      {children}
    </span>
  )
}

export function Button(props: {
  readonly children: ComponentChildren
  readonly onClick: () => void
  readonly kind?: 'primary' | 'danger' | 'quiet'
  readonly icon?: IconName
  readonly disabled?: boolean
  readonly title?: string
  readonly pressed?: boolean
}) {
  const { children, onClick, kind, icon, disabled, title, pressed } = props
  return (
    <button
      type="button"
      class="button"
      data-kind={kind}
      onClick={onClick}
      disabled={disabled}
      title={title}
      aria-pressed={pressed}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

/** Where there is nothing to show, and why. */
export function Empty({ title, children }: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p>{children}</p>}
    </div>
  )
}

export function Problem({ text }: { readonly text: string | undefined }) {
  return text === undefined ? null : (
    <p class="problem" role="alert">
      {text}
    </p>
  )
}

export function Head(props: {
  readonly title: string
  readonly note?: ComponentChildren
  readonly children?: ComponentChildren
}) {
  return (
    <header class="view-head">
      <div class="view-title">
        <h1 tabIndex={-1}>{props.title}</h1>
        {props.note && <p>{props.note}</p>}
      </div>
      {props.children && <div class="view-actions">{props.children}</div>}
    </header>
  )
}

export interface Tab {
  readonly id: string
  readonly label: string
  readonly count?: number
}

/** Tabs as WAI-ARIA describes them: arrows move, and only the chosen one is in the tab order. */
export function Tabs(props: {
  readonly tabs: readonly Tab[]
  readonly chosen: string
  readonly label: string
  readonly onChoose: (id: string) => void
}) {
  const { tabs, chosen, label, onChoose } = props
  const move = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0
    if (by === 0) return
    event.preventDefault()
    const at = tabs.findIndex(({ id }) => id === chosen)
    const next = tabs[(at + by + tabs.length) % tabs.length]
    if (!next) return
    onChoose(next.id)
    ;(event.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus()
  }
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map(({ id, label: name, count }) => (
        <button
          key={id}
          type="button"
          role="tab"
          data-tab={id}
          aria-selected={id === chosen}
          tabIndex={id === chosen ? 0 : -1}
          onClick={() => onChoose(id)}
        >
          {name}
          {count !== undefined && count > 0 && <span class="count">{count}</span>}
        </button>
      ))}
    </div>
  )
}
