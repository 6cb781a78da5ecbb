import { client } from './api.js'
import { helpOpen } from './keys.js'
import { Icon, type IconName } from './parts/icon.js'
import { useResource } from './resource.js'
import { route, to } from './router.js'
import { chooseTenant, me, signOut, tenants } from './session.js'
import { done } from './toast.js'
import { nextTheme, theme } from './theme.js'

const PLACES: readonly (readonly [id: string, label: string, icon: IconName])[] = [
  ['threads', 'Threads', 'threads'],
  ['inbox', 'Inbox', 'inbox'],
  ['effects', 'Unknown effects', 'effects'],
  ['workers', 'Runs and workers', 'workers'],
  ['store', 'Store', 'store'],
  ['retention', 'Retention', 'retention'],
]

const THEME_ICON = { system: 'auto', dark: 'moon', light: 'sun' } as const

/** Where one can go, and what waits there. */
export function Sidebar() {
  const open = useResource(
    () => {
      void done.value
      return client.value.pauses({ deferred: false, limit: 200 })
    },
    { everyMs: 5000 },
  )
  const pauses = open.value.value?.pauses ?? []
  const counts: Readonly<Record<string, number>> = {
    inbox: pauses.length,
    effects: pauses.filter(({ kind }) => kind === 'unknown-effect' || kind === 'permission').length,
  }
  const here = route.value.parts[0] ?? 'threads'
  return (
    <nav class="sidebar" aria-label="Studio">
      <a class="brand" href={to(['threads'])}>
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d="M12 3v18M12 13c-5 0-7-3-7-7M12 10c4 0 6-2 6-5M12 18c4 0 7-2 7-6M12 21c-3 0-6-1-7-3" />
        </svg>
        <span>Holdfast</span>
      </a>
      <ul class="places">
        {PLACES.map(([id, label, icon]) => (
          <li key={id}>
            <a
              href={to([id])}
              aria-current={here === id || (id === 'threads' && here === 'thread') ? 'page' : undefined}
            >
              <Icon name={icon} />
              <span class="place-name">{label}</span>
              {(counts[id] ?? 0) > 0 && (
                <span class="count" data-tone={id === 'effects' ? 'bad' : 'ask'}>
                  {counts[id]}
                </span>
              )}
            </a>
          </li>
        ))}
      </ul>
      <div class="sidebar-end">
        {tenants.value.length > 1 ? (
          <label class="tenant">
            <span>Tenant</span>
            <select value={me.value?.tenant} onChange={(event) => void chooseTenant(event.currentTarget.value)}>
              {tenants.value.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        ) : (
          <p class="tenant">
            <span>Tenant</span> {me.value?.tenant}
          </p>
        )}
        <div class="sidebar-buttons">
          <button
            type="button"
            class="icon-button"
            onClick={nextTheme}
            aria-label={`Theme: ${theme.value}`}
            title={`Theme: ${theme.value}`}
          >
            <Icon name={THEME_ICON[theme.value]} />
          </button>
          <button
            type="button"
            class="icon-button"
            onClick={() => (helpOpen.value = true)}
            aria-label="What keys do"
            title="What keys do (?)"
          >
            <Icon name="help" />
          </button>
          <button
            type="button"
            class="icon-button leave"
            onClick={() => void signOut()}
            aria-label="Sign out"
            title="Sign out"
          >
            <Icon name="leave" />
          </button>
        </div>
      </div>
    </nav>
  )
}
