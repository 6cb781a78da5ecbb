import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openHoldfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { backendsBehindDoors } from '../support/backends.js'
import { holdfast } from './command.js'
import { counter, returns } from './programs.mjs'
import { onTerminal, type TerminalOptions } from './terminal.js'

const backends = await backendsBehindDoors()
const [UP, DOWN, ENTER, CTRL_C] = ['\u001b[A', '\u001b[B', '\r', '\u0003']
const long = { customer: 'a-customer-whose-name-is-very-long-indeed', conversation: '日本語の会話-🎉', region: 'eu' }

async function seed(store: string): Promise<void> {
  await using hf = await openHoldfast(store)
  await hf.thread(counter, 'c-1').run({ input: {} })
  await hf.thread(returns, long).run({ input: { orderId: 'esc\u001b[2Jape\u009b31m', price: 500 } })
  const asking = ['yes', 'no', 'answer', 'leave', 'both'].map((id) => hf.thread(returns, id))
  await Promise.all(asking.map((thread) => thread.run({ input: { orderId: 'D', price: 900 } })))
}

describe.each(backends)('on a terminal, with $name', ({ missing, fresh, cleanup }) => {
  let store: string
  const run = (args: readonly string[], options?: TerminalOptions) => onTerminal(['--store', store, ...args], options)

  beforeAll(async () => {
    if (missing) return
    store = await fresh()
    await seed(store)
  })
  afterAll(cleanup)

  it.skipIf(missing)('prints tables in colour that fit', async () => {
    const [wide, narrow, plain] = await Promise.all([
      run(['threads'], { columns: 160 }),
      run(['threads'], { columns: 80 }),
      run(['threads'], { env: { NO_COLOR: '1' } }),
    ])
    expect(wide.raw).toContain('\u001b[32mcompleted\u001b[39m')
    expect(wide.text).toMatch(/^THREAD +STATUS +ENTRIES +UPDATED +PROGRAM\n/)
    expect(wide.text).toMatch(/^c-1 +completed +\d+ +\d+(ms|s|m) ago +counter 1\.0\.0$/m)
    expect(narrow.text).toMatch(/^THREAD +STATUS +UPDATED/)
    expect(narrow.text).toContain('conversation=日本語の会話-🎉,customer=')
    for (const line of narrow.text.split('\n')) expect([...line].length).toBeLessThanOrEqual(80)
    expect(plain.raw).not.toContain('\u001b[3')
  })

  it.skipIf(missing)('approves, rejects and answers after asking', async () => {
    const [yes, no, answer] = await Promise.all([
      run(['approve', 'yes'], { keys: [['Approve this?', ENTER]] }),
      run(['reject', 'no', '--reason', 'too dear'], { keys: [['Reject this?', 'y']] }),
      run(['answer', 'answer'], { keys: [['The answer, as JSON or as text', `{"approved":true}${ENTER}`]] }),
    ])
    expect(yes).toMatchObject({ code: 0, text: expect.stringMatching(/"ask": "Open a return\?"[^]*\napproved p-/) })
    expect(no).toMatchObject({ code: 0, text: expect.stringMatching(/\nrejected p-/) })
    expect(answer).toMatchObject({ code: 0, text: expect.stringMatching(/\nanswered p-/) })
    await using hf = await openHoldfast(store)
    for (const id of ['yes', 'no', 'answer']) expect(await hf.inspect(id).pauses()).toEqual([])
  })
})

