import { useSignal } from '@preact/signals'
import { visible } from '../format.js'

const FIRST = 4000
const MORE = 40_000

/** Text of any length, as text: a browser that lays out five megabytes at once does nothing else for a while. */
export function LongText({ text, first = FIRST }: { readonly text: string; readonly first?: number }) {
  const shown = useSignal(first)
  const rest = text.length - shown.value
  return (
    <>
      <span class="text">{visible(text.slice(0, shown.value))}</span>
      {rest > 0 && (
        <button type="button" class="more" onClick={() => (shown.value += MORE)}>
          Show more ({rest.toLocaleString('en-US')} characters)
        </button>
      )}
    </>
  )
}
