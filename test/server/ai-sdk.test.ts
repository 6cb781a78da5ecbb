import { agent, flow, openHoldfast, tool } from 'holdfast'
import { toUIMessages, toUIMessageStream, type UiChunk } from 'holdfast/server'
import {
  DefaultChatTransport,
  readUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema,
} from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { until } from '../support/until.js'
import { pacedModel } from './paced-model.js'
import { setUpServers, type TestServer, TOKENS } from './server-setup.js'

const { serve } = setUpServers()

/** An agent whose model the test plays, and what its tools have done. */
function playSupport() {
  const { model, next } = pacedModel()
  const done: string[] = []
  const support = agent({
    name: 'support',
    version: '1.0.0',
    model,
    tools: {
      find: tool({
        description: 'd',
        inputSchema: z.object({ id: z.string() }),
        effect: 'read',
        execute: async ({ id }) => ({ found: id }),
      }),
      refund: tool({
        description: 'd',
        inputSchema: z.object({ id: z.string() }),
        effect: 'idempotent',
        needsApproval: true,
        execute: async ({ id }) => {
          done.push(id)
          return { refunded: id }
        },
      }),
      fail: tool({
        description: 'd',
        inputSchema: z.object({}),
        effect: 'read',
        retry: { attempts: 1 },
        execute: () => Promise.reject(new Error('broken')),
      }),
    },
  })
  return { support, next, done }
}

/** The AI SDK's own transport, as `useChat` uses it, with every piece held against its schema. */
function chatOf(server: TestServer, token: string = TOKENS.ada.token) {
  const transport = new DefaultChatTransport<UIMessage>({
    api: `${server.url}/chat`,
    headers: { authorization: `Bearer ${token}` },
  })
  const read = async (stream: ReadableStream<UIMessageChunk>, message?: UIMessage) => {
    const chunks: UIMessageChunk[] = []
    const checked = stream.pipeThrough(
      new TransformStream<UIMessageChunk, UIMessageChunk>({
        async transform(chunk, controller) {
          const validated = await uiMessageChunkSchema().validate?.(chunk)
          if (validated?.success === false) throw validated.error
          chunks.push(chunk)
          controller.enqueue(chunk)
        },
      }),
    )
    let last: UIMessage | undefined
    for await (const now of readUIMessageStream({
      stream: checked,
      ...(message ? { message } : {}),
      terminateOnError: true,
    }))
      last = now
    return { message: last as UIMessage, chunks }
  }
  const send = (messages: readonly UIMessage[], trigger: 'submit-message' | 'regenerate-message' = 'submit-message') =>
    transport.sendMessages({
      chatId: 'c',
      messages: [...messages],
      trigger,
      messageId: undefined,
      abortSignal: undefined,
    })
  return {
    transport,
    read,
    send,
    say: async (messages: readonly UIMessage[], trigger?: 'regenerate-message') => read(await send(messages, trigger)),
  }
}

const user = (id: string, text: string): UIMessage => ({ id, role: 'user', parts: [{ type: 'text', text }] })
const textsOf = ({ parts }: UIMessage) => parts.flatMap((part) => (part.type === 'text' ? [part.text] : []))
const toolsOf = ({ parts }: UIMessage) =>
  parts.flatMap((part) =>
    part.type.startsWith('tool-')
      ? [part as unknown as { toolCallId: string; state: string; approval?: { id: string } }]
      : [],
  )

