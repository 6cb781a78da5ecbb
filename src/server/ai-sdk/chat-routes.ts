import { type CheckpointFacts, isHoldfastError, type OpenPause, type RunEvent } from '../../index.js'
import { nameLog } from '../../core/log-name.js'
import { mayDo } from '../access/principal.js'
import type { AnyThread } from '../core.js'
import { toJson } from '../http/json.js'
import { HttpProblem } from '../http/problem.js'
import { type Call, listOf, object, oneOf, type Route } from '../http/route.js'
import { type ServerSentEvent, sseResponse } from '../http/sse.js'
import { followThread } from '../live/follow-thread.js'
import type { ExpectedReader } from '../live/live-hub.js'
import { isEndOf, isFinal, rests } from '../run/run-outcome.js'
import { startRun } from '../run/start-run.js'
import { branchBefore, currentBranch, goneBackTo } from './chat-branch.js'
import { messagesOf } from './state-messages.js'
import type { UiChunk } from './ui-chunk.js'
import { toUIMessages, type UiMessage } from './ui-messages.js'
import { UiWriter } from './ui-writer.js'

const HEADERS = { 'x-vercel-ai-ui-message-stream': 'v1' }
const ANSWER = { type: 'text/event-stream' }

interface ChatBody {
  readonly id: string
  readonly messages: readonly UiMessage[]
  readonly trigger?: string
}

/** What the AI SDK's `useChat` talks to. A chat is a thread with the same id. */
export const chatRoutes: readonly Route[] = [
  {
    method: 'POST',
    path: '/chat',
    name: 'chat',
    summary: 'A message, an approval or another answer, and the stream of what the agent says to it',
    role: 'run',
    body: object(
      {
        id: { type: 'string', minLength: 1, maxLength: 512 },
        messages: { ...listOf({ type: 'object', required: ['id', 'role', 'parts'] }), minItems: 1 },
        'trigger?': oneOf('submit-message', 'regenerate-message'),
      },
      { additionalProperties: true },
    ),
    answer: ANSWER,
    handle: chat,
  },
  {
    method: 'GET',
    path: '/chat/:id/stream',
    name: 'resumeChat',
    summary: 'The answer that is being given, from its beginning; 204 when there is none',
    role: 'read',
    answer: ANSWER,
    handle: resume,
  },
  {
    method: 'GET',
    path: '/chat/:id',
    name: 'readChat',
    summary: 'The conversation as `useChat` takes it',
    role: 'read',
    answer: { schema: object({ messages: listOf({ type: 'object' }) }) },
    async handle(call) {
      const { thread, facts } = await open(call, call.params['id'] ?? '')
      if (facts === undefined) throw new HttpProblem(404, 'not-found', `There is no chat "${String(thread.id)}".`)
      return { messages: toUIMessages(messagesOf(facts.state), facts.pauses) }
    },
  },
]

async function chat(call: Call): Promise<Response> {
  const { id, messages, trigger } = call.body as ChatBody
  const said = messages.at(-1) as UiMessage
  return said.role === 'assistant' ? goOn(call, id, said) : say(call, id, messages, trigger === 'regenerate-message')
}

/** A new message of the user. */
async function say(call: Call, id: string, messages: readonly UiMessage[], isRegenerated: boolean): Promise<Response> {
  const { core, hf } = call
  const { thread, facts, program } = await open(call, id)
  const known = messagesOf(facts?.state)
  const back = goneBackTo(known, messages, isRegenerated)
  const { effects = 'ask' } = core.options.chat ?? {}
  const branch =
    back === undefined ? thread.branch : await branchBefore(hf.inspect(id, { branch: thread.branch }), back, effects)
  const said = messages.at(-1) as UiMessage
  // Someone who keeps talking has no answer for what was asked before.
  const isStuck = back !== undefined || (facts?.pauses.length ?? 0) > 0 || facts?.run?.status === 'failed'
  const started = await startRun(core, hf, {
    thread: id,
    branch,
    program,
    input: [said],
    key: `chat-${said.id}`,
    busy: isStuck ? 'interrupt' : 'queue',
  })
  const { run, checkpoint, ended } = started
  const writer = new UiWriter()
  if (ended || (started.input === 'taken' && (await rests(started.thread)))) return replay(call, started.thread)
  writer.skip(known)
  return stream(call, follow(call, started.thread, writer, checkpoint, run, started.early), [])
}

/** Answers to the agent's questions whether it may do something. */
async function goOn(call: Call, id: string, { id: messageId, parts }: UiMessage): Promise<Response> {
  const { thread, facts } = await open(call, id)
  if (facts === undefined) throw new HttpProblem(404, 'not-found', 'There is no such chat.')
  if (!mayDo(call.principal, 'answer')) {
    throw new HttpProblem(403, 'not-allowed', 'An approval needs the role "answer".', { fields: { role: 'answer' } })
  }
  const early = call.core.hub.expect(nameLog(thread.key))
  const answers = parts.flatMap((part) => {
    const { id: pause, approved, reason } = (part['approval'] ?? {}) as Approval
    const open = facts.pauses.find((one) => one.id === pause)
    return open === undefined || approved === undefined ? [] : [toAnswer(open, approved, reason)]
  })
  const hasAnswered = answers.length > 0
  const by = { by: call.principal.subject }
  // Another tab was first, or this request is sent again: that is not a failure.
  const refused = (await early.orClose(thread.answerSeveral(answers, by))).find(
    ({ error }) => !isHoldfastError(error, 'pause-closed'),
  )
  if (refused) {
    early.take()?.close()
    throw refused.error
  }
  const writer = new UiWriter({ messageId })
  writer.skip(messagesOf(facts.state))
  // Sent again: it is over by now, and nothing more will come.
  if (!hasAnswered && (await thread.look(facts.id).rests())) {
    early.take()?.close()
    return stream(call, undefined, [...endOf(facts, writer)])
  }
  return stream(call, follow(call, thread, writer, facts.id, facts.run?.id, early), [])
}

