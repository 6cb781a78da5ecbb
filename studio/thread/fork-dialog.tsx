import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { explain } from '../api.js'
import { visible } from '../format.js'
import { Button, Problem } from '../parts/basics.js'
import { Dialog } from '../parts/dialog.js'
import { JsonField } from '../parts/schema-form.js'
import { go, to } from '../router.js'
import { canRun, may } from '../session.js'
import { say } from '../toast.js'
import { labelOf } from './label.js'
import { editText, editableTexts } from './edit-messages.js'
import type { ThreadModel } from './model.js'

type State = Readonly<Record<string, unknown>>

/** Makes a branch of the place that is looked at, with what was changed, and runs it if asked to. */
export function ForkDialog({ model, onClose }: { readonly model: ThreadModel; readonly onClose: () => void }) {
  const facts = model.facts.peek()
  const here = model.here.peek()
  const state = (facts?.state ?? {}) as State
  const changed = useSignal<State>({})
  const name = useSignal('')
  const effects = useSignal<'ask' | 'allow' | 'deny'>('ask')
  const reads = useSignal<'live' | 'recorded'>('live')
  const error = useSignal<string | undefined>(undefined)
  const busy = useSignal(false)
  const runs = canRun(facts?.program)
  const change = (key: string, value: unknown) => {
    changed.value = { ...changed.peek(), [key]: value }
    error.value = undefined
  }
  const fork = async (andRun: boolean) => {
    busy.value = true
    error.value = undefined
    try {
      const made = await model.client.fork({
        ...(here === undefined ? {} : { at: here.id }),
        ...(name.value === '' ? {} : { name: name.value }),
        ...(Object.keys(changed.value).length === 0 ? {} : { set: changed.value }),
        effects: effects.value,
        reads: reads.value,
      })
      if (andRun && !(await made.resume())) say('The branch is made. Nothing waits to go on there: send it input.')
      onClose()
      go(to(['thread', model.id], { branch: made.branch }))
    } catch (failure) {
      error.value = explain(failure)
      busy.value = false
    }
  }
  return (
    <Dialog title="Fork" onClose={onClose} wide>
      <p class="hint">
        From {here === undefined ? 'the newest checkpoint' : `${labelOf(here).text} (${visible(here.id)})`}. The branch
        that it comes from stays as it is.{' '}
        {runs
          ? "Changes are checked by the program's schema."
          : 'The program is not here: changes are taken as they are.'}
      </p>
      <div class="fork-fields">
        <label class="field">
          <span class="field-name">
            Name <span class="field-optional">optional</span>
          </span>
          <input
            type="text"
            maxLength={128}
            value={name.value}
            onInput={(event) => (name.value = event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span class="field-name">Effects there</span>
          <select value={effects.value} onChange={(event) => (effects.value = event.currentTarget.value as 'ask')}>
            <option value="ask">Ask about each</option>
            <option value="deny">Deny</option>
            {may('run') && <option value="allow">Allow</option>}
          </select>
        </label>
        <label class="field">
          <span class="field-name">Reads there</span>
          <select value={reads.value} onChange={(event) => (reads.value = event.currentTarget.value as 'live')}>
            <option value="live">Run again</option>
            <option value="recorded">Take what is recorded</option>
          </select>
        </label>
      </div>
      <MessageEditor state={state} changed={changed.value} onChange={(messages) => change('messages', messages)} />
      <StateEditor state={state} changed={changed.value} onChange={(key, value) => change(key, value)} />
      <Problem text={error.value} />
      <footer class="dialog-actions">
        <Button onClick={() => void fork(false)} disabled={busy.value} kind={runs ? undefined : 'primary'} icon="fork">
          Fork
        </Button>
        {runs && (
          <Button onClick={() => void fork(true)} disabled={busy.value} kind="primary" icon="play">
            Fork and run
          </Button>
        )}
      </footer>
    </Dialog>
  )
}

const MOST_SHOWN = 30

function MessageEditor(props: {
  readonly state: State
  readonly changed: State
  readonly onChange: (messages: readonly unknown[]) => void
}) {
  const { state, changed, onChange } = props
  const messages = (changed['messages'] ?? state['messages']) as unknown
  if (!Array.isArray(messages)) return null
  const first = Math.max(0, messages.length - MOST_SHOWN)
  return (
    <details class="editor" open>
      <summary>Messages {changed['messages'] !== undefined && <span class="chip">changed</span>}</summary>
      {first > 0 && (
        <p class="hint">
          The last {MOST_SHOWN} of {messages.length}.
        </p>
      )}
      {messages.slice(first).map((message, i) => {
        const at = first + i
        const { role, id } = message as { readonly role?: string; readonly id?: string }
        return (
          <div key={id ?? at} class="edit-message">
            <header>
              <span class="message-role">{visible(String(role ?? 'message'))}</span>
              <Button
                kind="quiet"
                onClick={() => onChange(messages.slice(0, at))}
                title="This message and all after it"
              >
                Cut from here
              </Button>
            </header>
            {editableTexts(message).map(({ part, text }) => (
              <textarea
                key={part}
                aria-label={`Text of message ${at + 1}`}
                rows={Math.min(8, Math.max(2, Math.ceil(text.length / 80)))}
                value={text}
                onInput={(event) => onChange(messages.with(at, editText(message, part, event.currentTarget.value)))}
              />
            ))}
          </div>
        )
      })}
    </details>
  )
}

function StateEditor(props: {
  readonly state: State
  readonly changed: State
  readonly onChange: (key: string, value: unknown) => void
}) {
  const { state, changed, onChange } = props
  // What the loop of an agent keeps for itself is of no use to anyone else.
  const keys = useMemo(() => Object.keys(state).filter((key) => key !== 'messages' && key !== 'loop'), [])
  const chosen = useSignal('')
  return (
    <details class="editor" open={!Array.isArray(state['messages'])}>
      <summary>
        State{' '}
        {Object.keys(changed)
          .filter((key) => key !== 'messages')
          .map((key) => (
            <span key={key} class="chip">
              {visible(key)} changed
            </span>
          ))}
      </summary>
      <label class="field">
        <span class="field-name">Key</span>
        <input
          type="text"
          list="state-keys"
          placeholder="What to change"
          value={chosen.value}
          onInput={(event) => (chosen.value = event.currentTarget.value)}
        />
        <datalist id="state-keys">
          {keys.map((key) => (
            <option key={key} value={key} />
          ))}
        </datalist>
      </label>
      {chosen.value !== '' && (
        <JsonField
          key={chosen.value}
          schema={undefined}
          required
          name={chosen.value}
          value={chosen.value in changed ? changed[chosen.value] : state[chosen.value]}
          onChange={(value) => onChange(chosen.value, value ?? null)}
        />
      )}
    </details>
  )
}