describe('the AI SDK chat', () => {
  it('streams an answer with its tool calls, and keeps the conversation', async () => {
    const { support, next } = playSupport()
    const server = await serve({ programs: [support] })
    const chat = chatOf(server)
    const first = chat.say([user('u1', 'Where is A?')])
    ;(await next()).say('Let me ').say('look.').call('find', { id: 'A' }).call('fail', {}).end()
    ;(await next()).say('It is here.').end()
    const { message, chunks } = await first
    expect(textsOf(message)).toEqual(['Let me look.', 'It is here.'])
    expect(toolsOf(message)).toMatchObject([
      { type: 'tool-find', state: 'output-available', output: { found: 'A' } },
      { type: 'tool-fail', state: 'output-error' },
    ])
    expect(chunks.map(({ type }) => type)).toEqual([
      'start',
      'start-step',
      'text-start',
      'text-delta',
      'text-delta',
      'text-end',
      'tool-input-start',
      'tool-input-delta',
      'tool-input-start',
      'tool-input-delta',
      'tool-input-available',
      'tool-input-available',
      expect.stringMatching(/^tool-output/),
      expect.stringMatching(/^tool-output/),
      'finish-step',
      'start-step',
      'text-start',
      'text-delta',
      'text-end',
      'finish-step',
      'finish',
    ])
    const second = chat.say([user('u1', 'Where is A?'), message, user('u2', 'Thanks')])
    ;(await next()).say('You are welcome.').end()
    const { message: last } = await second
    const stored = (await (await server.fetch('/chat/c')).json()) as { messages: UIMessage[] }
    expect(stored.messages.map(({ id, role }) => [id, role])).toEqual([
      ['u1', 'user'],
      [message.id, 'assistant'],
      ['u2', 'user'],
      [last.id, 'assistant'],
    ])
    expect(stored.messages[1]?.parts.map(({ type }) => type)).toEqual(message.parts.map(({ type }) => type))
    // The same message once more is the same request.
    const again = await chat.say([user('u1', 'Where is A?'), message, user('u2', 'Thanks')])
    expect(again.message).toMatchObject({ id: last.id, parts: last.parts })
  })

  it('asks before it acts, and acts once however often it is told', async () => {
    const { support, next, done } = playSupport()
    // Both answers are in one request: the worker takes up the run after the first.
    const server = await serve({ programs: [support], eager: true })
    const chat = chatOf(server)
    const asked = chat.say([user('u1', 'Refund A and B')])
    ;(await next()).call('refund', { id: 'A' }).call('refund', { id: 'B' }).end()
    const { message } = await asked
    expect(toolsOf(message).map(({ state }) => state)).toEqual(['approval-requested', 'approval-requested'])
    expect(done).toEqual([])
    const stored = (await (await server.fetch('/chat/c')).json()) as { messages: UIMessage[] }
    expect(toolsOf(stored.messages[1] as UIMessage)).toMatchObject(
      toolsOf(message).map(({ state, approval }) => ({ state, approval })),
    )
    const answered: UIMessage = {
      ...message,
      parts: message.parts.map((part) => {
        const { approval, input } = part as { approval?: { id: string }; input?: { id: string } }
        if (approval === undefined) return part
        return {
          ...part,
          state: 'approval-responded',
          approval: { id: approval.id, approved: input?.id === 'A', reason: 'r' },
        } as never
      }),
    }
    const refused = await server.post('/chat', { id: 'c', messages: [answered] }, { token: TOKENS.reader.token })
    expect(refused.status).toBe(403)
    const goingOn = chat.send([user('u1', 'Refund A and B'), answered]).then((stream) => chat.read(stream, answered))
    ;(await next()).say('Done.').end()
    const { message: final } = await goingOn
    expect(final.id).toBe(message.id)
    expect(toolsOf(final).map(({ state }) => state)).toEqual(['output-available', 'output-denied'])
    expect(textsOf(final)).toEqual(['Done.'])
    expect(done).toEqual(['A'])
    const again = await chat.send([user('u1', 'Refund A and B'), answered])
    expect((await chat.read(again, answered)).chunks.map(({ type }) => type)).toEqual(['start', 'finish'])
    expect(done).toEqual(['A'])
  })

  it('goes on in mid-sentence for who comes back, and has nothing to resume at rest', async () => {
    const { support, next } = playSupport()
    const server = await serve({ programs: [support] })
    const chat = chatOf(server)
    const reconnect = () => chat.transport.reconnectToStream({ chatId: 'c' })
    expect(await reconnect()).toBeNull()
    const lost = await chat.send([user('u1', 'Tell me')])
    ;(await next()).say('First, ').call('find', { id: 'A' }).end()
    const call = await next()
    call.say('second, ')
    const reader = lost.getReader()
    for (let heard = ''; !heard.includes('second'); ) heard += JSON.stringify((await reader.read()).value)
    await reader.cancel()
    await until(() => server.server.openStreams === 0)
    call.say('third.')
    const stream = (await reconnect()) as ReadableStream<UIMessageChunk>
    call.end()
    const { message } = await chat.read(stream)
    expect(textsOf(message)).toEqual(['First, ', 'second, third.'])
    expect(toolsOf(message)).toMatchObject([{ state: 'output-available' }])
    expect(await reconnect()).toBeNull()
  })

  it('branches where a message is edited or answered again, and leaves the past as it was', async () => {
    const { support, next } = playSupport()
    const server = await serve({ programs: [support] })
    const chat = chatOf(server)
    const talk = async (messages: UIMessage[], reply: string, trigger?: 'regenerate-message') => {
      const going = chat.say(messages, trigger)
      ;(await next()).say(reply).end()
      return (await going).message
    }
    const a1 = await talk([user('u1', 'one')], 'first')
    const a2 = await talk([user('u1', 'one'), a1, user('u2', 'two')], 'second')
    const again = await talk([user('u1', 'one'), a1, user('u2', 'two')], 'other second', 'regenerate-message')
    expect(again.id).not.toBe(a2.id)
    const edited = await talk([user('u1', 'one'), a1, user('u3', 'two, but different')], 'third')
    const fromStart = await talk([user('u4', 'all new')], 'fourth')
    const stored = (await (await server.fetch('/chat/c')).json()) as { messages: UIMessage[] }
    expect(stored.messages.map(({ id }) => id)).toEqual(['u4', fromStart.id])
    const branches = (await server.client().threads({ thread: 'c' })).threads.map(({ branch }) => branch)
    expect(branches).toHaveLength(4)
    const states = await Promise.all(
      branches.map(async (branch) => (await server.client().thread('c', { branch }).state()).state),
    )
    const said = states.map((state) =>
      toUIMessages(state['messages'] as never)
        .flatMap((m) => m.parts.map((part) => part['text']))
        .filter(Boolean),
    )
    expect(said).toEqual(
      expect.arrayContaining([
        ['one', 'first', 'two', 'second'],
        ['one', 'first', 'two', 'other second'],
        ['one', 'first', 'two, but different', 'third'],
        ['all new', 'fourth'],
      ]),
    )
    expect(edited.id).not.toBe(again.id)
  })

  it('takes a new message for a no to what it asked', async () => {
    const { support, next, done } = playSupport()
    const server = await serve({ programs: [support] })
    const chat = chatOf(server)
    const asked = chat.say([user('u1', 'Refund A')])
    ;(await next()).call('refund', { id: 'A' }).end()
    const { message } = await asked
    const other = chat.say([user('u1', 'Refund A'), message, user('u2', 'Never mind')])
    ;(await next()).say('Fine.').end()
    expect(textsOf((await other).message)).toEqual(['Fine.'])
    expect(done).toEqual([])
    expect((await server.client().pauses()).pauses).toEqual([])
  })

  it('tells of a failure, and belongs to its tenant', async () => {
    const broken = agent({
      name: 'broken',
      version: '1.0.0',
      model: {
        specificationVersion: 'v3',
        provider: 'p',
        modelId: 'm',
        supportedUrls: {},
        doStream: () => Promise.reject(new Error('no model')),
        doGenerate: () => Promise.reject(new Error('no model')),
      } as never,
      retry: { attempts: 1 } as never,
    })
    const server = await serve({ programs: [broken] })
    const chat = chatOf(server)
    await expect(chat.say([user('u1', 'Hi')])).rejects.toThrow(/model/)
    const eve = { token: TOKENS.other.token }
    expect((await server.fetch('/chat/c', eve)).status).toBe(404)
    expect((await server.fetch('/chat/c/stream', eve)).status).toBe(204)
    expect((await server.fetch('/chat/c', { token: null })).status).toBe(401)
    expect((await server.post('/chat', { id: 'c', messages: [] })).status).toBe(422)
    expect((await server.post('/chat', { messages: [user('u', 'x')] })).status).toBe(422)
    const none = await serve({ programs: [flow({ name: 'f', version: '1.0.0' }, async () => 1)] })
    expect((await none.post('/chat', { id: 'c', messages: [user('u', 'x')] })).status).toBe(404)
  })
})

