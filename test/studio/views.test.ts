import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { openHoldfast } from 'holdfast'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { chromiumPath } from '../support/browser.js'
import { StudioBrowser } from './studio-setup.js'
import { makePrograms, playDemo } from './world.js'
import { pacedModel } from '../server/paced-model.js'
import { loadSqlite } from '#src/drivers/sqlite/connection/engine.js'

// The engine that the store uses: a second one in a process drops the locks of the first when it closes the file.
const openSqlite = await loadSqlite()

const chromium = await chromiumPath()
const shots = process.env['HOLDFAST_STUDIO_SHOTS']
const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')
const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** Every view, and what is there when it has been read. */
const VIEWS: readonly (readonly [view: string, there: (page: Page) => Promise<unknown>])[] = [
  ['threads', (page) => page.getByText('bf-1', { exact: true }).waitFor()],
  ['thread/bf-1', (page) => page.locator('.view-head .status').waitFor()],
  ['thread/bf-1?tab=tree', (page) => page.locator('.view-head .status').waitFor()],
  ['thread/bf-1?tab=state', (page) => page.getByRole('button', { name: /^messages/ }).waitFor()],
  ['thread/bf-1?tab=changes', (page) => page.locator('.difference').first().waitFor()],
  ['thread/bf-1?tab=checks', (page) => page.getByRole('button', { name: 'Verify the chain' }).waitFor()],
  ['thread/bf-1/compare?one=main&other=main', (page) => page.getByText('No difference.').waitFor()],
  ['inbox', (page) => page.locator('.question-card').waitFor()],
  ['inbox?tab=answered', (page) => page.getByText('Nothing was answered yet').waitFor()],
  ['effects', (page) => page.locator('.question-card').waitFor()],
  ['workers', (page) => page.getByText('Nothing is due.').waitFor()],
  ['store?scope=holdfast%3Dusage&collection=threads', (page) => page.locator('.item-row').first().waitFor()],
  ['retention', (page) => page.getByText('Expired threads').waitFor()],
]

const IN_THE_DARK = ['threads', 'thread/bf-1', 'thread/bf-1?tab=changes', 'inbox']

