import { useComputed, useSignal, useSignalEffect } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { cost, nameOf, number, visible } from '../format.js'
import { addKeys } from '../keys.js'
import { Button, Chip, Empty, Head, Problem, Status, Tabs, Time } from '../parts/basics.js'
import { QuestionCard } from '../questions/question-card.js'
import { go, route, setQuery, to } from '../router.js'
import { canRun, may } from '../session.js'
import { ChecksPanel } from '../thread/checks.js'
import { Composer } from '../thread/composer.js'
import { Conversation } from '../thread/conversation.js'
import { ForkDialog } from '../thread/fork-dialog.js'
import { ChangesPanel, StatePanel } from '../thread/inspector.js'
import { ThreadModel } from '../thread/model.js'
import { Timeline } from '../thread/timeline.js'
import { attempt } from '../toast.js'

const TABS = [
  { id: 'conversation', label: 'Conversation' },
  { id: 'tree', label: 'Fork tree' },
  { id: 'state', label: 'State' },
  { id: 'changes', label: 'Changes' },
  { id: 'checks', label: 'Checks' },
]

/** One thread: what was said, beside it the tree of its branches, and the state at any place in it. */
export function ThreadView({ id }: { readonly id: string }) {
  const model = useMemo(() => new ThreadModel(id), [id])
  const forking = useSignal(false)
  const tab = useComputed(() => route.value.query.get('tab') ?? 'conversation')
  useLife(model)
  useKeys(model, () => (forking.value = may('fork')))
  // Two chosen places are compared where that can be seen.
  useSignalEffect(() => {
    if (model.with.value !== undefined && tab.peek() !== 'changes') setQuery({ tab: 'changes' })
  })
  const info = model.info.value
  if (model.missing.value) {
    return (
      <>
        <Head title="Thread" />
        <Empty title="There is no such thread">
          It may have been erased or have expired, or belong to another tenant.
        </Empty>
      </>
    )
  }
  const side = tab.value === 'conversation' || tab.value === 'tree' ? 'state' : tab.value
  return (
    <div class="thread" data-tab={tab.value}>
      <ThreadHead model={model} onFork={() => (forking.value = true)} />
      <Problem text={model.error.value} />
      <div class="thread-tabs-narrow">
        <Tabs
          tabs={TABS}
          chosen={tab.value}
          label="Parts of the thread"
          onChoose={(next) => setQuery({ tab: next === 'conversation' ? '' : next })}
        />
      </div>
      <div class="thread-columns">
        <div class="thread-tree">
          <Timeline model={model} />
        </div>
        <div class="thread-talk">
          {model.at.value !== undefined && (
            <p class="past-note">
              This is the past.{' '}
              <button type="button" class="link" onClick={() => model.choose(undefined)}>
                Go to now
              </button>
            </p>
          )}
          <Talk model={model} />
          {info && model.at.value === undefined && <Composer model={model} info={info} />}
        </div>
        <div class="thread-side">
          <div class="thread-tabs-wide">
            <Tabs tabs={TABS.slice(2)} chosen={side} label="Inspector" onChoose={(next) => setQuery({ tab: next })} />
          </div>
          <div class="thread-scroll" tabIndex={0} role="region" aria-label="Inspector">
            {side === 'state' && <StatePanel model={model} />}
            {side === 'changes' && <ChangesPanel model={model} />}
            {side === 'checks' && <ChecksPanel model={model} />}
          </div>
        </div>
      </div>
      {forking.value && <ForkDialog model={model} onClose={() => (forking.value = false)} />}
    </div>
  )
}

/** What was said and what is asked. Stays at its end while there is more to come, unless one has scrolled away from it. */
function Talk({ model }: { readonly model: ThreadModel }) {
  const frame = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  const isNow = model.at.value === undefined
  useEffect(() => {
    const element = frame.current
    if (element && isAtEnd.current && isNow) element.scrollTop = element.scrollHeight
  }, [model.facts.value, model.live.value, isNow])
  return (
    <div
      ref={frame}
      class="thread-scroll"
      tabIndex={0}
      role="region"
      aria-label="Conversation"
      onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
        isAtEnd.current = scrollTop + clientHeight > scrollHeight - 60
      }}
    >
      <Conversation model={model} />
      <OpenQuestions model={model} />
    </div>
  )
}

/** Reads the thread, follows it, and reads again where another place is chosen. */
function useLife(model: ThreadModel): void {
  useEffect(() => {
    const stop = new AbortController()
    void model.loadPast(stop.signal).catch((error: unknown) => {
      if (!stop.signal.aborted) model.error.value = String((error as Error).message)
    })
    return () => stop.abort()
  }, [model])
  const branch = useComputed(() => model.branch.value)
  const place = useComputed(() => `${model.branch.value} ${model.at.value ?? ''}`)
  useSignalEffect(() => {
    void branch.value
    const stop = new AbortController()
    // Nothing can happen on a branch that nobody can read.
    void (model.damaged.value ? model.loadInfo() : model.follow(stop.signal))
    return () => stop.abort()
  })
  useSignalEffect(() => {
    void place.value
    void model.loadFacts()
  })
}

