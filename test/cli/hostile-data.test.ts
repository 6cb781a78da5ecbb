import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type flow, openHoldfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { holdfast } from './command.js'

// Clears the screen, names the window, colours, turns the reading direction round, and begins lines of its own.
// What is hidden in it: zero-width characters, tags, a filler, variation selectors and a lone surrogate.
const OBEYED =
  '\u001b[2J\u001b]0;mine\u0007\u009b31m\u007f\b\u202egnp\u2066\r\nholdfast: all is well\u2028\u200b\u2060\u{e0041}\u3164\u{e0100}\ufe0f\u00ad'
// Ids may hold no control characters; what turns the direction round is none.
const TURNED = 'u\u202eadmin'
const SEEN = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

const folder = mkdtempSync(join(tmpdir(), 'holdfast-hostile-'))
const store = `sqlite:${join(folder, 'agents.db')}`
const file = join(folder, 'programs.mjs')

writeFileSync(
  file,
  `import { flow } from ${JSON.stringify(import.meta.resolve('holdfast'))}
  export const evil = flow({ name: 'evil', version: '1.0.0' }, async (ctx, { text, how }) => {
    await ctx.step('look u\u202eadmin', () => ({ said: text, [text]: text }))
    if (how === 'fail') await ctx.step('fail', { retry: { attempts: 1 } }, () => Promise.reject(new Error(text)))
    return how === 'ask' ? ctx.pause({ ask: text, [text]: 1 }) : text
  })`,
)

beforeAll(async () => {
  const { evil } = (await import(file)) as { evil: ReturnType<typeof flow> }
  await using hf = await openHoldfast(store)
  const run = (id: string, how: string) => hf.thread(evil, id).run({ input: { text: OBEYED, how } })
  await Promise.all([run('done', ''), run('fail', 'fail'), run('ask', 'ask'), run('again', 'ask'), run(TURNED, 'ask')])
  const again = hf.inspect('again')
  const [question] = await again.pauses()
  await again.answer(question?.id as string, OBEYED, { by: 'ada' })
  // As a version that took any name, or someone who writes to the store, left it.
  await (await hf.log('again')).update(() => [
    { kind: 'answer', data: { events: [{ type: 'answer', pause: question?.id, by: OBEYED }] } },
  ])
  await hf.thread(evil, 'again').run()
  const noted = await hf.log('noted')
  await noted.update(() => [{ kind: 'input', index: { metadata: { note: OBEYED } } }])
  const log = await hf.log('done')
  await log.tag(TURNED)
  await hf.fork('done', { at: log.fold.seq, branch: TURNED })
  const items = hf.store.scope({ user: TURNED }).collection(TURNED)
  await items.put(TURNED, { text: OBEYED, [OBEYED]: 1 })
  await items.put('text', OBEYED)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const item = [`user=${TURNED}`, TURNED]
const LINES: readonly (readonly string[])[] = [
  ['threads'],
  ['threads', '--tag', 'u-admin'],
  ['show', 'fail'],
  ['show', 'noted'],
  ['show', TURNED],
  ['show', 'u-admin'],
  ['show', 'done', '--branch', 'u-admin'],
  ['show', OBEYED],
  ['history', 'done'],
  ['state', 'ask', '--at', OBEYED],
  ['diff', TURNED, 'first', 'head'],
  ['tail', 'fail'],
  ['tail', 'again', '--lines', '50'],
  ['verify', TURNED],
  ['pauses'],
  ['answer', 'ask', OBEYED],
  ['reject', TURNED, 'p-none'],
  ['run', file, '--thread', 'new', '--input', JSON.stringify({ text: OBEYED, how: 'fail' }), '--events'],
  ['run', file, '--thread', 'newer', '--input', JSON.stringify({ text: `${OBEYED}` })],
  ['run', OBEYED],
  ['resume', file, TURNED],
  ['resume', file, '--all', '--status', 'failed'],
  ['replay', file, 'fail'],
  ['tag', 'ask', OBEYED],
  ['untag', 'done', 'u-admin'],
  ['store', 'list'],
  ['store', 'get', ...item, 'text'],
  ['store', 'get', ...item, 'u-admin'],
  ['store', 'search', ...item],
  [OBEYED],
  ['threads', '--store', `sqlite:${OBEYED}`],
]

// All JSON is written by one function: a few of its users will do.
const AS_JSON = [
  ['show', TURNED],
  ['tail', 'fail'],
  ['show', 'u-admin'],
].map((line) => [...line, '--json'])

describe('what is stored, or typed, does not drive the terminal', () => {
  it.each([...LINES, ...AS_JSON].map((line) => [JSON.stringify(line), line] as const))('%s', async (_, line) => {
    const { out, err } = await holdfast(['--store', store, ...line], { columns: 100, env: { NO_COLOR: '1' } })
    expect(out + err).not.toBe('')
    // A bar of ours may have been drawn, and taken away.
    expect((out + err).replaceAll('\r\u001b[2K', '')).not.toMatch(SEEN)
    // A line of its own that begins as ours do. What a program returned is all of standard output.
    expect(line.includes('newer') ? err : out + err).not.toMatch(/^holdfast: all is well/m)
  })
})
