import { useComputed, useSignalEffect } from '@preact/signals'
import { clock, plural, visible } from '../format.js'
import { Empty, Problem, Status } from '../parts/basics.js'
import { type Difference, Differences } from '../parts/differences.js'
import { Json } from '../parts/json.js'
import { useResource } from '../resource.js'
import { labelOf } from './label.js'
import type { ThreadModel } from './model.js'

/** The state at the place that is looked at. */
export function StatePanel({ model }: { readonly model: ThreadModel }) {
  const facts = model.facts.value
  if (facts === undefined) return <p class="hint">Reading…</p>
  const { run, pauses } = facts
  return (
    <div class="panel-body">
      <dl class="facts">
        <dt>Checkpoint</dt>
        <dd>
          <code>{visible(facts.id)}</code>
        </dd>
        <dt>Written</dt>
        <dd>{clock(facts.at)}</dd>
        <dt>Status</dt>
        <dd>
          <Status status={facts.status} />
        </dd>
        {run && (
          <>
            <dt>Run</dt>
            <dd>
              {visible(run.program)} {visible(run.version)} · <code>{visible(run.id)}</code>
            </dd>
          </>
        )}
        {pauses.length > 0 && (
          <>
            <dt>Open</dt>
            <dd>{plural(pauses.length, 'question')}</dd>
          </>
        )}
        <dt>Hash</dt>
        <dd>
          <code class="hash">{visible(facts.hash)}</code>
        </dd>
      </dl>
      <h2>State</h2>
      <div class="json" key={facts.id}>
        {Object.entries(facts.state).map(([name, value]) => (
          <Json key={name} name={name} value={value} />
        ))}
        {Object.keys(facts.state).length === 0 && <p class="hint">This program keeps no state.</p>}
      </div>
    </div>
  )
}

/** What changed between the two places that are chosen, or since the checkpoint before. */
export function ChangesPanel({ model }: { readonly model: ThreadModel }) {
  const pair = useComputed(() => {
    const here = model.here.value
    if (here === undefined) return undefined
    const other = model.with.value ?? here.parent
    return other === undefined ? undefined : { from: other, to: here.id }
  })
  const found = useResource<{ readonly of: string; readonly differences: readonly Difference[] }>(() => {
    const asked = pair.value
    if (asked === undefined) return undefined
    return model.client.diff(asked.from, asked.to).then((differences) => ({
      of: asked.from + asked.to,
      differences: differences as unknown as readonly Difference[],
    }))
  })
  useSignalEffect(() => {
    if (pair.value === undefined) found.value.value = undefined
  })
  const name = (id: string) => {
    const one = model.checkpoints.value.find((checkpoint) => checkpoint.id === id)
    return one === undefined ? id : `${labelOf(one).text} · ${id}`
  }
  if (pair.value === undefined) {
    return <Empty title="Nothing to compare">Choose a checkpoint, then mark a second one with ± or shift-click.</Empty>
  }
  const { from, to } = pair.value
  const read = found.value.value
  return (
    <div class="panel-body">
      <dl class="facts">
        <dt>From</dt>
        <dd data-side="before">{visible(name(from))}</dd>
        <dt>To</dt>
        <dd data-side="after">{visible(name(to))}</dd>
      </dl>
      {model.with.value === undefined && (
        <p class="hint">Since the checkpoint before. Mark another one with ± to compare with it.</p>
      )}
      <Problem text={found.error.value} />
      {read?.of === from + to && <Differences found={read.differences} />}
    </div>
  )
}
