import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { append, END, flow, graph, Holdfast, openHoldfast, START } from 'holdfast'
import { openDriver } from 'holdfast/driver'
import { LogStore } from 'holdfast/log'
import type { StepPolicy } from 'holdfast/types'
import { faultyDriver, virtualClock } from 'holdfast/testing'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'

// The engine that the store uses: a second one in a process drops the locks of the first when it closes the file.
const openSqlite = await loadSqlite()

let folder: string
let url: string
let hf: Holdfast

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-forks-'))
  url = `sqlite:${join(folder, 'store.db')}`
  hf = await openHoldfast(url)
})

afterEach(async () => {
  await hf.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Changes one byte of the newest entries of a branch, as a bad disk does. */
async function damage(branch: string, entries: number): Promise<void> {
  await hf.close()
  const db = openSqlite(join(folder, 'store.db'))
  const rows = db
    .prepare(
      'SELECT e.id AS id, e.body AS body FROM entries e JOIN logs l ON l.id = e.log WHERE l.branch = ? ORDER BY e.seq DESC LIMIT ?',
    )
    .all(branch, entries) as { id: number; body: Uint8Array }[]
  expect(rows.length).toBeGreaterThan(0)
  for (const { id, body } of rows) {
    const bytes = Buffer.from(body)
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1
    db.prepare('UPDATE entries SET body = ? WHERE id = ?').run(bytes, id)
  }
  db.close()
  hf = await openHoldfast(url)
}

/** A service that knows what was paid under which key. */
function shop(policy: StepPolicy) {
  const paid = new Map<string, number>()
  const asked: string[] = []
  const program = flow({ name: 'shop', version: '1.0.0' }, (ctx, amount: number) =>
    ctx.step(
      'pay',
      {
        input: amount,
        ...policy,
        ...(policy.effect === 'reconcilable'
          ? {
              reconcile: (key) => {
                asked.push(key)
                const found = paid.get(key)
                return found === undefined ? { outcome: 'not-executed' } : { outcome: 'executed', result: found }
              },
            }
          : {}),
      },
      ({ idempotencyKey }) => {
        paid.set(idempotencyKey, amount)
        return amount
      },
    ),
  )
  return { program, paid, asked }
}

const POLICIES: readonly StepPolicy[] = [{ effect: 'once' }, { effect: 'reconcilable' }, { effect: 'idempotent' }]

describe('a fork from before the damage', () => {
  const program = flow({ name: 'shop', version: '1.0.0' }, async (ctx) => {
    await ctx.step('look', { effect: 'read' }, () => 1)
    await ctx.step('pay', { effect: 'once' }, () => 'paid')
    return ctx.step('late', { effect: 'read' }, () => 2)
  })

  it.each([
    { what: 'all that followed', after: 'look', begunThere: 'unknown' },
    { what: 'what followed the effect', after: 'pay', begunThere: true },
  ])('asks for permission where $what can’t be read, and goes on with it', async ({ after, begunThere }) => {
    await hf.thread(program, 't').run({ input: 1 })
    const history = await hf.thread(program, 't').history()
    const ended = (name: string) =>
      history.find(({ steps }) => steps?.some((step) => step.name === name && step.status === 'completed'))
    await damage('main', (history[0]?.seq ?? 0) - (ended(after)?.seq ?? 0))
    const fork = await hf
      .thread(program, 't')
      .at(ended('look')?.id ?? '')
      .fork()
    const outcome = await fork.run()
    expect(outcome).toMatchObject({ pauses: [{ kind: 'permission', question: { step: 'pay', begunThere } }] })
    if (outcome.status !== 'paused') throw new Error(outcome.status)
    await fork.answer(outcome.pauses[0].id, { allowed: true })
    expect(await fork.run()).toMatchObject({ status: 'completed', output: 2 })
  })
})

describe.each(POLICIES)('an effect of kind $effect that was begun where a branch came from', (policy) => {
  it('is not repeated without permission by who goes on from the last good checkpoint', async () => {
    const { program, paid, asked } = shop(policy)
    await hf.thread(program, 't').run({ input: 40 })
    expect(paid.size).toBe(1)
    // The entries that say how it ended are the damaged ones: what is left says at most that it began.
    await damage('main', 2)
    const outcome = await hf.thread(program, 't').run({ onCorrupt: 'lastGood' })
    expect(outcome).toMatchObject({ status: 'paused', pauses: [{ kind: 'permission', question: { step: 'pay' } }] })
    expect([paid.size, asked]).toEqual([1, []])
  })

  it('is not repeated without permission by who starts anew beside the damage', async () => {
    const { program, paid, asked } = shop(policy)
    await hf.thread(program, 't').run({ input: 40 })
    await damage('main', 2)
    const thread = hf.thread(program, 't')
    const outcome = await thread.run({ input: 40, onCorrupt: 'restart' })
    expect(outcome).toMatchObject({
      status: 'paused',
      restarted: true,
      pauses: [
        { kind: 'permission', question: { step: 'pay', restartedBeside: { branch: 'main' }, begunThere: 'unknown' } },
      ],
    })
    // Nor does any later run there, nor one that keeps no record.
    expect(await thread.run({ onCorrupt: 'restart' })).toMatchObject({ status: 'paused' })
    expect([paid.size, asked]).toEqual([1, []])
    if (outcome.status !== 'paused') throw new Error(outcome.status)
    const anew = hf.thread(program, 't', { branch: outcome.branch })
    await anew.answer(outcome.pauses[0].id, { allowed: true })
    expect(await thread.run({ onCorrupt: 'restart' })).toMatchObject({ status: 'completed' })
    expect(paid.size).toBe(2)
    expect(await thread.run({ input: 41, onCorrupt: 'restart' })).toMatchObject({ status: 'paused' })
    expect(paid.size).toBe(2)
  })

  it('is not repeated by a run beside the damage that keeps no record', async () => {
    const { program, paid } = shop(policy)
    await hf.thread(program, 't').run({ input: 40 })
    await damage('main', 2)
    const running = hf.thread(program, 't').run({ input: 40, onCorrupt: 'restart', frequency: 'none' })
    expect(
      await running.then(
        ({ status }) => status,
        ({ code }) => code,
      ),
    ).not.toBe('completed')
    expect(paid.size).toBe(1)
  })

  it('is not repeated without permission on a branch that was made below the runtime', async () => {
    const { program, paid, asked } = shop(policy)
    const thread = hf.thread(program, 't')
    await thread.run({ input: 40 })
    // All before its result was recorded, and before the run was over.
    for (const [i, { id }] of (await thread.history()).slice(2).entries()) {
      await hf.fork('t', { branch: `b${i}`, at: id })
      const fork = hf.thread(program, 't', { branch: `b${i}` })
      const outcome = await fork.run()
      expect(outcome).toMatchObject({ status: 'paused', pauses: [{ kind: 'permission' }] })
      expect([paid.size, asked]).toEqual([1, []])
      if (outcome.status !== 'paused') throw new Error(outcome.status)
      await fork.answer(outcome.pauses[0].id, { allowed: false, result: 1 })
      expect(await fork.run()).toMatchObject({ status: 'completed', output: 1 })
    }
  })
})

describe('a branch that was made below the runtime', () => {
  const chat = graph({ name: 'chat', version: '1.0.0', state: { said: append<string>() } })
    .node('reply', ({ said }) => ({ said: `reply ${said.length}` }))
    .edge(START, 'reply')
    .edge('reply', END)

  it('knows the inputs that were taken where it came from, and how their runs ended', async () => {
    const thread = hf.thread(chat, 't')
    for (const word of ['one', 'two']) await thread.run({ input: { said: word }, key: word })
    const [newest] = await thread.history()
    await hf.fork('t', { branch: 'b', at: newest.id })
    const fork = hf.thread(chat, 't', { branch: 'b' })
    const again = await fork.run({ input: { said: 'one' }, key: 'one' })
    expect(again).toMatchObject({ status: 'completed', state: { said: ['one', 'reply 1'] } })
    expect(await fork.run({ input: { said: 'three' }, key: 'three' })).toMatchObject({ state: { said: { length: 6 } } })
    expect(await fork.run({ input: { said: 'one' }, key: 'one' })).toMatchObject({ state: { said: { length: 2 } } })
  })

  it.each([
    ['lastGood', { restarted: false, message: expect.stringMatching(/a little earlier/) }],
    ['restart', { restarted: true, state: { said: { length: 2 } } }],
  ] as const)('is left with %s when it is damaged itself, and that is said each time', async (onCorrupt, said) => {
    await hf.thread(chat, 't').run({ input: { said: 'one' } })
    const branches: string[] = ['main']
    for (let round = 0; round < 3; round++) {
      await damage(branches.at(-1) ?? '', 1)
      const outcome = await hf.thread(chat, 't').run({ input: { said: `round ${round}` }, onCorrupt })
      expect(outcome).toMatchObject({ status: 'completed', ...said })
      expect(branches).not.toContain(outcome.branch)
      branches.push(outcome.branch)
      expect((await hf.thread(chat, 't').run({ onCorrupt })).message).toBeUndefined()
    }
  })

  it('is begun anew apart from others of its thread where nothing verifies', async () => {
    const main = hf.thread(chat, 't')
    await main.run({ input: { said: 'one' } })
    const [newest] = await main.history()
    await main.at(newest.id).fork({ name: 'b' })
    await damage('main', 100)
    await damage('b', 100)
    const run = (branch: string) =>
      hf.thread(chat, 't', { branch }).run({ input: { said: branch }, onCorrupt: 'restart' })
    const outcomes = [await run('main'), await run('b')]
    expect(outcomes).toMatchObject([
      { restarted: true, state: { said: ['main', 'reply 1'] } },
      { restarted: true, state: { said: ['b', 'reply 1'] } },
    ])
    // Also when that is lost in turn.
    await damage(outcomes[0].branch, 100)
    expect(await run('main')).toMatchObject({ restarted: true, state: { said: ['main', 'reply 1'] } })
  })

  it('has keys of its own, whose age does not count from where it came from', async () => {
    const clock = virtualClock()
    const driver = await openDriver('memory:', { clock })
    const first = faultyDriver(driver)
    let paid = 0
    const pay = flow({ name: 'pays', version: '1.0.0' }, (ctx) =>
      ctx.step('pay', { effect: 'idempotent' }, () => {
        if (++paid === 1) first.crashAt(1, 'before')
        return paid
      }),
    )
    const dying = new Holdfast(new LogStore(first, { clock })).thread(pay, 't')
    await expect(dying.run({ input: {} })).rejects.toMatchObject({ code: 'closed' })
    await clock.advance(3 * 24 * 60 * 60 * 1000)
    const main = new Holdfast(new LogStore(driver, { clock })).thread(pay, 't')
    const [newest] = await main.history()
    const fork = await main.at(newest.id).fork({ effects: 'allow' })
    expect(await fork.run()).toMatchObject({ status: 'completed', output: 2 })
    expect(await main.run()).toMatchObject({ status: 'paused', pauses: [{ kind: 'unknown-effect' }] })
  })
})