interface Approval {
  readonly id?: string
  readonly approved?: boolean
  readonly reason?: string
}

function toAnswer({ id, kind }: OpenPause, approved: boolean, reason: string | undefined) {
  const value =
    kind === 'permission' ? { allowed: approved } : { approved, ...(reason === undefined ? {} : { reason }) }
  return { pause: id, value }
}

async function resume(call: Call): Promise<Response> {
  const { thread, facts } = await open(call, call.params['id'] ?? '')
  if (facts === undefined || (await rests(thread))) return new Response(null, { status: 204 })
  return replay(call, thread)
}

/** The whole answer to the last message, and what follows from it. */
async function replay(call: Call, thread: AnyThread): Promise<Response> {
  const [newest] = await thread.history({ events: false, limit: 1, all: true })
  const at = thread.look(newest?.id as string)
  const facts = await at.facts()
  const messages = messagesOf(facts.state)
  const turn = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
  const writer = new UiWriter()
  writer.skip(messages.slice(0, messages.length - turn.length))
  const first = turn.flatMap((message) => [...writer.message(message)])
  // Then, not now: what came since is not among the messages that were read.
  if (await at.rests()) {
    const asked = facts.pauses.flatMap(({ id, kind, question }) => [
      ...writer.write({ type: 'pause', pause: id, kind, question, id: '' }),
    ])
    return stream(call, undefined, [...first, ...asked, ...endOf(facts, writer)])
  }
  return stream(call, follow(call, thread, writer, facts.id, undefined), first)
}

/** The end of a message whose run rests. */
function endOf({ run }: CheckpointFacts, writer: UiWriter): Generator<UiChunk> {
  const { status, error } = run ?? {}
  if (status === 'failed') return writer.write({ type: 'run', run: '', status, id: '', ...(error ? { error } : {}) })
  const isLimited = status === 'completed' && run?.limit !== undefined
  const end = status === 'cancelled' ? status : isLimited ? 'limited' : 'completed'
  return writer.write({ type: 'run', run: '', status: end, id: '' })
}

type Chunks = (signal: AbortSignal) => AsyncGenerator<UiChunk>

/** What a run adds to its message, until it rests. */
function follow(
  call: Call,
  thread: AnyThread,
  writer: UiWriter,
  after: string | undefined,
  run: string | undefined,
  early?: ExpectedReader,
): Chunks {
  return async function* (signal) {
    let end: RunEvent | undefined
    for await (const { event } of followThread(
      thread,
      call.core.hub,
      { after, live: undefined },
      signal,
      early?.take(),
    )) {
      if (event.type === 'run' && run !== undefined && event.run !== run) continue
      // Held back: it may only have rested between two answers.
      if (isEndOf(event, run ?? (event.type === 'run' ? event.run : undefined))) end = event
      else {
        if (event.type === 'run') end = undefined
        yield* writer.write(event)
      }
      if (end === undefined || event.type !== 'checkpoint') continue
      if (!isFinal(end) && !(await thread.look(event.checkpoint).rests())) continue
      yield* writer.write(end)
      return
    }
  }
}

function stream({ core, principal, request }: Call, chunks: Chunks | undefined, first: readonly UiChunk[]): Response {
  const slot = core.slots.take(principal)
  const gone = new AbortController()
  const events = async function* (): AsyncGenerator<ServerSentEvent> {
    for (const chunk of first) yield { data: toJson(chunk) }
    for await (const chunk of chunks?.(AbortSignal.any([gone.signal, request.signal])) ?? [])
      yield { data: toJson(chunk) }
    yield { data: '[DONE]' }
  }
  return sseResponse(events(), {
    ...core.limits,
    headers: HEADERS,
    slot,
    stopping: core.stopping,
    onEnd: () => gone.abort(),
    farewell: {
      data: toJson({ type: 'data-holdfast-reconnect', data: { retryMs: 1000 }, transient: true } satisfies UiChunk),
    },
  })
}

/** The chat's thread on the branch where it was last, and what is known about it. */
async function open({ core, hf }: Call, id: string) {
  const known = await currentBranch(hf, id)
  const program = agentOf(core)
  const { thread } = await core.thread(hf, id, known ?? 'main', known === undefined ? program : undefined)
  const [newest] = known === undefined ? [] : await thread.history({ events: false, limit: 1, all: true })
  const facts = newest && (await thread.look(newest.id).facts())
  return { thread, facts, program: facts === undefined ? program : undefined }
}

/** The agent that new chats talk to. */
function agentOf({ options, programs }: Call['core']): string {
  const wanted = options.chat?.program
  const found = [...programs.values()].find(({ plan }) =>
    wanted === undefined ? plan.kind === 'graph' && plan.role === 'agent' : plan.name === wanted,
  )
  if (found !== undefined) return found.plan.name
  throw new HttpProblem(404, 'not-found', 'This server has no agent to chat with.', { remedy: 'Serve an agent().' })
}