// What does not reach the store is the same on all of them.
describe('on a terminal', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-terminal-'))
  const store = `sqlite:${join(folder, 'store.db')}`
  const run = (args: readonly string[], options?: TerminalOptions) => onTerminal(['--store', store, ...args], options)

  beforeAll(() => seed(store))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('shows errors in colour, and what is stored without anything that it would obey', async () => {
    const [error, shown] = await Promise.all([run(['show', 'zzz']), run(['pauses'], { columns: 200 })])
    expect(error).toMatchObject({
      code: 3,
      raw: expect.stringContaining('\u001b[31mholdfast:\u001b[39m No thread zzz'),
    })
    expect(shown.text).toContain(String.raw`esc\u001b[2Jape\u009b31m`)
    for (const obeyed of ['\u001b[2J', '\u009b']) expect(shown.raw).not.toContain(obeyed)
  })

  it('does nothing when it is left, or told no', async () => {
    const [left, told] = await Promise.all([
      run(['approve', 'leave'], { keys: [['Approve this?', CTRL_C]] }),
      run(['approve', 'leave'], { keys: [['Approve this?', `n${ENTER}`]] }),
    ])
    for (const ended of [left, told]) {
      expect(ended).toMatchObject({ code: 130, text: expect.stringContaining('Nothing was done.') })
    }
    await using hf = await openHoldfast(store)
    expect(await hf.inspect('leave').pauses()).toHaveLength(1)
  })

  it('shows all of a long question, page by page, before it can be approved', async () => {
    const file = join(folder, 'padded.mjs')
    writeFileSync(
      file,
      `import { flow } from ${JSON.stringify(import.meta.resolve('holdfast'))}
      export const padded = flow({ name: 'padded', version: '1.0.0' }, (ctx) =>
        ctx.pause({ memo: 'Lunch. '.repeat(800), amount: 1000000, to: 'mallory' }))`,
    )
    const padded = `sqlite:${join(folder, 'padded.db')}`
    const asked = await holdfast(['--store', padded, 'run', file, '--thread', 't', '--input', '{}'])
    expect(asked.out).toMatch(/Lunch.*… \(cut: \d+ characters in all\)\n$/)
    const args = ['--store', padded, 'approve', 't']
    // What is not read to its end is not approved.
    const left = await onTerminal(args, { keys: [['Page 1 of 3. Show the next?', 'n']] })
    expect(left).toMatchObject({ code: 130, text: expect.stringContaining('was not read to its end') })
    expect(left.text).not.toContain('mallory')
    const read = await onTerminal(args, {
      keys: [
        ['Page 1 of 3. Show the next?', 'y'],
        ['Page 2 of 3. Show the next?', 'y'],
        [/"amount": 1000000,\s+"to": "mallory"[^]*Approve this\?/, 'y'],
      ],
    })
    expect(read, read.text).toMatchObject({ code: 0, text: expect.stringMatching(/\napproved p-/) })
  })

  it('shows in prompts what nobody would see', async () => {
    const file = join(folder, 'hidden.mjs')
    writeFileSync(
      file,
      `import { flow } from ${JSON.stringify(import.meta.resolve('holdfast'))}
      const tags = [...'pay mallory'].map((c) => String.fromCodePoint(0xe0000 + c.codePointAt(0))).join('')
      export const hidden = flow({ name: 'hidden', version: '1.0.0' }, async (ctx) =>
        Promise.all(['a', 'b'].map((key) => ctx.pause('Pay \\u202eecila\\u200b' + key + tags, { key }))))`,
    )
    const hidden = `sqlite:${join(folder, 'hidden.db')}`
    await holdfast(['--store', hidden, 'run', file, '--thread', 't', '--input', '{}'])
    const keys = [
      ['Which question?', ENTER],
      ['Approve this?', 'n'],
    ] as const
    const { raw, text } = await onTerminal(['--store', hidden, 'approve', 't'], { keys, columns: 200 })
    expect(text).toContain(String.raw`Pay \u202eecila\u200ba\udb40\udc70`)
    expect(raw).not.toMatch(/[\u200b\u202e\u{e0000}-\u{e007f}]/u)
  })

  it('draws a bar while it verifies, and takes it away', async () => {
    const { code, text, raw } = await run(['verify', '--all'])
    expect(code).toBe(0)
    expect(text).toMatch(/verifying █+░* \d\/7/)
    expect(raw).toContain('\r\u001b[2K\u001b[32mok\u001b[39m 7 branches')
  })

  it('stops a run at Ctrl-C and says how to go on', async () => {
    const file = join(folder, 'slow.mjs')
    writeFileSync(
      file,
      `import { flow } from ${JSON.stringify(import.meta.resolve('holdfast'))}
      export default flow({ name: 'slow', version: '1.0.0' }, async (ctx) => {
        await ctx.step('first', () => 1)
        await ctx.step('second', () => 2)
        await ctx.step('third', () => new Promise((done) => setTimeout(done, 60_000)))
      })`,
    )
    const args = ['run', file, '--thread', 's-1', '--input', '{}', '--busy', 'reject']
    const { code, text } = await run(args, { keys: [['step    second completed', CTRL_C]] })
    expect(text).toContain(`Interrupted. Continue with: holdfast run ${file} --thread s-1`)
    expect(code).toBe(130)
  })

  it('shows how far resuming all has come, and at Ctrl-C what was done and what is left', async () => {
    const file = join(folder, 'held.mjs')
    writeFileSync(
      file,
      `import { flow } from ${JSON.stringify(import.meta.resolve('holdfast'))}
      export const held = flow({ name: 'held', version: '1.0.0' }, async (ctx, input) => {
        if (input === 'held') await ctx.step('hold', () => new Promise(() => setInterval(() => {}, 60_000)))
        return 'done'
      })`,
    )
    const { held } = await import(file)
    const where = `sqlite:${join(folder, 'held.db')}`
    {
      await using hf = await openHoldfast(where)
      for (const id of ['never', 'later', 'soon']) {
        await hf.thread(held, id).enqueue(id === 'soon' ? 'quick' : 'held')
        // Each at a time of its own: what is told apart by the time of its change comes in no order within a millisecond.
        for (const from = Date.now(); Date.now() === from; ) await new Promise((resolve) => setTimeout(resolve, 1))
      }
    }
    // The newest change comes first; the one that never begins waits for a place.
    const args = ['resume', file, '--all', '--concurrency', '1', '--store', where]
    const { code, text, raw } = await onTerminal(args, { keys: [[/resuming █+░+ 1\/3/, CTRL_C]] })
    expect(raw.split('resuming')[1]).toContain('\r\u001b[2K')
    expect(text).toMatch(/^soon +main +completed$/m)
    expect(text).toContain('Interrupted: 2 of 3 threads are left. Run the same command again to continue with them.')
    expect(text).not.toContain('error')
    expect(code).toBe(130)
    const left = await holdfast([...args, '--json'], { signal: AbortSignal.abort() })
    expect(left).toMatchObject({ code: 130, out: '{"resumed":[],"left":3}\n' })
  })

  it('follows a thread until Ctrl-C, and says of one that does not rest that it was left', async () => {
    const { code, text } = await run(['tail', 'c-1', '--follow'], { keys: [[/run +completed/, CTRL_C]] })
    expect(code).toBe(0)
    expect(text).toMatch(/step +1:two completed/)
    {
      await using hf = await openHoldfast(store)
      await hf.thread(returns, 'begun').run({ input: { orderId: 'A', price: 500 } })
      await hf.inspect('begun').answer((await hf.inspect('begun').pauses())[0]?.id as string, { approved: true })
    }
    const left = await run(['tail', 'begun'], { keys: [[/answer +p-/, CTRL_C]] })
    expect(left.code).toBe(130)
  })

  it('lets a person choose among several questions', async () => {
    const file = join(folder, 'two.mjs')
    writeFileSync(
      file,
      `import { flow } from ${JSON.stringify(import.meta.resolve('holdfast'))}
      export const two = flow({ name: 'two', version: '1.0.0' }, async (ctx) =>
        Promise.all([ctx.pause('Paint it red?', { key: 'a' }), ctx.pause('Paint it blue?', { key: 'b' })]))`,
    )
    const two = `sqlite:${join(folder, 'two.db')}`
    const asked = await holdfast(['--store', two, 'run', file, '--thread', 't', '--input', '{}'])
    expect(asked.code).toBe(7)
    const keys = [
      ['Which question?', `${DOWN}${UP}${DOWN}${ENTER}`],
      ['Approve this?', ENTER],
    ] as const
    const chosen = await onTerminal(['--store', two, 'approve', 't'], { keys })
    expect(chosen.text).toMatch(/Paint it blue\?\n[^]*approved p-/)
    await using hf = await openHoldfast(two)
    expect((await hf.inspect('t').pauses()).map(({ question }) => question)).toEqual(['Paint it red?'])
  })

  it('asks for a folder where this one is in use, and for nothing where it is empty', async () => {
    const used = join(folder, 'used')
    const [first, again] = [join(used, 'package.json'), join(used, 'my-agent', 'package.json')]
    expect(await onTerminal(['init', used, '--no-install'])).toMatchObject({ code: 0 })
    expect(existsSync(first)).toBe(true)
    const asked = await onTerminal(['init', '--no-install'], {
      cwd: used,
      keys: [['Which folder', `my-agent${ENTER}`]],
    })
    expect(asked, asked.text).toMatchObject({ code: 0, text: expect.stringContaining('cd my-agent && npm install') })
    expect(existsSync(again)).toBe(true)
  })

  it('writes help that fits, in groups', async () => {
    const { text } = await onTerminal(['--help'], { columns: 80 })
    for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80)
    expect(text).toMatch(/\nLooking at threads:\n  threads /)
  })
})
