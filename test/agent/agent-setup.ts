import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import {
  agent,
  type AgentOptions,
  Holdfast,
  type LanguageModel,
  type Message,
  openHoldfast,
  type RunEvent,
  textOf,
} from 'holdfast'
import { type Clock, openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import { type ModelServer, type ModelServerOptions, type ScriptedReply, startModelServer } from 'holdfast/testing'
import { afterEach } from 'vitest'

/** The real provider package over real HTTP, against the scripted server; all is closed after each test. */
export function setUp() {
  const open: { close(): Promise<unknown> }[] = []
  afterEach(async () => {
    for (const one of open.splice(0).reverse()) await one.close()
  })

  async function serve(options: ModelServerOptions): Promise<{ server: ModelServer; model: LanguageModel }> {
    const server = await startModelServer(options)
    open.push(server)
    return { server, model: modelAt(server.url) }
  }

  async function store(url = 'memory:'): Promise<Holdfast> {
    const hf = await openHoldfast(url)
    open.push(hf)
    return hf
  }

  async function storeBy(clock: Clock): Promise<Holdfast> {
    const hf = new Holdfast(new LogStore(await openDriver('memory:'), { clock }))
    open.push(hf)
    return hf
  }

  /** An agent with a scripted model on a thread of its own. */
  async function talk(
    reply: ModelServerOptions['reply'],
    options: Partial<AgentOptions> = {},
    server: Partial<ModelServerOptions> = {},
    clock?: Clock,
  ) {
    const { server: started, model } = await serve({ ...server, reply })
    const program = agent({ name: 'support', version: '1.0.0', model, retry: FAST, ...options } as AgentOptions)
    const hf = clock ? await storeBy(clock) : await store()
    return { server: started, model, hf, program, thread: hf.thread(program, 'thread-1') }
  }

  return { serve, store, talk }
}

export const FAST = { initialMs: 1, maxMs: 5 }

export function modelAt(url: string, id = 'scripted'): LanguageModel {
  return createOpenAICompatible({ name: 'local', baseURL: url, includeUsage: true })(id)
}

/** A reply that calls tools: `calls(['getOrder', { id: 1 }])`. */
export function calls(...named: readonly (readonly [name: string, args?: unknown])[]): ScriptedReply {
  return { toolCalls: named.map(([name, args]) => ({ name, arguments: args ?? {} })) }
}

/** What was said and done, one line each. */
export function lines(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => {
    const said = textOf(message)
    const done = message.parts.flatMap((part) => {
      if (part.type === 'tool-call') return [`call ${part.name} ${part.raw ?? JSON.stringify(part.input)}`]
      if (part.type !== 'tool-result') return []
      const { output } = part
      const value = 'value' in output ? output.value : (output.reason ?? '')
      return [`${output.type} ${part.name} ${typeof value === 'string' ? value : JSON.stringify(value)}`]
    })
    return [...(said === '' ? [] : [`${message.role}: ${said}`]), ...done]
  })
}

export async function collect(stream: AsyncIterable<RunEvent>): Promise<RunEvent[]> {
  const events: RunEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

export function callsIn({ parts }: Message): string[] {
  return parts.flatMap((part) => (part.type === 'tool-call' ? [part.callId] : []))
}

export function resultsIn({ parts }: Message): string[] {
  return parts.flatMap((part) => (part.type === 'tool-result' ? [part.callId] : []))
}
