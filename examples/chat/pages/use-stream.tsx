// A chat with useStream of LangGraph's SDK: streams, asks for approval, survives a reload in mid-sentence, branches.
import { useStream } from '@langchain/langgraph-sdk/react'
import { useState } from 'react'
import { createRoot } from 'react-dom/client'

interface Review {
  readonly action_requests: readonly { readonly name: string; readonly args: unknown }[]
}

interface State extends Record<string, unknown> {
  readonly messages: { id: string; type: 'human' | 'ai' | 'tool' | 'system'; content: string }[]
}

/** What a reload goes on with: the answer stays on the server, whoever listens. */
const RESUMABLE = { streamResumable: true, onDisconnect: 'continue', streamMode: ['values', 'messages-tuple'] } as const

function Chat() {
  const [text, setText] = useState('')
  const [thread, setThread] = useState<string | null>(location.hash.slice(1) || null)
  const stream = useStream<State>({
    apiUrl: location.origin,
    assistantId: 'support',
    threadId: thread,
    onThreadId: (id) => {
      setThread(id)
      history.replaceState(null, '', `#${id}`)
    },
    reconnectOnMount: true,
    fetchStateHistory: true,
  })
  const review = stream.interrupt?.value as Review | undefined
  const decide = (type: 'approve' | 'reject') =>
    void stream.submit(undefined, { ...RESUMABLE, command: { resume: { decisions: [{ type }] } } } as never)
  return (
    <main>
      <ol>
        {stream.messages.map((message, i) => {
          const about = stream.getMessagesMetadata(message)
          return (
            <li key={message.id ?? i} data-role={message.type}>
              <p>{typeof message.content === 'string' ? message.content : JSON.stringify(message.content)}</p>
              {message.type === 'ai' && (
                <button
                  type="button"
                  onClick={() =>
                    void stream.submit(undefined, {
                      ...RESUMABLE,
                      checkpoint: about?.firstSeenState?.parent_checkpoint,
                    } as never)
                  }
                >
                  Answer again
                </button>
              )}
              {(about?.branchOptions?.length ?? 0) > 1 && <small>{about?.branchOptions?.length} branches</small>}
            </li>
          )
        })}
      </ol>
      {review && (
        <div data-review>
          <code>{JSON.stringify(review.action_requests)}</code>
          <button type="button" onClick={() => decide('approve')}>
            Approve
          </button>
          <button type="button" onClick={() => decide('reject')}>
            Reject
          </button>
        </div>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void stream.submit({ messages: [{ type: 'human', content: text }] } as never, RESUMABLE as never)
          setText('')
        }}
      >
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
        <button type="submit">Send</button>
      </form>
      <output data-status={stream.isLoading ? 'loading' : 'ready'}>
        {stream.error ? String(stream.error) : stream.isLoading ? 'loading' : 'ready'}
      </output>
    </main>
  )
}

createRoot(document.getElementById('root') as HTMLElement).render(<Chat />)
