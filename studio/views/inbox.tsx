import { useComputed, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { AnswerInfo, ThreadPauseInfo } from '../../src/client/index.js'
import { client } from '../api.js'
import { brief, nameOf, plural, visible } from '../format.js'
import { addKeys } from '../keys.js'
import { Empty, Head, Problem, Tabs, Time } from '../parts/basics.js'
import { Json } from '../parts/json.js'
import { KINDS, QuestionCard } from '../questions/question-card.js'
import { useResource } from '../resource.js'
import { route, setQuery, to } from '../router.js'

const TABS = [
  { id: 'open', label: 'Open' },
  { id: 'deferred', label: 'Put off' },
  { id: 'answered', label: 'Answered' },
]

/** All open questions over all threads, and who answered what. */
export function InboxView() {
  const tab = useComputed(() => route.value.query.get('tab') ?? 'open')
  const page = useResource(() => client.value.pauses({ limit: 500 }), { everyMs: 4000 })
  const all = page.value.value?.pauses ?? []
  const deferred = all.filter((pause) => isDeferred(pause))
  const open = all.filter((pause) => !isDeferred(pause))
  const unreadable = page.value.value?.unreadable ?? []
  const tabs = [{ ...TABS[0], count: open.length }, { ...TABS[1], count: deferred.length }, TABS[2]] as typeof TABS
  return (
    <>
      <Head
        title="Inbox"
        note={`${plural(open.length, 'question')} ${open.length === 1 ? 'waits' : 'wait'} for a person`}
      />
      <Tabs
        tabs={tabs}
        chosen={tab.value}
        label="Questions"
        onChoose={(next) => setQuery({ tab: next === 'open' ? '' : next, q: '' })}
      />
      <Problem text={page.error.value} />
      {unreadable.length > 0 && (
        <p class="problem">
          The questions of {plural(unreadable.length, 'thread')} can't be read:{' '}
          {unreadable.map(({ thread }) => nameOf(thread)).join(', ')}
        </p>
      )}
      {tab.value === 'answered' ? (
        <Answered />
      ) : (
        <Questions
          pauses={tab.value === 'deferred' ? deferred : open}
          loaded={page.value.value !== undefined}
          onDone={() => void page.reload()}
        />
      )}
    </>
  )
}

function isDeferred({ deferred }: ThreadPauseInfo): boolean {
  return deferred !== undefined && new Date(deferred.until).getTime() > Date.now()
}

const keyOf = ({ pathId, branch, id }: ThreadPauseInfo) => `${pathId} ${branch} ${id}`

export function Questions(props: {
  readonly pauses: readonly ThreadPauseInfo[]
  readonly loaded: boolean
  readonly onDone: () => void
  readonly none?: string
}) {
  const { pauses, loaded, onDone, none = 'Nothing waits for you' } = props
  const chosen = useSignal('')
  const list = useSignal(pauses)
  list.value = pauses
  useEffect(() => {
    const move = (by: number) => {
      const all = list.peek()
      const at = all.findIndex((one) => keyOf(one) === chosen.peek())
      const next = all[Math.max(0, Math.min(all.length - 1, Math.max(0, at) + by))]
      if (next) chosen.value = keyOf(next)
    }
    return addKeys([
      { keys: 'j', what: 'Next question', run: () => move(1) },
      { keys: 'k', what: 'Question before', run: () => move(-1) },
    ])
  }, [])
  if (pauses.length === 0) return loaded ? <Empty title={none} /> : <p class="hint">Reading…</p>
  const here = pauses.find((one) => keyOf(one) === chosen.value) ?? pauses[0]
  return (
    <div class="inbox">
      <ul class="inbox-list" aria-label="Questions">
        {pauses.slice(0, 500).map((pause) => (
          <li key={keyOf(pause)}>
            <button
              type="button"
              class="inbox-row"
              aria-current={pause === here ? 'true' : undefined}
              onClick={() => (chosen.value = keyOf(pause))}
            >
              <span class="inbox-kind">{KINDS[pause.kind] ?? pause.kind}</span>
              <span class="inbox-thread">{nameOf(pause.thread)}</span>
              <span class="inbox-what">{brief(titleOf(pause.question), 90)}</span>
              <Time at={pause.askedAt} />
            </button>
          </li>
        ))}
      </ul>
      <div class="inbox-detail" tabIndex={-1}>
        {here && <QuestionCard key={keyOf(here)} asked={here} onDone={onDone} />}
      </div>
    </div>
  )
}

/** What a question is about, in a line. */
function titleOf(question: unknown): unknown {
  if (typeof question !== 'object' || question === null) return question
  const { tool, ask, step, input } = question as Readonly<Record<string, unknown>>
  if (typeof tool === 'string') return `${tool} ${JSON.stringify(input)}`
  return ask ?? step ?? question
}

/** Who answered what and when, of the threads that changed last. */
function Answered() {
  const page = useResource(() => client.value.answers({ limit: 200 }))
  const answers = page.value.value?.answers
  return (
    <>
      <Problem text={page.error.value} />
      {answers?.length === 0 && <Empty title="Nothing was answered yet" />}
      {answers !== undefined && answers.length > 0 && (
        <div class="table-frame" tabIndex={0} role="region" aria-label="Answers">
          <table class="table">
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">Who</th>
                <th scope="col">Thread</th>
                <th scope="col">Asked</th>
                <th scope="col">Answered</th>
              </tr>
            </thead>
            <tbody>
              {answers.slice(0, 300).map((answer) => (
                <AnswerRow key={`${answer.pathId} ${answer.checkpoint}`} answer={answer} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

function Verdict({ approved }: { readonly approved: boolean }) {
  return (
    <span class="status" data-tone={approved ? 'good' : 'bad'}>
      {approved ? 'approved' : 'rejected'}
    </span>
  )
}

function AnswerRow({ answer }: { readonly answer: AnswerInfo }) {
  const { pathId, branch, checkpoint, value } = answer
  const approved = (value as { readonly approved?: boolean } | null)?.approved
  return (
    <tr>
      <td>
        <Time at={answer.at} />
      </td>
      <td>{visible(answer.by ?? 'unknown')}</td>
      <td>
        <a href={to(['thread', pathId], { branch: branch === 'main' ? '' : branch, at: checkpoint })}>
          {nameOf(answer.thread)}
        </a>
      </td>
      <td>
        <span class="hint">{KINDS[answer.kind] ?? answer.kind}</span> {brief(titleOf(answer.question), 80)}
      </td>
      <td>
        {approved !== undefined && <Verdict approved={approved} />}
        <Json value={value} />
      </td>
    </tr>
  )
}
