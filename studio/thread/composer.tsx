import { useSignal } from '@preact/signals'
import type { ThreadInfo } from '../../src/client/index.js'
import { Button } from '../parts/basics.js'
import { canRun, programs } from '../session.js'
import { attempt } from '../toast.js'
import type { ThreadModel } from './model.js'

/** Sends a thread its next input, where its program is here to take it. */
export function Composer({ model, info }: { readonly model: ThreadModel; readonly info: ThreadInfo }) {
  const text = useSignal('')
  const program = info.metadata['holdfast.program']
  if (!canRun(program)) return null
  const kind = programs.value.find(({ name }) => name === program)?.kind
  const send = async () => {
    const given = text.value.trim()
    if (given === '' && kind === 'agent') return
    const ok = await attempt(() => model.client.start({ input: kind === 'agent' ? given : readInput(given) }))
    if (ok) text.value = ''
  }
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        void send()
      }}
    >
      <textarea
        aria-label={kind === 'agent' ? 'Message' : 'Input, as JSON'}
        placeholder={kind === 'agent' ? 'Say something' : 'Input, as JSON'}
        rows={2}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
            event.preventDefault()
            void send()
          }
        }}
      />
      <Button kind="primary" icon="play" onClick={() => void send()}>
        Send
      </Button>
    </form>
  )
}

function readInput(text: string): unknown {
  try {
    return text === '' ? {} : (JSON.parse(text) as unknown)
  } catch {
    return text
  }
}
