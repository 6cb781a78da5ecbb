import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { flow, openHoldfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { holdfast, parsed } from './command.js'

const named = (name: string) => ({ name, version: '1.0.0' })

const asks = flow<string, unknown>(named('asks'), async (ctx, what) => ctx.pause({ what }))
const team = flow<string, unknown>(named('team'), async (ctx, what) => ctx.run(asks, 'member', what))
const check = flow<string, string>(named('check'), async (_, what) => what)
const order = flow<string, unknown>(named('order'), async (ctx, what) =>
  ctx.run(team, 'team', await ctx.run(check, 'check', what)),
)

describe('threads that others began, on the command line', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-family-'))
  const store = `sqlite:${join(folder, 'family.db')}`
  const run = (...args: string[]) => holdfast(['--store', store, ...args])
  const nameless = (text: string) => text.replaceAll(/~[\w-]{10}/g, '~…')

  beforeAll(async () => {
    const hf = await openHoldfast(store)
    expect(await hf.thread(order, 'o-1').run({ input: 'sure?' })).toMatchObject({ status: 'paused' })
    await hf.thread(asks, 'alone').run({ input: 'alone' })
    await hf.close()
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  it('are listed below the thread that began them', async () => {
    const { out } = await run('threads', '--tree', '--program', 'order')
    const rows = nameless(out)
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t'))
    expect(rows.map(([thread, , status]) => `${thread} ${status}`)).toEqual([
      'thread status',
      'o-1 waiting',
      '├─ o-1/check~… completed',
      '└─ o-1/team~… waiting',
      '   └─ o-1/team~…/member~… waiting_human',
    ])
    const { threads } = parsed(await run('threads', '--tree', '--json'))
    expect(threads.map(({ id }: { id: string }) => id).toSorted()).toEqual(['alone', 'o-1'])
    const top = threads.find(({ id }: { id: string }) => id === 'o-1')
    expect(top).toMatchObject({ id: 'o-1', children: [{ parent: 'o-1', children: [] }, { children: [{}] }] })
  })

  it('are found by the thread that began them', async () => {
    const { threads } = parsed(await run('threads', '--parent', 'o-1', '--json'))
    const ids = threads.map(({ id }: { id: string }) => nameless(id)).toSorted()
    expect(ids).toEqual(['o-1/check~…', 'o-1/team~…'])
  })

  it('are shown with it, and it with them', async () => {
    const { out } = await run('show', 'o-1')
    expect(nameless(out)).toContain('child[team]: thread o-1/team~… (team)')
    expect(nameless(out)).toContain('└─ o-1/team~…  waiting\n   └─ o-1/team~…/member~…  waiting_human\n')
    const [child] = parsed(await run('threads', '--parent', 'o-1', '--json')).threads
    expect((await run('show', child.id)).out).toMatch(/^parent:\s+o-1$/m)
    expect(parsed(await run('show', 'o-1', '--json')).children).toHaveLength(2)
  })
})
