import type { Facts } from '../../src/client/index.js'
import { time } from '../format.js'
import { Json } from '../parts/json.js'
import { labelOf } from './label.js'
import type { ThreadModel } from './model.js'

const MOST = 200

/** What a flow or graph did, in the order of its record. */
export function Story({ model, facts }: { readonly model: ThreadModel; readonly facts: Facts }) {
  const here = model.here.value
  const past = model.lineage.value
  const at =
    here === undefined
      ? 0
      : Math.max(
          0,
          past.findIndex(({ id }) => id === here.id),
        )
  const steps = past.slice(at, at + MOST).reverse()
  const run = facts.run as
    | (Facts['run'] & { readonly input?: unknown; readonly output?: unknown; readonly error?: unknown })
    | undefined
  return (
    <div class="story">
      {run?.input !== undefined && (
        <section class="call" data-state="done">
          <header>
            <span class="call-name">Input</span>
          </header>
          <div class="call-part">
            <Json value={run.input} open />
          </div>
        </section>
      )}
      <ol class="steps">
        {steps.map((step) => {
          const label = labelOf(step)
          return (
            <li key={step.id} data-kind={label.kind}>
              <span class="step-name">{label.text}</span>
              <span class="step-note">{label.note}</span>
              <time dateTime={step.at}>{time(step.at)}</time>
            </li>
          )
        })}
      </ol>
      {run?.output !== undefined && (
        <section class="call" data-state="done">
          <header>
            <span class="call-name">Output</span>
          </header>
          <div class="call-part">
            <Json value={run.output} open />
          </div>
        </section>
      )}
      {run?.error !== undefined && (
        <section class="call" data-state="bad">
          <header>
            <span class="call-name">Error</span>
          </header>
          <div class="call-part">
            <Json value={run.error} open />
          </div>
        </section>
      )}
    </div>
  )
}