describe.skipIf(chromium === undefined)('every view of holdfast studio', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-studio-'))
  const file = join(folder, 'agents.db')
  let browser: StudioBrowser
  let studio: ChildProcess
  let ready: { readonly url: string; readonly token: string }
  let before: string

  beforeAll(async () => {
    const hf = await openHoldfast(`sqlite:${file}`)
    await playDemo(hf, 2, 3)
    const { payout, survey, planner } = makePrograms(pacedModel().model)
    await hf.thread(payout, 'payout-1').run({ input: { account: 'A-1', amount: 10 } })
    await hf.thread(survey, 'survey-1').run({ input: { customer: 'Maya' } })
    await hf
      .tenant('acme')
      .thread(survey, 'theirs')
      .run({ input: { customer: 'Omar' } })
    await hf.thread(planner, 'old', { retention: { ttlMs: 1 } }).run({ input: { goal: 'be gone' } })
    await hf.thread(planner, 'broken').run({ input: { goal: 'stay whole' } })
    await hf.thread(planner, 'broken').run({ input: { goal: 'break' } })
    await hf.close()
    damage(file, 'broken')
    before = dump(file)
    studio = spawn(process.execPath, [main, 'studio', '--store', `sqlite:${file}`, '--json'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const [line] = (await once(createInterface({ input: studio.stdout as NodeJS.ReadableStream }), 'line')) as [string]
    ready = JSON.parse(line) as typeof ready
    browser = await StudioBrowser.open(chromium as string)
  })
  afterEach(() => browser.clear())
  afterAll(async () => {
    await browser?.close()
    if (studio) {
      studio.kill('SIGTERM')
      await once(studio, 'exit')
    }
    rmSync(folder, { recursive: true, force: true })
  })
  const open = (view: string, options: Parameters<StudioBrowser['page']>[2] = {}) =>
    browser.page(ready.url, view, options, ready.token)

  it('is accessible as axe judges it, in light and in dark', async () => {
    const found: string[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      // The judge is not the page's: its scripts are let in past the page's policy.
      const page = await open('threads', { colorScheme, bypassCSP: true })
      for (const [view, there] of VIEWS) {
        // Of the dark, one for each kind of thing that has colors.
        if (colorScheme === 'dark' && !IN_THE_DARK.includes(view)) continue
        await page.goto(`${ready.url}/studio/${view}`)
        await there(page)
        await page.evaluate(axe)
        // What differs in the dark is the colors.
        const rules = colorScheme === 'dark' ? '{ runOnly: ["color-contrast"] }' : '{}'
        const { violations } = (await page.evaluate(`axe.run(document, ${rules})`)) as {
          violations: { id: string; nodes: { target: string[]; failureSummary: string }[] }[]
        }
        for (const { id, nodes } of violations) {
          found.push(
            `${colorScheme} ${view}: ${id} ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join('; ')}`,
          )
        }
      }
    }
    expect(found).toEqual([])
  })

  it('is readable at 360 pixels: nothing is wider than the screen', async () => {
    const page = await open('threads', { viewport: { width: 360, height: 740 } })
    for (const [view, there] of VIEWS) {
      await page.goto(`${ready.url}/studio/${view}`)
      await there(page)
      expect(await page.evaluate('document.documentElement.scrollWidth'), view).toBe(360)
    }
    await page.goto(`${ready.url}/studio/thread/bf-1`)
    await page.getByRole('log').waitFor()
    await page.getByRole('tab', { name: 'Fork tree' }).click()
    await page.getByRole('region', { name: 'Fork tree' }).waitFor()
    await page.getByRole('log').waitFor({ state: 'hidden' })
  })

  it('is worked by keys alone', async () => {
    const page = await open('threads')
    await page.getByText('bf-1', { exact: true }).waitFor()
    const chosen = () => page.locator('.row[data-chosen=true] .row-name').textContent()
    const first = await chosen()
    await page.keyboard.press('j')
    await expect.poll(chosen).not.toBe(first)
    await page.keyboard.press('k')
    await expect.poll(chosen).toBe(first)
    await page.keyboard.press('/')
    await page.keyboard.type('bf-2')
    await page.getByText('bf-1', { exact: true }).waitFor({ state: 'detached' })
    await page.keyboard.press('Escape')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'bf-2' }).waitFor()
    await page.locator('.checkpoint').first().waitFor()
    await page.keyboard.press('j')
    await page.getByText('This is the past.').waitFor()
    await page.keyboard.press('n')
    await page.getByText('This is the past.').waitFor({ state: 'detached' })
    await page.keyboard.press('c')
    await page.getByRole('button', { name: 'Verify the chain' }).waitFor()
    await page.keyboard.press('?')
    const help = page.getByRole('dialog', { name: 'What keys do' })
    await help.getByText('Fork from here').waitFor()
    await page.keyboard.press('Escape')
    await help.waitFor({ state: 'detached' })
    await page.keyboard.press('g')
    await page.keyboard.press('i')
    await page.getByRole('heading', { name: 'Inbox' }).waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'bf-2' }).waitFor()
    await page.getByRole('button', { name: /^Theme: system/ }).click()
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
  })

  it('shows a broken chain in red, with the last good checkpoint as the way out', async () => {
    const page = await open('thread/broken?tab=checks')
    await page.getByRole('button', { name: 'Verify the chain' }).click()
    await page.getByText('This thread is damaged.').waitFor()
    const verdict = page.locator('.verdict[data-tone=bad]')
    await verdict.getByText('then it breaks').waitFor()
    await verdict.getByRole('button', { name: /^main~\d+~/ }).click()
    await page.getByText('This is the past.').waitFor()
    await page.getByRole('tab', { name: 'State' }).last().click()
    await page.getByText('stay whole', { exact: true }).waitFor()
    // The newest state can't be read, which the page says and the browser notes.
    await browser.clear()
    browser.errors.length = 0
  })

  it('shows what a sweep would take, and takes nothing', async () => {
    const page = await open('retention')
    await page.getByRole('region', { name: 'What would be removed' }).getByRole('link', { name: 'old' }).waitFor()
    if (shots !== undefined) await page.screenshot({ path: join(shots, 'retention.png') })
  })

  it('shows another tenant when that is chosen', async () => {
    const page = await open('threads')
    await page.getByText('bf-1', { exact: true }).waitFor()
    await page.getByLabel('Tenant').selectOption('acme')
    await page.getByText('theirs', { exact: true }).waitFor()
    await page.getByText('bf-1', { exact: true }).waitFor({ state: 'detached' })
  })

  // The last: all that was looked at above counts.
  it('has written nothing to the store, and asked for nothing from elsewhere', async () => {
    expect(dump(file)).toBe(before)
    expect([...new Set(browser.asked.map((url) => new URL(url).origin))]).toEqual([ready.url])
    expect(browser.errors).toEqual([])
  })
})

/** Changes a byte of a thread's newest entry but one, as a failing disk would. */
function damage(path: string, thread: string): void {
  const db = openSqlite(path)
  try {
    const { id, seq } = db.prepare('SELECT id, seq FROM logs WHERE thread = ?').get(thread) as {
      id: number
      seq: number
    }
    const { body } = db.prepare('SELECT body FROM entries WHERE log = ? AND seq = ?').get(id, seq - 1) as {
      body: Uint8Array
    }
    const changed = Uint8Array.from(body, (byte, i) => (i === 0 ? byte ^ 1 : byte))
    db.prepare('UPDATE entries SET body = ? WHERE log = ? AND seq = ?').run(changed, id, seq - 1)
  } finally {
    db.close()
  }
}

/** Everything that a SQLite file holds. */
function dump(path: string): string {
  const db = openSqlite(path)
  try {
    const tables = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all() as {
      name: string
    }[]
    return JSON.stringify(
      tables.map(({ name }) => [name, db.prepare(`SELECT * FROM "${name}" ORDER BY 1, 2`).all()]),
      (_, value: unknown) => (value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value),
    )
  } finally {
    db.close()
  }
}
