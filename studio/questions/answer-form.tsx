import { useSignal } from '@preact/signals'
import type { PauseInfo } from '../../src/client/index.js'
import { duration, now, visible } from '../format.js'
import { Button } from '../parts/basics.js'
import { Json } from '../parts/json.js'
import { JsonField, type Schema, SchemaForm } from '../parts/schema-form.js'
import { may } from '../session.js'

type Loose = Readonly<Record<string, unknown>>

interface Props {
  readonly pause: PauseInfo
  readonly onAnswer: (value: unknown) => void
  readonly busy?: boolean
}

/** Asks a person what a question asks, by its kind. */
export function AnswerForm(props: Props) {
  if (!may('answer')) return <p class="hint">Answering needs the role "answer".</p>
  switch (props.pause.kind) {
    case 'approval':
    case 'before':
    case 'after':
      return <Approval {...props} />
    case 'unknown-effect':
      return <UnknownEffect {...props} />
    case 'permission':
      return <Permission {...props} />
    default:
      return <Question {...props} />
  }
}

function part(schema: unknown, name: string): Schema {
  return ((schema as Loose | undefined)?.['properties'] as Loose | undefined)?.[name] as Schema
}

function Approval({ pause, onAnswer, busy }: Props) {
  const { question, schema } = pause
  const isTool = pause.kind === 'approval' && typeof question === 'object' && question !== null && 'input' in question
  const input = isTool ? (question as Loose)['input'] : undefined
  const edited = useSignal<unknown>(input)
  const editing = useSignal(false)
  const reason = useSignal('')
  const takesReason = part(schema, 'reason') !== undefined
  const inputSchema = part(schema, 'input')
  return (
    <div class="answer">
      {editing.value && <SchemaForm schema={inputSchema} value={edited} label="arguments" />}
      {takesReason && (
        <label class="field">
          <span class="field-name">
            Reason <span class="field-optional">for a rejection, optional</span>
          </span>
          <input type="text" value={reason.value} onInput={(event) => (reason.value = event.currentTarget.value)} />
        </label>
      )}
      <div class="answer-actions">
        <Button
          kind="primary"
          icon="check"
          disabled={busy}
          onClick={() => onAnswer({ approved: true, ...(editing.value ? { input: edited.value } : {}) })}
        >
          {editing.value ? 'Approve as edited' : 'Approve'}
        </Button>
        <Button
          kind="danger"
          disabled={busy}
          onClick={() =>
            onAnswer({ approved: false, ...(takesReason && reason.value !== '' ? { reason: reason.value } : {}) })
          }
        >
          Reject
        </Button>
        {inputSchema !== undefined && (
          <Button pressed={editing.value} onClick={() => (editing.value = !editing.value)}>
            Edit arguments
          </Button>
        )}
      </div>
    </div>
  )
}

function UnknownEffect({ pause, onAnswer, busy }: Props) {
  const result = useSignal<unknown>(undefined)
  const message = useSignal('')
  return (
    <div class="answer">
      <JsonField
        schema={undefined}
        name="Result, if it succeeded"
        value={undefined}
        onChange={(value) => (result.value = value)}
      />
      <label class="field">
        <span class="field-name">
          What went wrong, if it failed <span class="field-optional">optional</span>
        </span>
        <input type="text" value={message.value} onInput={(event) => (message.value = event.currentTarget.value)} />
      </label>
      <div class="answer-actions">
        <Button
          kind="primary"
          icon="check"
          disabled={busy}
          onClick={() =>
            onAnswer({ outcome: 'succeeded', ...(result.value === undefined ? {} : { result: result.value }) })
          }
        >
          It succeeded
        </Button>
        <Button disabled={busy} onClick={() => onAnswer({ outcome: 'not-executed' })}>
          It was not executed
        </Button>
        <Button
          kind="danger"
          disabled={busy}
          onClick={() => onAnswer({ outcome: 'failed', ...(message.value === '' ? {} : { message: message.value }) })}
        >
          It failed
        </Button>
      </div>
      <p class="hint">
        Not executed: it is run again, under another key. Asked{' '}
        {duration(now.value - new Date(pause.askedAt).getTime())} ago.
      </p>
    </div>
  )
}

function Permission({ onAnswer, busy }: Props) {
  const result = useSignal<unknown>(undefined)
  return (
    <div class="answer">
      <JsonField
        schema={undefined}
        name="Take this as its result, if denied"
        value={undefined}
        onChange={(value) => (result.value = value)}
      />
      <div class="answer-actions">
        <Button kind="primary" disabled={busy} onClick={() => onAnswer({ allowed: true })}>
          Let it happen on this branch
        </Button>
        <Button
          kind="danger"
          disabled={busy}
          onClick={() => onAnswer({ allowed: false, ...(result.value === undefined ? {} : { result: result.value }) })}
        >
          Deny
        </Button>
      </div>
    </div>
  )
}

function Question({ pause, onAnswer, busy }: Props) {
  const schema = pause.schema as Schema
  const value = useSignal<unknown>(undefined)
  const text = useSignal('')
  return (
    <div class="answer">
      {schema === undefined ? (
        <label class="field">
          <span class="field-name">Answer</span>
          <textarea rows={3} value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} />
          <span class="field-note">JSON where it is valid JSON, otherwise text.</span>
        </label>
      ) : (
        <SchemaForm schema={schema} value={value} label="answer" />
      )}
      <div class="answer-actions">
        <Button
          kind="primary"
          disabled={busy}
          onClick={() => onAnswer(schema === undefined ? readAnswer(text.value) : (value.value ?? null))}
        >
          Answer
        </Button>
      </div>
    </div>
  )
}

function readAnswer(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

const FIELDS: Readonly<Record<string, string>> = { idempotencyKey: 'key', callId: 'call' }

/** What a person is shown: each part of the question by its name. */
export function QuestionText({ question }: { readonly question: unknown }) {
  if (typeof question === 'string') return <p class="said">{visible(question)}</p>
  if (typeof question !== 'object' || question === null || Array.isArray(question))
    return <Json value={question} open />
  return (
    <div class="json question">
      {Object.entries(question).map(([name, value]) => (
        <Json key={name} name={FIELDS[name] ?? name} value={value} open />
      ))}
    </div>
  )
}
