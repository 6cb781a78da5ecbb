import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHoldfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { holdfast, parsed } from './command.js'
import { returns } from './programs.mjs'

describe('open questions on the command line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-questions-'))
  const store = `sqlite:${join(folder, 'agents.db')}`
  const run = (args: readonly string[], columns?: number) =>
    holdfast(['--store', store, ...args], columns === undefined ? {} : { columns, env: { NO_COLOR: '1' } })

  beforeAll(async () => {
    await using hf = await openHoldfast(store)
    for (const id of ['order-1', 'order-2', 'forked']) {
      await hf.thread(returns, id).run({ input: { orderId: 'A', price: 500 } })
    }
    const forked = hf.inspect('forked')
    await hf.fork('forked', { at: (await hf.log('forked')).fold.seq, branch: 'what-if' })
    await forked.answer((await forked.pauses())[0]?.id as string, { approved: true })
    await hf.thread(returns, 'forked').run()
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('names the branch that asks where the one that was meant does not', async () => {
    expect(await run(['answer', 'forked', 'true'])).toMatchObject({
      code: 3,
      err: 'holdfast: Thread forked (main) has no open questions.\n  There are on other branches: pass --branch what-if.\n',
    })
  })

  it('tells of a question by the id that an answer takes', async () => {
    const [{ id }] = parsed(await run(['pauses', 'order-1', '--json'])).pauses
    expect((await run(['tail', 'order-1'])).out).toContain(`\npause   ${id} question: {"ask":"Open a return?"`)
    expect((await run(['tail', 'forked'])).out).toMatch(/\nanswer {2}p-\w{20}\n/)
  })

  it('keeps ids whole where a terminal is narrow', async () => {
    const { out } = await run(['pauses'], 60)
    expect(out).toMatch(/^THREAD +BRANCH +PAUSE +QUESTION\n/)
    expect(out).toMatch(/^order-1 +main +p-\w{20} +\{"ask".*…$/m)
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(60)
  })

  it('says that there are more than it was asked for', async () => {
    const [plain, json, all] = [
      await run(['pauses', '--limit', '2']),
      parsed(await run(['pauses', '--limit', '2', '--json'])),
      await run(['pauses', '--limit', '3']),
    ]
    expect(plain).toMatchObject({ code: 0, err: 'There are more: pass --limit.\n' })
    expect(json).toMatchObject({ more: true, pauses: [{}, {}] })
    expect(all.err).toBe('')
  })

  it('lets no script answer what nobody was shown', async () => {
    const [{ id }] = parsed(await run(['pauses', 'order-1', '--json'])).pauses
    for (const line of [
      ['approve', 'order-1'],
      ['answer', 'order-1', '{"approved":true}'],
    ]) {
      expect(await run(line)).toMatchObject({
        code: 2,
        err: expect.stringMatching(new RegExp(`Nobody has been shown question ${id}.*\\n.*holdfast show order-1`)),
      })
    }
    await using hf = await openHoldfast(store)
    const padded = { orderId: `${'x'.repeat(3000)} to mallory`, price: 500 }
    await hf.thread(returns, 'padded').run({ input: padded })
    const long = (await hf.inspect('padded').pauses())[0]?.id as string
    expect(await run(['approve', 'padded', long])).toMatchObject({
      code: 2,
      err: expect.stringMatching(/has 3\d\d\d characters, more than lists show[^]*read all of it/),
    })
    expect((await run(['show', 'padded'])).out).toContain('x to mallory')
    expect(await hf.inspect('padded').pauses()).toHaveLength(1)
    expect(await run(['approve', 'padded', long, '--yes'])).toMatchObject({ code: 0 })
    expect(await run(['reject', 'order-1'])).toMatchObject({ code: 0 })
  })
})
