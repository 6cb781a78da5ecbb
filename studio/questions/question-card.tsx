import { useSignal } from '@preact/signals'
import type { PauseInfo, ThreadId } from '../../src/client/index.js'
import { client } from '../api.js'
import { clock, nameOf, visible } from '../format.js'
import { Button, Chip, Time } from '../parts/basics.js'
import { to } from '../router.js'
import { attempt } from '../toast.js'
import { AnswerForm, QuestionText } from './answer-form.js'

export const KINDS: Readonly<Record<string, string>> = {
  question: 'Question',
  approval: 'Approval',
  before: 'Before a step',
  after: 'After a step',
  'unknown-effect': 'Unknown effect',
  permission: 'Permission',
}

/** The step that asks, without its place and without what it asks, which stands before it. */
function stepOf(step: string): string {
  return step.replace(/^\d+:/, '').replace(/ (approval|before|after|unknown-effect|permission)$/, '')
}

const DEFER: readonly (readonly [label: string, ms: number])[] = [
  ['1 hour', 3_600_000],
  ['1 day', 86_400_000],
  ['1 week', 7 * 86_400_000],
]

export interface Asked extends PauseInfo {
  readonly thread: ThreadId
  readonly pathId: string
  readonly branch: string
}

/** One open question, with all that is needed to answer it. */
export function QuestionCard(props: {
  readonly asked: Asked
  readonly onDone: () => void
  readonly withThread?: boolean
}) {
  const { asked, onDone, withThread = true } = props
  const busy = useSignal(false)
  const { thread, branch, pathId, id, kind } = asked
  const on = () => client.peek().thread(thread, { branch })
  const act = async (work: () => Promise<unknown>, done: string) => {
    busy.value = true
    if (await attempt(work, done)) onDone()
    busy.value = false
  }
  const answer = (value: unknown) =>
    act(() => (kind === 'unknown-effect' ? on().resolveEffect(id, value) : on().answer(id, value)), 'Answered.')
  return (
    <section class="card question-card" data-kind={kind} data-pause={id}>
      <header>
        <h2>
          {KINDS[kind] ?? kind}
          <span class="question-step">{visible(stepOf(asked.step))}</span>
        </h2>
        <span class="question-time">
          asked <Time at={asked.askedAt} />
        </span>
      </header>
      {withThread && (
        <p class="question-place">
          <a href={to(['thread', pathId], branch === 'main' ? {} : { branch })}>{nameOf(thread)}</a>
          {branch !== 'main' && <Chip>{visible(branch)}</Chip>}
        </p>
      )}
      {asked.refused && <p class="problem">The last answer was not taken: {visible(asked.refused.reason)}</p>}
      {asked.deferred && (
        <p class="hint">
          Put off until {clock(asked.deferred.until)}
          {asked.deferred.by === undefined ? '' : ` by ${visible(asked.deferred.by)}`}
        </p>
      )}
      {asked.expiresAt && <p class="hint">Expires {clock(asked.expiresAt)}</p>}
      <QuestionText question={asked.question} />
      <AnswerForm pause={asked} onAnswer={(value) => void answer(value)} busy={busy.value} />
      <div class="defer">
        <span>Put off for</span>
        {DEFER.map(([label, ms]) => (
          <Button
            key={label}
            kind="quiet"
            disabled={busy.value}
            onClick={() => void act(() => on().defer(id, new Date(Date.now() + ms)), `Put off for ${label}.`)}
          >
            {label}
          </Button>
        ))}
      </div>
    </section>
  )
}
