import { showValue } from '#src/codec/clone.js'
import { callModel } from '#src/agent/model/model.js'
import { type Message, makeMessage } from '#src/agent/messages/message.js'
import { toAiSdkPrompt } from '#src/agent/messages/ai-sdk/to-ai-sdk.js'
import fc from 'fast-check'
import type { LanguageModel } from 'holdfast'
import { systemClock } from 'holdfast/driver'
import { describe, expect, it } from 'vitest'
import { v3Message } from './conversations.js'
import { randomly, rounds } from '../support/scale.js'

const clock = systemClock()

interface Sent {
  role: string
  content: string | { type: string; text?: string; output?: { value?: unknown }; providerOptions?: object }[]
  providerOptions?: object
}

type Change = (prompt: Sent[]) => void

/** A prompt holds URLs, which structuredClone turns into empty objects on Node 20 and refuses on later ones. */
function copyOf(value: unknown): unknown {
  if (value instanceof URL) return new URL(value)
  if (Array.isArray(value)) return value.map(copyOf)
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== Object.prototype) {
    return structuredClone(value)
  }
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, copyOf(each)]))
}

/** A model that notes what it is called with, as it is at that moment, and then does something to it. */
function changing() {
  const calls: { readonly prompt: Sent[]; readonly was: unknown }[] = []
  const model = {
    specificationVersion: 'v3',
    provider: 'acme',
    modelId: 'm',
    supportedUrls: {},
    change: (() => {}) as Change,
    async doGenerate({ prompt }: { prompt: Sent[] }) {
      calls.push({ prompt: [...prompt], was: copyOf(prompt) })
      model.change(prompt)
      const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
      const content = [{ type: 'text', text: 'ok' }]
      return { content, finishReason: { unified: 'stop', raw: 'stop' }, usage, warnings: [] }
    },
  }
  const ask = (messages: readonly Message[]) =>
    callModel(model as unknown as LanguageModel, { messages }, { clock, stream: false, retry: { attempts: 1 } })
  return { model, calls, ask }
}

/** As the state hands it out: the same objects, which nobody can change. */
function shown(messages: readonly Message[]): readonly Message[] {
  return showValue(messages as never) as unknown as readonly Message[]
}

function say(...texts: readonly string[]): readonly Message[] {
  return shown(texts.map((text, i) => makeMessage('user', text, { id: `m${i}`, at: 0 })))
}

const CHANGES: readonly Change[] = [
  () => {},
  (prompt) => prompt.reverse(),
  (prompt) => {
    const last = prompt.at(-1)
    if (last) last.providerOptions = { cache: {} }
  },
  (prompt) => {
    for (const { content } of prompt) if (Array.isArray(content)) content.push({ type: 'text', text: 'more' })
  },
  (prompt) => {
    const [first] = prompt
    if (Array.isArray(first?.content)) for (const part of first.content) part.providerOptions = { mark: { on: true } }
  },
  (prompt) => {
    for (const { content } of prompt) {
      if (!Array.isArray(content)) continue
      for (const { output } of content) if (output && 'value' in output) output.value = 'omitted'
    }
  },
  (prompt) => {
    const middle = prompt[Math.floor(prompt.length / 2)]
    if (middle) middle.content = 'replaced'
  },
]

describe('what a model is called with', () => {
  it('is the conversation alone, whatever the model did to the prompts before', async () => {
    const turn = fc.record({
      at: fc.nat({ max: 9 }),
      remove: fc.nat({ max: 2 }),
      insert: fc.array(v3Message, { maxLength: 3 }),
      isFixed: fc.boolean(),
      change: fc.constantFrom(...CHANGES),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(v3Message, { minLength: 1, maxLength: 6 }), fc.array(turn), async (given, turns) => {
        const { model, calls, ask } = changing()
        let messages = shown(given)
        for (const { at, remove, insert, isFixed, change } of turns) {
          const added = isFixed ? shown(insert) : insert.map((each) => ({ ...each }))
          const place = Math.min(at, messages.length)
          messages = [...messages.slice(0, place), ...added, ...messages.slice(place + remove)]
          const before = structuredClone(messages)
          const expected = copyOf(toAiSdkPrompt(before))
          model.change = change
          calls.length = 0
          await ask(messages)
          expect(calls.length).toBeLessThanOrEqual(2)
          for (const { was } of calls) expect(was).toEqual(expected)
          expect(messages).toEqual(before)
        }
      }),
      randomly(rounds(50)),
    )
  })

  it('is not copied again where the model left it as it was', async () => {
    const { calls, ask } = changing()
    const messages = say('one', 'two', 'three', 'four')
    for (let length = 1; length <= 4; length++) await ask(messages.slice(0, length))
    const [, second, third, fourth] = calls.map(({ prompt }) => prompt)
    expect(third?.slice(0, 1)).toEqual(second?.slice(0, 1))
    for (const at of [0, 1]) expect(fourth?.[at]).toBe(third?.[at])
    expect(Object.isFrozen(fourth?.[2])).toBe(true)
    expect(Object.isFrozen(fourth?.[3])).toBe(false)
  })

  it('may be marked at its end for ever, and the rest is not copied for that', async () => {
    const { model, calls, ask } = changing()
    model.change = (prompt) => {
      const last = prompt.at(-1)
      if (last) last.providerOptions = { anthropic: { cacheControl: { type: 'ephemeral' } } }
    }
    const messages = say('one', 'two', 'three', 'four', 'five')
    for (let length = 1; length <= 5; length++) await ask(messages.slice(0, length))
    expect(calls).toHaveLength(5)
    const marked = calls.map(({ prompt }) => prompt.map(({ providerOptions }) => providerOptions !== undefined))
    expect(marked.at(-1)).toEqual([false, false, false, false, true])
    expect(calls.at(-1)?.prompt[0]).toBe(calls.at(-2)?.prompt[0])
  })

  it('is a copy again for a model that changes what it had left alone, and the call is not counted as failed', async () => {
    const { model, calls, ask } = changing()
    const messages = say('one', 'two', 'three')
    for (let length = 1; length <= 2; length++) await ask(messages.slice(0, length))
    model.change = (prompt) => {
      for (const message of prompt) if (Array.isArray(message.content)) message.content = []
    }
    calls.length = 0
    const { attempts } = await ask(messages)
    expect(attempts).toBe(1)
    expect(calls).toHaveLength(2)
    expect(calls[1]?.prompt.map(({ content }) => content)).toEqual([[], [], []])
    await ask(messages)
    expect(calls).toHaveLength(3)
  })

  it('is a prompt of its own for each of two models', async () => {
    const [one, other] = [changing(), changing()]
    const messages = say('one', 'two')
    for (let turn = 0; turn < 2; turn++) await one.ask(messages)
    other.model.change = (prompt) => {
      for (const message of prompt) message.providerOptions = { mark: {} }
    }
    await other.ask(messages)
    expect(other.calls).toHaveLength(1)
    await one.ask(messages)
    expect(one.calls.at(-1)?.was).toEqual(toAiSdkPrompt(messages))
  })
})