describe('toUIMessageStream', () => {
  it('turns a run of this process into a message, for a route of your own', async () => {
    const { support, next } = playSupport()
    await using hf = await openHoldfast('memory:')
    const run = hf.thread(support, 't').stream({ input: 'Hi' })
    const stream = toUIMessageStream(run) as ReadableStream<UIMessageChunk>
    ;(await next()).say('Hello ').say('there.').end()
    let message: UIMessage | undefined
    for await (const now of readUIMessageStream({ stream })) message = now
    expect(textsOf(message as UIMessage)).toEqual(['Hello there.'])
  })

  it('can hold text back until it is on record', async () => {
    const { support, next } = playSupport()
    await using hf = await openHoldfast('memory:')
    const stream = toUIMessageStream(hf.thread(support, 't').stream({ input: 'Hi' }), {
      buffer: true,
      messageId: 'mine',
    })
    ;(await next()).say('Hello ').say('there.').end()
    const chunks: UiChunk[] = []
    for await (const chunk of stream as unknown as AsyncIterable<UiChunk>) chunks.push(chunk)
    expect(chunks[0]).toEqual({ type: 'start', messageId: 'mine' })
    expect(chunks.filter(({ type }) => type === 'text-delta')).toMatchObject([{ delta: 'Hello there.' }])
  })
})
