import { useSignal } from '@preact/signals'
import { explain } from '../api.js'
import { plural, visible } from '../format.js'
import { Button, Problem } from '../parts/basics.js'
import { Json } from '../parts/json.js'
import { canRun } from '../session.js'
import { attempt } from '../toast.js'
import type { ThreadModel } from './model.js'

interface Replay {
  readonly status: 'identical' | 'incomplete' | 'differs'
  readonly steps: number
  readonly message?: string
  readonly difference?: {
    readonly step: string
    readonly what: string
    readonly message: string
    readonly recorded?: unknown
    readonly now?: unknown
  }
}

interface Verified {
  readonly ok: boolean
  readonly entries: number
  readonly lastGood?: string
  readonly problems: readonly string[]
}

/** Replay, verification and export: none of them calls or changes anything. */
export function ChecksPanel({ model }: { readonly model: ThreadModel }) {
  return (
    <div class="panel-body checks">
      <Verify model={model} />
      <ReplayCheck model={model} />
      <Export model={model} />
    </div>
  )
}

function useCheck<Result>(run: () => Promise<Result>) {
  const result = useSignal<Result | undefined>(undefined)
  const error = useSignal<string | undefined>(undefined)
  const busy = useSignal(false)
  return {
    result,
    error,
    busy,
    async start() {
      busy.value = true
      error.value = undefined
      try {
        result.value = await run()
      } catch (failure) {
        error.value = explain(failure)
      }
      busy.value = false
    },
  }
}

function Verify({ model }: { readonly model: ThreadModel }) {
  const check = useCheck(() => model.client.verify() as unknown as Promise<Verified>)
  const found = check.result.value
  return (
    <section class="card">
      <header>
        <h2>Verify</h2>
        <Button onClick={() => void check.start()} disabled={check.busy.value}>
          Verify the chain
        </Button>
      </header>
      <p class="hint">Walks every entry: hashes, parents, bodies, keyframes, and the row of the index.</p>
      <Problem text={check.error.value} />
      {found && (
        <div class="verdict" data-tone={found.ok ? 'good' : 'bad'} role="status">
          <Chain ok={found.ok} entries={found.entries} />
          <p>
            {found.ok
              ? `All ${plural(found.entries, 'entry', 'entries')} verified.`
              : `${plural(found.entries, 'entry', 'entries')} verified, then it breaks.`}
          </p>
          {found.problems.map((problem) => (
            <p key={problem}>{visible(problem)}</p>
          ))}
          {!found.ok && found.lastGood && (
            <p>
              The way out is a fork from the last good checkpoint,{' '}
              <button type="button" class="link" onClick={() => goTo(model, found.lastGood as string)}>
                {visible(found.lastGood)}
              </button>
              .
            </p>
          )}
        </div>
      )}
    </section>
  )
}

/** The newest checkpoint up to an entry, which may be none itself. */
function goTo(model: ThreadModel, id: string): void {
  const [branch, seq] = id.split('~')
  model.choose(model.checkpoints.peek().find((one) => one.branch === branch && one.seq <= Number(seq)))
}

const LINKS = 16

function Chain({ ok, entries }: { readonly ok: boolean; readonly entries: number }) {
  const count = Math.min(LINKS, Math.max(1, entries))
  return (
    <svg class="chain" viewBox={`0 0 ${(count + (ok ? 0 : 1)) * 18} 14`} aria-hidden="true">
      {Array.from({ length: count }, (_, i) => (
        <rect key={i} x={i * 18 + 1} y="2" width="20" height="10" rx="5" />
      ))}
      {!ok && <path class="chain-break" d={`M${count * 18 + 5} 2l8 10m0-10l-8 10`} />}
    </svg>
  )
}

function ReplayCheck({ model }: { readonly model: ThreadModel }) {
  const check = useCheck(() => model.client.replay() as unknown as Promise<Replay>)
  const found = check.result.value
  const isHere = canRun(model.info.value?.metadata['holdfast.program'])
  return (
    <section class="card">
      <header>
        <h2>Replay</h2>
        <Button
          onClick={() => void check.start()}
          disabled={check.busy.value || !isHere}
          title={isHere ? undefined : 'The program is not on this server.'}
        >
          Replay the last run
        </Button>
      </header>
      <p class="hint">
        {isHere
          ? "Goes through the record with today's program. No model and no tool is called."
          : 'Needs the program: start the studio with its module.'}
      </p>
      <Problem text={check.error.value} />
      {found && (
        <div class="verdict" data-tone={found.status === 'differs' ? 'bad' : 'good'} role="status">
          <p>
            {found.status === 'identical' && `Identical: ${plural(found.steps, 'step')} gone through.`}
            {found.status === 'incomplete' && `The same as far as the record goes: ${plural(found.steps, 'step')}.`}
            {found.status === 'differs' &&
              `Differs at ${visible(found.difference?.step ?? '')}: ${visible(found.difference?.message ?? '')}`}
          </p>
          {found.message && <p>{visible(found.message)}</p>}
          {found.difference && (
            <div class="difference">
              {found.difference.recorded !== undefined && (
                <div class="difference-side" data-side="before">
                  <Json name="recorded" value={found.difference.recorded} open />
                </div>
              )}
              {found.difference.now !== undefined && (
                <div class="difference-side" data-side="after">
                  <Json name="now" value={found.difference.now} open />
                </div>
              )}
            </div>
          )}
        </div>
      )}
    </section>
  )
}

function Export({ model }: { readonly model: ThreadModel }) {
  const redact = useSignal(true)
  const all = useSignal(true)
  const save = () =>
    attempt(async () => {
      const text = await model.client.export({ redact: redact.value, allBranches: all.value })
      const link = document.createElement('a')
      link.href = URL.createObjectURL(new Blob([text], { type: 'application/x-ndjson' }))
      link.download = `${model.id.replace(/[^\w.-]+/g, '_')}.holdfast.jsonl`
      link.click()
      // Not at once: the browser may not have begun to read it.
      setTimeout(() => URL.revokeObjectURL(link.href), 60_000)
    }, 'The fixture is saved.')
  return (
    <section class="card">
      <header>
        <h2>Export</h2>
        <Button onClick={() => void save()} icon="download">
          Save a fixture
        </Button>
      </header>
      <p class="hint">One portable file for a test, a report or another store, decrypted.</p>
      <label class="check">
        <input
          type="checkbox"
          checked={redact.value}
          onChange={(event) => (redact.value = event.currentTarget.checked)}
        />
        Take out addresses, card numbers, keys and the like
      </label>
      <label class="check">
        <input type="checkbox" checked={all.value} onChange={(event) => (all.value = event.currentTarget.checked)} />
        All branches
      </label>
    </section>
  )
}
