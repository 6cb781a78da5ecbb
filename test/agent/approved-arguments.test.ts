import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { agent, isHoldfastError, type LanguageModel, type Outcome, tool, type ToolOptions } from 'holdfast'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { remove } from '#src/log/entry/ops.js'
import { randomly, rounds } from '../support/scale.js'
import { calls, lines, setUp } from './agent-setup.js'

const { serve, store } = setUp()

type Pauses = Pick<Outcome, 'status'> & {
  readonly pauses?: readonly { readonly id: string; readonly question: unknown }[]
}

function pauseOf(outcome: Pauses) {
  if (outcome.status !== 'paused' || outcome.pauses?.[0] === undefined) throw new Error(`not paused: ${outcome.status}`)
  return outcome.pauses[0]
}

interface Shown {
  readonly input: unknown
  readonly given?: unknown
}

/** A payment that needs approval, of a tool whose definition can change between question and answer. */
async function payments(args: object, options: Partial<ToolOptions>) {
  const { model } = await serve({ reply: [calls(['pay', args]), 'Done.'] })
  const hf = await store()
  const paid: unknown[] = []
  const open = (changed: Partial<ToolOptions> = {}) =>
    hf.thread(programOf(model, { ...options, ...changed }, paid), 'thread-1')
  const first = await open().run({ input: 'Pay' })
  return { hf, open, paid, first, shown: pauseOf(first).question as Shown }
}

function programOf(model: LanguageModel, options: Partial<ToolOptions>, paid: unknown[]) {
  const pay = tool({
    inputSchema: z.looseObject({}),
    needsApproval: true,
    execute: (input: unknown) => {
      paid.push(input)
      return 'paid'
    },
    ...(options as object),
  })
  return agent({ name: 'support', version: '1.0.0', model, tools: { pay } })
}

const to = z.object({ to: z.string() })

