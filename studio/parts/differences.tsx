import { useSignal } from '@preact/signals'
import { visible } from '../format.js'
import { Json } from './json.js'

export interface Difference {
  readonly path: string
  readonly before?: unknown
  readonly after?: unknown
}

const PAGE = 100

/** What is different between two states: taken away, and put in its place. */
export function Differences({ found }: { readonly found: readonly Difference[] }) {
  const shown = useSignal(PAGE)
  if (found.length === 0) return <p class="hint">No difference.</p>
  return (
    <div class="differences">
      {found.slice(0, shown.value).map((one) => (
        <div key={one.path} class="difference">
          <code class="difference-path">{visible(one.path)}</code>
          {'before' in one && (
            <div class="difference-side" data-side="before">
              <Json value={one.before} />
            </div>
          )}
          {'after' in one && (
            <div class="difference-side" data-side="after">
              <Json value={one.after} />
            </div>
          )}
        </div>
      ))}
      {found.length > shown.value && (
        <button type="button" class="more" onClick={() => (shown.value += PAGE)}>
          Show more ({found.length - shown.value})
        </button>
      )}
    </div>
  )
}
