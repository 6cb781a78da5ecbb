import { inspect } from 'node:util'
import { append, END, flow, graph, type Holdfast, openHoldfast, START } from 'holdfast'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { seenState } from '#src/internal.js'

let hf: Holdfast

beforeEach(async () => {
  hf = await openHoldfast('memory:')
})

afterEach(() => hf.close())

const chat = graph({ name: 'chat', version: '1.0.0', state: { said: append<{ text: string }>() } })
  .node('reply', ({ said }) => ({ said: { text: `${said.at(-1)?.text}!` } }))
  .edge(START, 'reply')
  .edge('reply', END)
const hello = [{ text: 'hello' }, { text: 'hello!' }]

describe('the state of an outcome', () => {
  const say = (text: string) => hf.thread(chat, 't').run({ input: { said: [{ text }] } })

  it("is the caller's own: what they do to it changes nothing for the thread", async () => {
    const outcome = await say('hello')
    ;(outcome.state.said as { text: string }[]).push({ text: 'mine' })
    const [first] = outcome.state.said as { text: string }[]
    if (first) first.text = 'changed'
    expect(outcome.state.said).toEqual([{ text: 'changed' }, { text: 'hello!' }, { text: 'mine' }])
    expect((await hf.thread(chat, 't').state())?.said).toEqual(hello)
    expect((await say('again')).state.said).toEqual([...hello, { text: 'again' }, { text: 'again!' }])
  })

  it('is what it was when the run ended, however late somebody looks at it', async () => {
    const outcome = await say('hello')
    await say('again')
    await hf.erase('t')
    expect(outcome.state).toEqual({ said: hello })
  })

  it('is not copied for those who only look at it', async () => {
    const outcome = await say('hello')
    expect(seenState(outcome)).toEqual({ said: hello })
    expect(seenState(outcome)).toBe(seenState(outcome))
    // What its owner does to the copy is not seen.
    ;(outcome.state.said as unknown[]).length = 0
    expect(seenState(outcome)).toEqual({ said: hello })
  })

  it('is there for whoever prints, copies, serializes or replaces it', async () => {
    const outcome = await say('hello')
    if (outcome.status !== 'completed') throw new Error(outcome.status)
    const plain = { thread: 't', branch: 'main', resumed: 0, restarted: false, status: 'completed', input: 'taken' }
    const whole = { ...plain, run: outcome.run, checkpoint: outcome.checkpoint, state: { said: hello } }
    expect(outcome).toEqual({ ...whole, output: { said: hello } })
    expect(JSON.parse(JSON.stringify(outcome))).toEqual({ ...whole, output: { said: hello } })
    expect(structuredClone(outcome)).toEqual({ ...whole, output: { said: hello } })
    expect({ ...outcome }).toEqual({ ...whole, output: { said: hello } })
    expect(inspect(outcome, { depth: 5 })).toBe(inspect({ ...outcome }, { depth: 5 }))
    expect(inspect(outcome)).toContain('state: { said: [ [Object], [Object] ] }')
    expect(outcome.output).toBe(outcome.state)
    expect(Object.assign(outcome, { state: 1, output: 2 })).toMatchObject({ state: 1, output: 2 })
  })

  it('comes with a question and a failure as well', async () => {
    const ask = flow({ name: 'ask', version: '1.0.0' }, async (ctx) => ctx.pause<string>({ really: true }))
    const paused = await hf.thread(ask, 'ask').run({ input: null })
    expect({ ...paused }).toMatchObject({ status: 'paused', state: {}, pauses: [{ question: { really: true } }] })
    const fail = flow({ name: 'fail', version: '1.0.0' }, () => Promise.reject(new Error('no')))
    expect({ ...(await hf.thread(fail, 'fail').run({ input: null })) }).toMatchObject({ status: 'failed', state: {} })
  })
})
