import { agent, type LanguageModel, tool } from 'holdfast'
import { z } from 'zod'
import { NAME, policyOf, type Program, type Surroundings } from './surroundings.js'
import type { CallSpec } from './spec.js'
import { isTimed, type Place, TIMEOUT_MS } from './world.js'
import type { Mortal } from './mortal.js'

const ASKED = z.object({ place: z.string() })

type Turns = readonly (readonly CallSpec[])[]

/** An agent whose model asks for the same calls whenever it is asked, and ends when all turns are done. */
export function buildAgent(turns: Turns, around: Surroundings, version: string): Program {
  const tools = Object.fromEntries(turns.flat().map((call) => [toolName(call), buildTool(call, around)]))
  return agent({
    name: NAME,
    version,
    model: scripted(turns, around.process),
    tools,
    stream: false,
    compaction: false,
    retry: { attempts: 1 },
  })
}

function toolName({ id, work }: CallSpec): string {
  return `${id}${work.name ?? ''}${work.gone ? 'instead' : ''}`
}

function buildTool(call: CallSpec, around: Surroundings) {
  const { world, process } = around
  const { work, approval } = call
  const { effect, retry, keyTtlMs, onUnknown, reconcile } = policyOf(work, around, false)
  const { ownKey } = work
  return tool<typeof ASKED, unknown>({
    description: 'Does something.',
    inputSchema: ASKED,
    effect,
    retry,
    keyTtlMs,
    onUnknown,
    ...(approval ? { needsApproval: true } : {}),
    ...(ownKey === undefined ? {} : { idempotencyKey: ({ place }) => `${ownKey} ${place}` }),
    ...(effect === 'reconcilable' ? { reconcile } : {}),
    ...(isTimed(work) ? { timeoutMs: TIMEOUT_MS } : {}),
    execute: ({ place }, { idempotencyKey, abortSignal }) =>
      world.call(process, placeOf(call, place), work, { idempotencyKey, abortSignal }),
  })
}

// Its id tells the call from others of the thread, and so does its place from those in other lives of the thread.
function placeOf(call: CallSpec, place: string): Place {
  return { name: place, record: { path: `:tool ${toolName(call)}` }, mark: place, outer: '', told: (result) => result }
}

/** What the world knows a call of an agent by; also the id of the call. */
function callPlace(era: number, n: string, { id }: CallSpec): string {
  return `${era}/${n}:${id}`
}

interface Prompt {
  readonly prompt: readonly { readonly role: string; readonly content: unknown }[]
}

function scripted(turns: Turns, process: Mortal): LanguageModel {
  const reply = async ({ prompt }: Prompt) => {
    await process.moment()
    const asked = prompt.findLastIndex(({ role }) => role === 'user')
    const n = /request (\d+)/.exec(JSON.stringify(prompt[asked]))?.[1] ?? '?'
    const turn = prompt.slice(asked).filter(({ role }) => role === 'assistant').length
    const calls = (turns[turn] ?? []).map((call) => ({
      type: 'tool-call',
      toolCallId: callPlace(process.era, n, call),
      toolName: toolName(call),
      input: JSON.stringify({ place: callPlace(process.era, n, call) }),
    }))
    const isOver = calls.length === 0
    return {
      content: isOver ? [{ type: 'text', text: `done with request ${n}` }] : calls,
      finishReason: isOver ? 'stop' : 'tool-calls',
      usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
      warnings: [],
    }
  }
  return {
    specificationVersion: 'v2',
    provider: 'simulation',
    modelId: 'scripted',
    doGenerate: reply as never,
    doStream: () => Promise.reject(new Error('This model does not stream.')),
  }
}