describe('what was approved is what runs', () => {
  it('shows what defaults add, beside what the model wrote', async () => {
    const inputSchema = to.extend({ amount: z.number().default(1_000_000) })
    const { open, paid, first, shown } = await payments({ to: 'mallory' }, { inputSchema })
    expect(shown).toMatchObject({ input: { to: 'mallory', amount: 1_000_000 }, given: { to: 'mallory' } })
    await open().answer(pauseOf(first).id, { approved: true })
    expect(await open().run()).toMatchObject({ status: 'completed' })
    expect(paid).toEqual([{ to: 'mallory', amount: 1_000_000 }])
  })

  it('shows what a transform makes', async () => {
    const inputSchema = z.object({ to: z.string().transform((text) => text.split(' | ').at(-1) as string) })
    const { open, paid, first, shown } = await payments({ to: 'alice | mallory' }, { inputSchema })
    expect(shown).toMatchObject({ input: { to: 'mallory' }, given: { to: 'alice | mallory' } })
    await open().answer(pauseOf(first).id, { approved: true })
    await open().run()
    expect(paid).toEqual([{ to: 'mallory' }])
  })

  it('shows and hands over dates and bigints as they are', async () => {
    const inputSchema = z.object({ on: z.coerce.date(), cents: z.coerce.bigint() })
    const { open, paid, first, shown } = await payments(
      { on: '2026-05-01', cents: '900719925474099200' },
      { inputSchema, jsonSchema: { type: 'object' } },
    )
    const made = { on: new Date('2026-05-01'), cents: 900719925474099200n }
    expect(shown.input).toEqual(made)
    await open().answer(pauseOf(first).id, { approved: true })
    await open().run()
    expect(paid).toEqual([made])
  })

  it('refuses by name a schema whose arguments nobody can be shown', async () => {
    const { model } = await serve({ reply: [calls(['pay', { to: 'ada' }]), 'Done.'] })
    const hf = await store()
    const inputSchema = z.object({ to: z.string().transform((name) => new Map([[name, 5]])) })
    const outcome = await hf.thread(programOf(model, { inputSchema }, []), 'thread-1').run({ input: 'Pay' })
    expect(outcome).toMatchObject({
      status: 'failed',
      error: { code: 'invalid-program', message: expect.stringMatching(/schema of tool "pay".*\$\.to/) },
    })
  })

  it('asks again when migrate makes something else of it after the approval', async () => {
    const inputSchema = z.object({ amount: z.number() })
    const { open, paid, first } = await payments({ amount: 5 }, { inputSchema, version: '1' })
    const migrate: ToolOptions['migrate'] = (input) => ({ amount: (input as { amount: number }).amount * 100 })
    await open().answer(pauseOf(first).id, { approved: true })
    const again = await open({ version: '2', migrate }).run()
    expect(paid).toEqual([])
    const pause = pauseOf(again)
    expect(pause.question).toMatchObject({ input: { amount: 500 }, given: { amount: 5 }, version: '2' })
    await open().answer(pause.id, { approved: true })
    expect(await open({ version: '2', migrate }).run()).toMatchObject({ status: 'completed' })
    expect(paid).toEqual([{ amount: 500 }])
  })

  it('asks again when the schema changed without a version', async () => {
    const before = to.extend({ amount: z.number().default(5) })
    const { open, paid, first } = await payments({ to: 'ada' }, { inputSchema: before })
    await open().answer(pauseOf(first).id, { approved: true })
    const changed = { inputSchema: to.extend({ amount: z.number().default(500) }) }
    const again = pauseOf(await open(changed).run())
    expect(again.question).toMatchObject({ input: { to: 'ada', amount: 500 } })
    await open().answer(again.id, { approved: true })
    // A worker that still has the old code would pay what nobody agreed to.
    const old = pauseOf(await open().run())
    expect(old.question).toMatchObject({ input: { to: 'ada', amount: 5 } })
    expect(paid).toEqual([])
  })

  it('asks again when the arguments that the person wrote become something else', async () => {
    const inputSchema = to.extend({ amount: z.number().default(1_000_000) })
    const { open, paid, first } = await payments({ to: 'bob', amount: 5 }, { inputSchema })
    await open().answer(pauseOf(first).id, { approved: true, input: { to: 'ada' } })
    const again = pauseOf(await open().run())
    expect(paid).toEqual([])
    expect(again.question).toMatchObject({
      input: { to: 'ada', amount: 1_000_000 },
      given: { to: 'ada' },
      edited: true,
    })
    await open().answer(again.id, { approved: true, input: { to: 'ada', amount: 7 } })
    const outcome = await open().run()
    expect(paid).toEqual([{ to: 'ada', amount: 7 }])
    expect(outcome.state.messages[2]?.parts[0]).toMatchObject({ edited: { to: 'ada', amount: 7 } })
  })

  it('asks again, with the reason, when the arguments that the person wrote fail the tool’s own check', async () => {
    const inputSchema = z.object({ amount: z.number() }).refine(({ amount }) => amount % 2 === 0, 'must be even')
    const { open, paid, first } = await payments({ amount: 8 }, { inputSchema })
    await open().answer(pauseOf(first).id, { approved: true, input: { amount: 7 } }, { by: 'ada' })
    const again = await open().run()
    expect(again).toMatchObject({
      status: 'paused',
      pauses: [{ id: pauseOf(first).id, refused: { by: 'ada', reason: expect.stringContaining('must be even') } }],
    })
    await open().answer(pauseOf(again).id, { approved: true, input: { amount: 6 } })
    expect(await open().run()).toMatchObject({ status: 'completed' })
    expect(paid).toEqual([{ amount: 6 }])
  })

  it('runs what was shown where a default is another one each time', async () => {
    const inputSchema = to.extend({
      id: z.string().default(() => randomUUID()),
      at: z.date().default(() => new Date()),
    })
    const { open, paid, first, shown } = await payments({ to: 'ada' }, { inputSchema, jsonSchema: { type: 'object' } })
    await open().answer(pauseOf(first).id, { approved: true })
    expect(await open().run()).toMatchObject({ status: 'completed' })
    expect(paid).toEqual([shown.input])
  })

  it('keeps a no, and a result that the person brought about, though the arguments changed', async () => {
    const before = { inputSchema: to.extend({ amount: z.number().default(5) }) }
    const changed = { inputSchema: to.extend({ amount: z.number().default(500) }) }
    const denied = await payments({ to: 'ada' }, before)
    await denied.open().answer(pauseOf(denied.first).id, { approved: false, reason: 'No.' })
    expect(lines((await denied.open(changed).run()).state.messages)).toContain('denied pay No.')
    const done = await payments({ to: 'ada' }, before)
    await done.open().answer(pauseOf(done.first).id, { approved: true, result: 'by hand' })
    expect(lines((await done.open(changed).run()).state.messages)).toContain('text pay by hand')
    expect([...denied.paid, ...done.paid]).toEqual([])
  })

  it('tells the model when the tool changed after the call was begun and did not happen', async () => {
    const inputSchema = to.extend({ amount: z.number().default(5) })
    const crash = { execute: () => Promise.reject(new Error('connection lost')) }
    const { open, paid, first } = await payments({ to: 'ada' }, { inputSchema })
    await open().answer(pauseOf(first).id, { approved: true })
    const unknown = pauseOf(await open(crash).run())
    await open().answer(unknown.id, { outcome: 'not-executed' })
    const outcome = await open({ inputSchema: to.extend({ amount: z.number().default(500) }) }).run()
    expect(lines(outcome.state.messages)[2]).toMatch(/^error pay The tool pay has changed since .* Nothing was done/)
    expect(paid).toEqual([])
  })
})

