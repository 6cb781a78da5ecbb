import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { append, END, flow, graph, type Holdfast, openHoldfast, START } from 'holdfast'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'

// The engine that the store uses: a second one in a process drops the locks of the first when it closes the file.
const openSqlite = await loadSqlite()

let folder: string
let hf: Holdfast | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-lost-'))
})

afterEach(async () => {
  await hf?.close()
  rmSync(folder, { recursive: true, force: true })
})

const chat = graph({ name: 'chat', version: '1.0.0', state: { said: append<string>() } })
  .node('reply', ({ said }) => ({ said: `reply ${said.length}` }))
  .edge(START, 'reply')
  .edge('reply', END)

const ask = flow({ name: 'ask', version: '1.0.0' }, (ctx) => ctx.pause('?'))

interface Place {
  readonly url: string
  /** Changes one byte inside of the newest entry's body, as a bad disk does. */
  damage(): void
}

function sqlite(): Place {
  const file = join(folder, 'store.db')
  return {
    url: `sqlite:${file}`,
    damage() {
      const db = openSqlite(file)
      const row = db.prepare('SELECT id, body FROM entries ORDER BY id DESC LIMIT 1').get() as Record<string, never>
      const body = Buffer.from(row['body'] as Uint8Array)
      body[body.length >> 1] = (body[body.length >> 1] ?? 0) ^ 1
      db.prepare('UPDATE entries SET body = ? WHERE id = ?').run(body, row['id'] as number)
      db.close()
    },
  }
}

function files(): Place {
  return {
    url: `file:${join(folder, 'store')}`,
    damage() {
      const records = (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.endsWith('.rec'))
      const path = join(folder, records.sort().at(-1) as string)
      const bytes = readFileSync(path)
      bytes[bytes.length - 5] = (bytes[bytes.length - 5] ?? 0) ^ 1
      writeFileSync(path, bytes)
    },
  }
}

describe.each([
  ['SQLite', sqlite],
  ['file', files],
] as const)('a thread on %s whose newest state does not verify', (_, place) => {
  /** Three turns of a conversation, the last of which is damaged. */
  async function damaged() {
    const { url, damage } = place()
    hf = await openHoldfast(url)
    for (const word of ['one', 'two', 'three']) await hf.thread(chat, 't').run({ input: { said: word } })
    const history = await hf.inspect('t').history()
    await hf.close()
    damage()
    hf = await openHoldfast(url)
    const branches = async () => (await hf?.threads())?.threads.map(({ branch, entries }) => [branch, entries])
    // The state before the damage is that of the newest input, which had been recorded.
    return { thread: hf.thread(chat, 't'), lastGood: history[1].id, branches, before: await branches() }
  }

  it('fails by default, names the newest checkpoint that verifies, and writes nothing', async () => {
    const { thread, lastGood, branches, before } = await damaged()
    for (const options of [{ input: { said: 'four' } }, { input: { said: 'four' }, onCorrupt: 'fail' as const }, {}]) {
      await expect(thread.run(options)).rejects.toMatchObject({
        code: 'corrupt',
        data: { lastGood },
        remedy: expect.stringContaining(lastGood),
      })
    }
    expect(await branches()).toEqual(before)
  })

  it('goes on from the last good checkpoint, if told so, says it once, and leaves the damage to be looked at', async () => {
    const { thread, lastGood } = await damaged()
    const first = await thread.run({ onCorrupt: 'lastGood' })
    expect(first).toMatchObject({
      status: 'completed',
      restarted: false,
      message: expect.stringMatching(/a little earlier/),
      state: { said: ['one', 'reply 1', 'two', 'reply 3', 'three', 'reply 5'] },
    })
    expect(first.branch).toMatch(/^recovered-/)
    const second = await thread.run({ input: { said: 'four' }, onCorrupt: 'lastGood' })
    expect(second).toMatchObject({ branch: first.branch, restarted: false, state: { said: { length: 8 } } })
    expect(second.message).toBeUndefined()
    await expect(hf?.log('t')).rejects.toMatchObject({ code: 'corrupt', data: { lastGood } })
    // The branch is a thread like any other, for those who know it.
    expect(await hf?.thread(chat, 't', { branch: first.branch }).run()).toMatchObject({ status: 'completed' })
  })

  it('starts from nothing, if told so, says it once, and goes on there', async () => {
    const { thread } = await damaged()
    const first = await thread.run({ input: { said: 'four' }, onCorrupt: 'restart' })
    expect(first).toMatchObject({
      status: 'completed',
      restarted: true,
      message: expect.stringMatching(/start from the beginning/),
      state: { said: ['four', 'reply 1'] },
    })
    const second = await thread.run({ input: { said: 'five' }, onCorrupt: 'restart' })
    expect(second).toMatchObject({ branch: first.branch, restarted: false, state: { said: { length: 4 } } })
    expect(second.message).toBeUndefined()
  })

  it('is looked past by the list of questions, which names it', async () => {
    const { url, damage } = place()
    hf = await openHoldfast(url)
    await hf.thread(ask, 'broken').run({ input: 1 })
    await hf.close()
    damage()
    hf = await openHoldfast(url)
    await hf.thread(ask, 'whole').run({ input: 1 })
    const { pauses, unreadable } = await hf.pauses()
    expect(pauses).toMatchObject([{ thread: 'whole' }])
    expect(unreadable).toMatchObject([{ thread: 'broken', branch: 'main', error: { code: 'corrupt' } }])
  })
})

describe('a thread that is expected', () => {
  beforeEach(async () => {
    hf = await openHoldfast('memory:')
  })

  it('is just run when it is there, and when nothing was expected', async () => {
    const thread = (hf as Holdfast).thread(chat, 't')
    const first = await thread.run({ input: { said: 'one' } })
    expect([first.restarted, first.message]).toEqual([false, undefined])
    const again = await thread.run({ input: { said: 'two' }, expect: 'existing' })
    expect([again.restarted, again.message]).toEqual([false, undefined])
  })

  it('begins anew when it was erased, and says so to the end user without the reason', async () => {
    const thread = (hf as Holdfast).thread(chat, 't')
    await thread.run({ input: { said: 'one' } })
    await hf?.erase('t', { reason: 'fraud case 17' })
    const outcome = await thread.run({ input: { said: 'two' }, expect: 'existing' })
    expect(outcome).toMatchObject({ status: 'completed', restarted: true, state: { said: ['two', 'reply 1'] } })
    expect(outcome.message).toMatch(/no longer available.*removed on \d{4}-\d\d-\d\d\.$/)
    expect(outcome.message).not.toContain('fraud')
    // Now it is there again.
    expect((await thread.run({ input: { said: 'three' }, expect: 'existing' })).restarted).toBe(false)
  })

  it('begins anew when nothing is known of it at all', async () => {
    const outcome = await (hf as Holdfast).thread(chat, 't').run({ input: { said: 'one' }, expect: 'existing' })
    expect(outcome).toMatchObject({ restarted: true, message: expect.stringMatching(/no longer available/) })
    expect(outcome.message).not.toContain('removed on')
  })

  it('is reported paused, failed or completed alike', async () => {
    const outcome = await (hf as Holdfast).thread(ask, 'q').run({ input: 1, expect: 'existing' })
    expect(outcome).toMatchObject({ status: 'paused', restarted: true, message: expect.any(String) })
    await expect((hf as Holdfast).thread(ask, 'none').run({ expect: 'existing' })).rejects.toMatchObject({
      code: 'not-found',
    })
  })
})
