import { useSignal } from '@preact/signals'
import { number, time, visible } from '../format.js'
import { Empty } from '../parts/basics.js'
import { Icon } from '../parts/icon.js'
import { Json } from '../parts/json.js'
import { LongText } from '../parts/long-text.js'
import { readMessages, type Piece, type ShownCall, type ShownMessage } from './messages.js'
import type { Live } from './model.js'
import { Story } from './story.js'
import type { ThreadModel } from './model.js'

const PAGE = 60

/** The conversation as people read it; of a program without one, what it did. */
export function Conversation({ model }: { readonly model: ThreadModel }) {
  const facts = model.facts.value
  if (facts === undefined) return <p class="hint">Reading…</p>
  const saying = model.at.value === undefined ? model.live.value : []
  // An agent has no messages recorded before its first reply is.
  const messages = readMessages(facts.state) ?? (saying.length > 0 ? [] : undefined)
  if (messages === undefined) return <Story model={model} facts={facts} />
  // The record and the words of a message come by different ways, in any order.
  const recorded = new Set(messages.map(({ key }) => key))
  const live = saying.filter(({ message }) => message === undefined || !recorded.has(message))
  if (messages.length === 0 && live.length === 0) return <Empty title="Nothing was said yet" />
  return <Messages messages={messages} live={live} />
}

export function Messages(props: { readonly messages: readonly ShownMessage[]; readonly live?: readonly Live[] }) {
  const { messages, live = [] } = props
  const shown = useSignal(PAGE)
  const first = Math.max(0, messages.length - shown.value)
  return (
    <div class="conversation" role="log" aria-label="Conversation">
      {first > 0 && (
        <button type="button" class="more" onClick={() => (shown.value += PAGE)}>
          Show earlier messages ({first})
        </button>
      )}
      {messages.slice(first).map((message) => (
        <MessageView key={message.key} message={message} />
      ))}
      {live.map((one) => (
        <LiveMessage key={one.step} live={one} />
      ))}
    </div>
  )
}

function MessageView({ message }: { readonly message: ShownMessage }) {
  const { role, name, at, model, tokens, pieces } = message
  return (
    <article class="message" data-role={role}>
      <header class="message-head">
        <span class="message-role">{visible(name ?? role)}</span>
        {model !== undefined && <span>{visible(model)}</span>}
        {tokens !== undefined && tokens > 0 && <span>{number(tokens)} tokens</span>}
        {at !== undefined && <time dateTime={new Date(at).toISOString()}>{time(at)}</time>}
      </header>
      <div class="message-body">
        {pieces.map((piece, i) => (
          <PieceView key={i} piece={piece} />
        ))}
      </div>
    </article>
  )
}

function PieceView({ piece }: { readonly piece: Piece }) {
  switch (piece.type) {
    case 'text':
      return (
        <p class="said">
          <LongText text={piece.text} />
        </p>
      )
    case 'reasoning':
      return (
        <details class="reasoning">
          <summary>Reasoning</summary>
          <LongText text={piece.text} />
        </details>
      )
    case 'refusal':
      return (
        <p class="said" data-tone="bad">
          <LongText text={piece.text} />
        </p>
      )
    case 'call':
      return <CallView call={piece.call} />
    default:
      return <Json name={piece.label} value={piece.value} />
  }
}

function CallView({ call }: { readonly call: ShownCall }) {
  const { output } = call
  const isBad = output?.type.startsWith('error') || output?.type === 'denied'
  return (
    <section class="call" data-state={output === undefined ? 'open' : isBad ? 'bad' : 'done'} data-tool={call.name}>
      <header>
        <Icon name="tool" />
        <span class="call-name">{visible(call.name)}</span>
        <span class="call-state">
          {output === undefined ? 'no result yet' : output.type === 'denied' ? 'denied' : isBad ? 'error' : ''}
        </span>
      </header>
      <div class="call-part">
        <Json name="arguments" value={call.input} open />
        {call.edited !== undefined && <Json name="edited by a person" value={call.edited} open />}
      </div>
      {output !== undefined && (
        <div class="call-part">
          <Json name="result" value={output.type === 'denied' ? (output.reason ?? 'denied') : output.value} open />
        </div>
      )}
    </section>
  )
}

function LiveMessage({ live }: { readonly live: Live }) {
  return (
    <article class="message" data-role="assistant" data-live>
      <header class="message-head">
        <span class="message-role">assistant</span>
        <span class="live-dot">live</span>
      </header>
      <div class="message-body">
        {live.reasoning !== '' && (
          <p class="reasoning">
            <LongText text={live.reasoning} />
          </p>
        )}
        {live.text !== '' && (
          <p class="said">
            <LongText text={live.text} first={20_000} />
          </p>
        )}
        {live.tools.map(({ callId, tool, input }) => (
          <section key={callId} class="call" data-state="open">
            <header>
              <Icon name="tool" />
              <span class="call-name">{visible(tool)}</span>
            </header>
            <div class="call-part">
              <LongText text={input} />
            </div>
          </section>
        ))}
      </div>
    </article>
  )
}