describe('a question of version 0.1, which showed what the model wrote', () => {
  const before = { inputSchema: to }

  // What is shown is then no promise of what runs.
  async function asked() {
    const one = await payments({ to: 'ada' }, before)
    const { id } = pauseOf(one.first)
    const log = await one.hf.log('thread-1')
    await log.update(() => [{ kind: 'answer', ops: [remove(['pauses', id, 'exact'])] }])
    return { ...one, id }
  }

  it('keeps its id and its answer while that is also what runs', async () => {
    const { open, paid, id } = await asked()
    expect(pauseOf(await open().run()).id).toBe(id)
    await open().answer(id, { approved: true })
    expect(await open().run()).toMatchObject({ status: 'completed' })
    expect(paid).toEqual([{ to: 'ada' }])
  })

  it('takes edited arguments', async () => {
    const { open, paid, id } = await asked()
    await open().answer(id, { approved: true, input: { to: 'bob' } })
    const outcome = await open().run()
    expect(paid).toEqual([{ to: 'bob' }])
    expect(outcome.state.messages[2]?.parts[0]).toMatchObject({ edited: { to: 'bob' } })
  })

  it('is asked anew where something else runs', async () => {
    const { open, paid, id } = await asked()
    const now = { inputSchema: to.extend({ amount: z.number().default(1_000_000) }) }
    await open().answer(id, { approved: true })
    const again = pauseOf(await open(now).run())
    expect(again.question).toMatchObject({ input: { to: 'ada', amount: 1_000_000 }, given: { to: 'ada' } })
    expect(paid).toEqual([])
    const late = await open()
      .answer(id, { approved: true })
      .catch((error: unknown) => error)
    expect(isHoldfastError(late, 'pause-closed')).toBe(true)
  })
})

describe('whatever changes between question and answer', () => {
  const code = fc.record({
    fee: fc.constantFrom(0, 1, 500),
    double: fc.boolean(),
    version: fc.constantFrom('1', '2', undefined),
  })
  type Code = { readonly fee: number; readonly double: boolean; readonly version: string | undefined }
  const answer = fc.oneof(
    { weight: 3, arbitrary: fc.constant({ approved: true }) },
    fc.record({ approved: fc.constant(true), input: fc.record({ amount: fc.integer({ min: 0, max: 9 }) }) }),
    fc.record({ approved: fc.boolean() }),
  )

  function versionOf({ fee, double, version }: Code): Partial<ToolOptions> {
    const amount = z.number().transform((given) => (double ? given * 2 : given))
    return {
      inputSchema: z.object({ amount, fee: z.number().default(fee) }),
      migrate: (input) => ({ ...(input as object), amount: (input as { amount: number }).amount + 100 }),
      ...(version === undefined ? {} : { version }),
    }
  }

  it('runs only what the last yes was said to', async () => {
    await fc.assert(
      fc.asyncProperty(code, fc.array(fc.tuple(code, answer), { minLength: 1, maxLength: 5 }), async (first, moves) => {
        const { open, paid, first: outcome } = await payments({ amount: 3 }, versionOf(first))
        let last: Pauses = outcome
        let agreed: unknown
        for (const [now, said] of moves) {
          if (last.status !== 'paused') break
          const { id, question } = pauseOf(last)
          await open().answer(id, said)
          // Written arguments run only as they are written: otherwise there is another question.
          agreed = 'input' in said ? said.input : said.approved ? (question as Shown).input : undefined
          last = await open(versionOf(now)).run()
        }
        expect(paid.length).toBeLessThanOrEqual(1)
        for (const ran of paid) expect(ran).toEqual(agreed)
      }),
      randomly(rounds(25)),
    )
  })
})
