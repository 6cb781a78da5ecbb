import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { addKeys, helpOpen, onKey } from './keys.js'
import { Help } from './parts/help.js'
import { Toasts } from './parts/toasts.js'
import { followLinks, go, route, to } from './router.js'
import { me, refusal, signIn } from './session.js'
import { Sidebar } from './sidebar.js'
import { CompareView } from './views/compare.js'
import { EffectsView } from './views/effects.js'
import { InboxView } from './views/inbox.js'
import { RetentionView } from './views/retention.js'
import { StoreView } from './views/store.js'
import { ThreadView } from './views/thread.js'
import { ThreadsView } from './views/threads.js'
import { WorkersView } from './views/workers.js'

const GLOBAL = [
  { keys: '?', what: 'What keys do', run: () => (helpOpen.value = true) },
  { keys: 'g t', what: 'Go to the threads', run: () => go(to(['threads'])) },
  { keys: 'g i', what: 'Go to the inbox', run: () => go(to(['inbox'])) },
  { keys: 'g e', what: 'Go to the unknown effects', run: () => go(to(['effects'])) },
  { keys: 'g w', what: 'Go to the workers', run: () => go(to(['workers'])) },
  { keys: 'g s', what: 'Go to the store', run: () => go(to(['store'])) },
  { keys: 'g r', what: 'Go to the retention', run: () => go(to(['retention'])) },
]

export function App() {
  useEffect(() => {
    const remove = addKeys(GLOBAL)
    document.addEventListener('keydown', onKey)
    document.addEventListener('click', followLinks)
    return () => {
      remove()
      document.removeEventListener('keydown', onKey)
      document.removeEventListener('click', followLinks)
    }
  }, [])
  const { parts } = route.value
  const place = parts.join('/')
  // Who does not see the page hears of the new one by its heading.
  useEffect(() => {
    document.title = `${parts[0] === 'thread' ? (parts[1] ?? '') : (parts[0] ?? 'threads')} · Holdfast`
    const active = document.activeElement
    if (active === null || active === document.body) document.querySelector<HTMLElement>('main h1')?.focus()
  }, [place])
  if (me.value === undefined) return <SignIn />
  return (
    <div class="app">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Sidebar />
      <main id="main">
        <View key={`${me.value.tenant}/${place}`} />
      </main>
      <Toasts />
      {helpOpen.value && <Help />}
    </div>
  )
}

function View() {
  const [name, id, sub] = route.value.parts
  switch (name) {
    case 'thread':
      if (id === undefined) return <ThreadsView />
      return sub === 'compare' ? <CompareView id={id} /> : <ThreadView id={id} />
    case 'inbox':
      return <InboxView />
    case 'effects':
      return <EffectsView />
    case 'workers':
      return <WorkersView />
    case 'store':
      return <StoreView />
    case 'retention':
      return <RetentionView />
    default:
      return <ThreadsView />
  }
}

function SignIn() {
  const token = useSignal('')
  return (
    <main class="sign-in">
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void signIn(token.value)
        }}
      >
        <p class="brand">Holdfast</p>
        <h1>Open the studio</h1>
        <p class="hint">
          Open the address that <code>holdfast studio</code> printed, or enter a token of the server. It is kept in a
          cookie that no script can read, and is sent to this server only.
        </p>
        <label class="field">
          <span class="field-name">Token</span>
          <input
            type="password"
            autocomplete="off"
            value={token.value}
            onInput={(event) => (token.value = event.currentTarget.value)}
          />
        </label>
        {refusal.value && (
          <p class="problem" role="alert">
            {refusal.value}
          </p>
        )}
        <button type="submit" class="button" data-kind="primary">
          Open
        </button>
      </form>
    </main>
  )
}
