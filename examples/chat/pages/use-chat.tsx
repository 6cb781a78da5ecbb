// A chat with useChat of the AI SDK: streams, asks for approval, survives a reload in mid-sentence, answers again.
import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai'
import { useState } from 'react'
import { createRoot } from 'react-dom/client'

const id = location.hash.slice(1) || crypto.randomUUID()
history.replaceState(null, '', `#${id}`)

/** What was said before the page was opened, or reloaded. */
async function load(): Promise<UIMessage[]> {
  const response = await fetch(`/chat/${id}`)
  return response.ok ? ((await response.json()) as { messages: UIMessage[] }).messages : []
}

interface ToolPart {
  readonly type: string
  readonly state: string
  readonly input?: unknown
  readonly output?: unknown
  readonly approval?: { readonly id: string }
}

function Chat({ initial }: { readonly initial: UIMessage[] }) {
  const [text, setText] = useState('')
  const { messages, sendMessage, regenerate, status, addToolApprovalResponse, error } = useChat({
    id,
    messages: initial,
    resume: true,
    transport: new DefaultChatTransport({ api: '/chat' }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
  return (
    <main>
      <ol>
        {messages.map((message) => (
          <li key={message.id} data-role={message.role}>
            {message.parts.map((part, i) => {
              if (part.type === 'text') return <p key={i}>{part.text}</p>
              if (!part.type.startsWith('tool-')) return null
              const { type, state, input, output, approval } = part as unknown as ToolPart
              return (
                <div key={i} data-tool={type.slice(5)} data-state={state}>
                  <code>
                    {type.slice(5)} {JSON.stringify(input)} {output === undefined ? '' : `→ ${JSON.stringify(output)}`}
                  </code>
                  {state === 'approval-requested' && approval && (
                    <>
                      <button
                        type="button"
                        onClick={() => addToolApprovalResponse({ id: approval.id, approved: true })}
                      >
                        Approve
                      </button>
                      <button
                        type="button"
                        onClick={() =>
                          addToolApprovalResponse({ id: approval.id, approved: false, reason: 'Not now.' })
                        }
                      >
                        Reject
                      </button>
                    </>
                  )}
                </div>
              )
            })}
          </li>
        ))}
      </ol>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void sendMessage({ text })
          setText('')
        }}
      >
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        <button type="submit">Send</button>
        <button type="button" onClick={() => void regenerate()}>
          Answer again
        </button>
      </form>
      <output data-status={status}>{error ? error.message : status}</output>
    </main>
  )
}

createRoot(document.getElementById('root') as HTMLElement).render(<Chat initial={await load()} />)