function useKeys(model: ThreadModel, fork: () => void): void {
  useEffect(() => {
    const move = (by: number) => {
      const past = model.lineage.peek()
      const here = model.here.peek()
      const at = here === undefined ? 0 : past.findIndex(({ id }) => id === here.id)
      const next = past[Math.max(0, Math.min(past.length - 1, at + by))]
      if (next) model.choose(next)
    }
    const branchBy = (by: number) => {
      const names = model.flat.peek().map(({ name }) => name)
      const at = names.indexOf(model.branch.peek())
      const next = names[(at + by + names.length) % names.length]
      if (next !== undefined) setQuery({ branch: next === 'main' ? '' : next, at: '' })
    }
    const mark = () => {
      const here = model.here.peek()
      if (here) model.mark(here)
    }
    return addKeys([
      { keys: 'j', what: 'Back in time', run: () => move(1) },
      { keys: 'k', what: 'Forth in time', run: () => move(-1) },
      { keys: 'n', what: 'Now', run: () => model.choose(undefined) },
      { keys: 'b', what: 'Next branch', run: () => branchBy(1) },
      { keys: 'B', what: 'Branch before', run: () => branchBy(-1) },
      { keys: 'm', what: 'Mark this checkpoint, to compare with it', run: mark },
      { keys: 'f', what: 'Fork from here', run: fork },
      { keys: 's', what: 'State', run: () => setQuery({ tab: 'state' }) },
      { keys: 'd', what: 'Changes', run: () => setQuery({ tab: 'changes' }) },
      { keys: 'c', what: 'Checks: verify, replay, export', run: () => setQuery({ tab: 'checks' }) },
      {
        keys: 'Escape',
        what: 'Take the mark back, then go to now',
        run: () => setQuery(model.with.peek() === undefined ? { at: '' } : { with: '' }),
      },
    ])
  }, [model])
}

function ThreadHead({ model, onFork }: { readonly model: ThreadModel; readonly onFork: () => void }) {
  const info = model.info.value
  const usage = model.facts.value?.state['usage'] as { readonly total?: number; readonly cost?: number } | undefined
  const flat = model.flat.value
  const branch = model.branch.value
  const program = info?.metadata['holdfast.program']
  const isOpen = info !== undefined && !['completed', 'limited', 'cancelled'].includes(info.status)
  const note = info && (
    <>
      <Status status={info.status} />
      {program !== undefined && (
        <span>
          {visible(String(program))} {visible(String(info.metadata['holdfast.version'] ?? ''))}
        </span>
      )}
      {usage?.total !== undefined && (
        <span>
          {number(usage.total)} tokens{usage.cost ? ` · cost ${cost(usage.cost)}` : ''}
        </span>
      )}
      {info.claimedBy !== null && <span>held by {visible(info.claimedBy)}</span>}
      <span>
        changed <Time at={info.updatedAt} />
      </span>
      {info.tags.map((tag) => (
        <Chip key={tag}>#{visible(tag)}</Chip>
      ))}
    </>
  )
  return (
    <Head title={info === undefined ? visible(model.id) : nameOf(info.thread)} note={note}>
      {flat.length > 1 && (
        <>
          <select
            aria-label="Branch"
            value={branch}
            onChange={(event) => {
              const { value } = event.currentTarget
              setQuery({ branch: value === 'main' ? '' : value, at: '' }, {})
            }}
          >
            {flat.map(({ name }) => (
              <option key={name} value={name}>
                {visible(name)}
              </option>
            ))}
          </select>
          <Button
            onClick={() => {
              const from = flat.find(({ name }) => name === branch)?.from?.branch
              const other = from ?? flat.find(({ name }) => name !== branch)?.name ?? branch
              go(to(['thread', model.id, 'compare'], { one: other, other: branch }))
            }}
          >
            Compare
          </Button>
        </>
      )}
      {may('fork') && (
        <Button icon="fork" onClick={onFork}>
          Fork
        </Button>
      )}
      {isOpen && canRun(program) && (info.status === 'failed' || info.status === 'forked') && (
        <Button
          icon="play"
          kind="primary"
          onClick={() => void attempt(() => model.client.resume(), 'Asked a worker to go on.')}
        >
          {info.status === 'failed' ? 'Try again' : 'Run'}
        </Button>
      )}
      {isOpen && may('run') && info.status !== 'forked' && (
        <Button
          icon="stop"
          onClick={() => void attempt(() => model.client.cancel('cancelled in the studio'), 'Cancelled.')}
        >
          Cancel
        </Button>
      )}
    </Head>
  )
}

function OpenQuestions({ model }: { readonly model: ThreadModel }) {
  const facts = model.facts.value
  const info = model.info.value
  if (facts === undefined || info === undefined || facts.pauses.length === 0 || model.at.value !== undefined)
    return null
  return (
    <div class="open-questions">
      {facts.pauses.map((pause) => (
        <QuestionCard
          key={pause.id}
          asked={{ ...pause, thread: info.thread, pathId: info.id, branch: model.branch.value }}
          withThread={false}
          onDone={() => model.refresh()}
        />
      ))}
    </div>
  )
}
