import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { append, graph, last, START } from 'holdfast'
import { HoldfastClient, type PauseInfo, type ThreadClient } from 'holdfast/client'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { backendsBehindDoors } from '../support/backends.js'
import { chromiumPath } from '../support/browser.js'
import { makeWorld, StudioBrowser, TOKEN, type World } from './studio-setup.js'

const chromium = await chromiumPath()
const backends = await backendsBehindDoors()
/** Where pictures of every view go; docs/studio.md shows them. */
const shots = process.env['HOLDFAST_STUDIO_SHOTS']

describe.skipIf(chromium === undefined).each(backends)('the studio on $name', ({ name, missing, fresh, cleanup }) => {
  let world: World
  let browser: StudioBrowser
  let client: HoldfastClient
  const open = (view: string) => browser.page(world.url, view)

  beforeAll(async () => {
    if (missing) return
    world = await makeWorld(await fresh(), name === 'SQLite' ? 6 : 2)
    browser = await StudioBrowser.open(chromium as string)
    client = new HoldfastClient({ baseUrl: world.url, token: TOKEN })
  })
  afterEach(() => browser?.clear())
  afterAll(async () => {
    await browser?.close()
    await world?.close()
    await cleanup()
  })

  /** A thread whose agent has looked an order up and asks whether it may pay money back. */
  async function askForRefund(id: string): Promise<{ thread: ThreadClient; pause: PauseInfo }> {
    const thread = client.thread(id)
    const outcome = thread.run({ program: 'returns', input: 'My boots leak. I want my money back for ORD-7.' })
    ;(await world.next()).say('Let me look at your order.').call('getOrder', { orderId: 'ORD-7' }).end()
    ;(await world.next())
      .say('I ask for a refund.')
      .call('refund', { orderId: 'ORD-7', amount: 129.9 }, `call-${id}`)
      .end()
    const paused = await outcome
    if (paused.status !== 'paused') throw new Error(`It is ${paused.status}.`)
    return { thread, pause: paused.pauses[0] as PauseInfo }
  }

  async function shoot(page: Page, view: string): Promise<void> {
    if (shots === undefined || name !== 'SQLite') return
    mkdirSync(shots, { recursive: true })
    await page.mouse.move(0, 0)
    await page.screenshot({ path: join(shots, `${view}.png`) })
  }

  it.skipIf(missing)('takes the token out of the address and keeps nothing that a script could read', async () => {
    const page = await open('threads')
    await page.getByRole('heading', { name: 'Threads' }).waitFor()
    expect(page.url()).toBe(`${world.url}/studio/threads`)
    const kept = await page.evaluate('JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }])')
    expect(kept).not.toContain(TOKEN)
    await page.reload()
    await page.getByText('bf-1', { exact: true }).waitFor()
    const [cookie] = await page.context().cookies(`${world.url}/v1/me`)
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/v1' })
    await page.context().clearCookies()
    await page.reload()
    await page.getByLabel('Token').fill('not the token')
    await page.getByRole('button', { name: 'Open' }).click()
    await page.getByText('This token is unknown here.').waitFor()
    await page.getByLabel('Token').fill(TOKEN)
    await page.getByRole('button', { name: 'Open' }).click()
    await page.getByText('bf-1', { exact: true }).waitFor()
    browser.errors.length = 0
  })

  it.skipIf(missing)('lists threads live, with counts and errors, and finds them by every filter', async () => {
    await client.thread('nightly-1').run({ program: 'nightly', input: {} })
    const page = await open('threads')
    await page.getByText('The bucket refused the upload: 403').first().waitFor()
    await page.getByRole('button', { name: /^completed \d+$/ }).waitFor()
    await shoot(page, 'threads')

    // What comes while one looks.
    await client.thread('plan-live').run({ program: 'planner', input: { goal: 'ship' } })
    await page.getByText('plan-live').waitFor()
    await client.thread('plan-live').tag('keep')
    await page.getByText('#keep').waitFor()

    const rows = page.locator('.row-name')
    await page.getByRole('button', { name: /^failed/ }).click()
    await page.getByText('bf-1', { exact: true }).waitFor({ state: 'detached' })
    expect(await rows.allTextContents()).toEqual(['nightly-1'])
    expect(page.url()).toContain('status=failed')
    await page.getByRole('button', { name: /^failed/ }).click()
    await page.getByText('bf-1', { exact: true }).waitFor()
    await page.getByLabel('Program').selectOption('planner')
    await page.getByText('bf-1', { exact: true }).waitFor({ state: 'detached' })
    expect(await rows.allTextContents()).toEqual(['plan-live'])
    await page.getByLabel('Program').selectOption('')
    await page.getByLabel('Tag').fill('keep')
    await page.getByLabel('Tag').press('Enter')
    await page.getByText('bf-1', { exact: true }).waitFor({ state: 'detached' })
    expect(await rows.allTextContents()).toEqual(['plan-live'])
    await page.goto(`${world.url}/studio/threads?metadata=holdfast.program%3Dplanner&since=day`)
    await page.getByText('plan-live').waitFor()
    expect(await rows.allTextContents()).toEqual(['plan-live'])
    await page.goto(`${world.url}/studio/threads?q=bf-2`)
    await page.getByText('bf-2', { exact: true }).waitFor()
    expect(await rows.allTextContents()).toEqual(['bf-2'])
  })

  it.skipIf(missing)('shows a conversation with calls and costs, and tokens while they are said', async () => {
    const page = await open('thread/talk-1')
    await page.getByText('There is no such thread').waitFor()
    browser.errors.length = 0
    const thread = client.thread('talk-1')
    const outcome = thread.run({ program: 'returns', input: 'Where is ORD-7?' })
    const first = await world.next()
    await page.reload()
    const talk = page.getByRole('log', { name: 'Conversation' })
    await page.locator('.view-head').getByText('returns 2.1.0').waitFor()
    first.say('Let me ')
    await talk.getByText('Let me').waitFor()
    await talk.locator('.live-dot').first().waitFor()
    first.say('look.').call('getOrder', { orderId: 'ORD-7' }, 'call-1').end()
    const call = talk.locator('[data-tool=getOrder]')
    await call.getByText('ORD-7').first().waitFor()
    await call.getByText('delivered').waitFor()
    ;(await world.next()).say('It was delivered.').end()
    await talk.getByText('It was delivered.').waitFor()
    await expect.poll(() => talk.locator('.live-dot').count()).toBe(0)
    await page.locator('.view-head').getByText('completed').waitFor()
    await page.getByText(/4 tokens · cost 0\.0000/).waitFor()
    expect((await outcome).status).toBe('completed')

    // From here, too.
    await page.getByLabel('Message').fill('Thank you!')
    await page.getByRole('button', { name: 'Send' }).click()
    ;(await world.next()).say('You are welcome.').end()
    await talk.getByText('You are welcome.').waitFor()
    await page.locator('.view-head').getByText('completed').waitFor()
  })

  it.skipIf(missing)(
    'goes anywhere in time, by click, drag and key, and shows what changed between two places',
    async () => {
      const page = await open('thread/bf-1')
      const tree = page.getByRole('region', { name: 'Fork tree' })
      const row = (text: string) => tree.locator('.checkpoint-name', { hasText: text })
      await row('getOrderStatus').first().waitFor()
      const state = page.getByRole('region', { name: 'Inspector' })
      const newest = await state.locator('code').first().textContent()
      const messages = async () => state.getByRole('button', { name: /^messages/ }).textContent()
      await state.getByRole('button', { name: /^messages/ }).waitFor()
      const all = await messages()

      await row('getOrderStatus').last().click()
      await page.getByText('This is the past.').waitFor()
      await expect.poll(messages).not.toBe(all)
      const address = page.url()
      expect(decodeURIComponent(address)).toMatch(/[?&]at=main~\d+~/)
      const there = await state.locator('code').first().textContent()
      expect(there).not.toBe(newest)
      await page.keyboard.press('j')
      await expect.poll(() => page.url()).not.toBe(address)
      await page.keyboard.press('k')
      await expect.poll(() => page.url()).toBe(address)
      // The link leads to the same place.
      await page.goto(address)
      await expect.poll(() => state.locator('code').first().textContent()).toBe(there)
      await tree.locator('.checkpoint[data-here=true]').waitFor()

      // Marked, and another one chosen.
      await page.keyboard.press('m')
      await page.getByRole('tab', { name: 'Changes' }).and(page.locator('[aria-selected=true]')).first().waitFor()
      await page.getByText('No difference.').waitFor()
      const scrubber = page.getByLabel('Move in time')
      await scrubber.focus()
      await page.keyboard.press('End')
      await page.getByText('This is the past.').waitFor({ state: 'detached' })
      await state
        .getByText(/^\$\.messages\[\d+\]$/)
        .first()
        .waitFor()
      await state.locator('[data-side=after] .json-toggle').first().waitFor()
      await shoot(page, 'changes')
      await page.keyboard.press('Home')
      await page.getByText('This is the past.').waitFor()
      await page.getByRole('button', { name: 'Go to now' }).click()
      await page.getByText('This is the past.').waitFor({ state: 'detached' })
    },
  )

  it.skipIf(missing)(
    'forks from any checkpoint with edited messages and state, runs it, and compares the branches',
    async () => {
      const { thread } = await askForRefund('fork-1')
      const page = await open('thread/fork-1')
      const tree = page.getByRole('region', { name: 'Fork tree' })
      const row = (text: string) => tree.locator('.checkpoint-name', { hasText: text })
      await row('getOrder').click()
      await page.getByText('This is the past.').waitFor()
      await expect.poll(() => page.getByRole('log').locator('article').count()).toBe(2)
      await page.keyboard.press('f')
      const dialog = page.getByRole('dialog', { name: 'Fork' })
      const key = async (name: string) => {
        await dialog.getByLabel('Key').fill(name)
        await dialog.getByLabel('Key').press('Enter')
        await dialog.getByLabel(name, { exact: true }).waitFor()
      }
      await dialog.getByLabel('Name').fill('smaller')
      await dialog.getByLabel('Text of message 1').fill('My boots leak. Half of the money would do.')
      await dialog.getByText('State', { exact: true }).click()
      await key('customer')
      await dialog.locator('textarea.code').fill('""')
      await dialog.getByRole('button', { name: 'Fork and run' }).click()
      // By the schema of the program.
      await dialog.getByRole('alert').waitFor()
      expect((await thread.branches())[0]?.forks).toEqual([])
      await dialog.locator('textarea.code').fill('"Maya"')
      await shoot(page, 'fork')
      await dialog.getByRole('button', { name: 'Fork and run' }).click()
      ;(await world.next()).say('Half it is.').call('refund', { orderId: 'ORD-7', amount: 65 }, 'call-fork').end()
      await expect.poll(() => page.url()).toContain('branch=smaller')
      await page.getByRole('log').getByText('Half it is.').waitFor()
      await page.getByRole('log').getByText('Half of the money would do.').waitFor()
      // Both lanes, and the fork between them.
      await row('fork').waitFor()
      expect(await tree.locator('circle[data-lane="1"]').count()).toBeGreaterThan(1)
      await shoot(page, 'thread')
      expect((await client.thread('fork-1', { branch: 'smaller' }).state()).state).toMatchObject({ customer: 'Maya' })
      expect((await thread.state()).state['messages']).toMatchObject([{ parts: [{ text: /money back/ }] }, {}, {}, {}])

      await page.getByRole('button', { name: 'Compare', exact: true }).click()
      const left = page.getByRole('region', { name: 'Conversation of main' })
      const right = page.getByRole('region', { name: 'Conversation of smaller' })
      await left.getByText('I want my money back').waitFor()
      await right.getByText('Half it is.').waitFor()
      await page.getByText('$.messages[0].parts[0].text').waitFor()
      await shoot(page, 'compare')
      await page.getByLabel('Right branch').selectOption('main')
      await page.getByText('No difference.').waitFor()
    },
  )

  it.skipIf(missing)(
    'answers questions: approve, reject, edit arguments, answer by a form, put off, and says who did',
    async () => {
      await askForRefund('inbox-approve')
      await askForRefund('inbox-edit')
      await askForRefund('inbox-reject')
      await client.thread('inbox-survey').run({ program: 'survey', input: { customer: 'Maya' } })
      const page = await open('inbox')
      const card = page.locator('.question-card')
      const choose = async (thread: string) => {
        await page.locator('.inbox-row', { hasText: thread }).click()
        await card.getByRole('link', { name: thread }).waitFor()
      }
      const gone = (thread: string) => page.locator('.inbox-row', { hasText: thread }).waitFor({ state: 'detached' })

      await choose('inbox-edit')
      await card.getByRole('button', { name: 'Edit arguments' }).click()
      await card.getByLabel('amount').fill('-3')
      await shoot(page, 'inbox')
      await card.getByRole('button', { name: 'Approve as edited' }).click()
      await page.locator('.toast[data-tone=bad]').waitFor()
      await page.getByRole('button', { name: 'Dismiss' }).first().click()
      await card.getByLabel('amount').fill('65')
      await card.getByRole('button', { name: 'Approve as edited' }).click()
      ;(await world.next()).say('Half is paid.').end()
      await gone('inbox-edit')

      await choose('inbox-approve')
      await card.getByRole('button', { name: 'Approve', exact: true }).click()
      ;(await world.next()).say('It is paid.').end()
      await gone('inbox-approve')

      await choose('inbox-reject')
      await card.getByLabel('Reason').fill('Worn for a year')
      await card.getByRole('button', { name: 'Reject' }).click()
      ;(await world.next()).say('I am afraid not.').end()
      await gone('inbox-reject')

      await choose('inbox-survey')
      await card.getByRole('button', { name: '1 day' }).click()
      await gone('inbox-survey')
      await page.getByRole('tab', { name: /^Put off/ }).click()
      await choose('inbox-survey')
      await card.getByText(/Put off until .* by ada@example.com/).waitFor()
      await card.getByLabel('mood').selectOption('fair')
      await card.getByLabel('stars').fill('4')
      await card.getByLabel('again').check()
      await card.getByRole('button', { name: 'Answer' }).click()
      await gone('inbox-survey')

      await page.getByRole('tab', { name: 'Answered' }).click()
      const answers = page.getByRole('region', { name: 'Answers' })
      const row = (thread: string) => answers.locator('tr', { hasText: thread })
      await row('inbox-survey').getByText('ada@example.com').waitFor()
      await row('inbox-edit').locator('.status', { hasText: 'approved' }).waitFor()
      await row('inbox-reject').locator('.status', { hasText: 'rejected' }).waitFor()
      await shoot(page, 'answers')
      const done = await client.thread('inbox-survey').run({ input: { customer: 'Maya' }, key: 'again' })
      expect((await client.answers({ thread: 'inbox-edit' })).answers).toMatchObject([
        { value: { approved: true, input: { orderId: 'ORD-7', amount: 65 } }, by: 'ada@example.com' },
      ])
      expect(done.status).toBe('paused')
    },
  )

  it.skipIf(missing)('settles effects of unknown outcome, and says what a fork may do', async () => {
    await client.thread('payout-1').run({ program: 'payout', input: { account: 'A-1', amount: 10 } })
    await client.thread('payout-2').run({ program: 'payout', input: { account: 'A-2', amount: 20 } })
    const { thread, pause } = await askForRefund('permit-1')
    await thread.answer(pause.id, { approved: true })
    ;(await world.next()).say('It is paid.').end()
    await expect.poll(async () => (await thread.state()).status).toBe('completed')
    const answered = (await thread.history()).checkpoints.find(({ kind }) => kind === 'answer')
    const again = await thread.fork({ at: answered?.id as string, name: 'again' })
    await again.resume()

    const page = await open('effects')
    const card = page.locator('.question-card')
    const choose = async (of: string) => {
      await page.locator('.inbox-row', { hasText: of }).click()
      await card.getByRole('link', { name: of }).waitFor()
    }
    await choose('payout-1')
    await card.getByText('A-1').waitFor()
    await card.getByText('socket hang up').waitFor()
    await card.locator('.json-name', { hasText: /^key$/ }).waitFor()
    await shoot(page, 'effects')
    await card.getByLabel('Result, if it succeeded').fill('{"paid": 10}')
    await card.getByRole('button', { name: 'It succeeded' }).click()
    await page.locator('.inbox-row', { hasText: 'payout-1' }).waitFor({ state: 'detached' })
    await expect
      .poll(async () => (await client.thread('payout-1').state()).run)
      .toMatchObject({ output: { done: { paid: 10 } } })
    await choose('payout-2')
    await card.getByLabel('What went wrong, if it failed').fill('The bank said no')
    await card.getByRole('button', { name: 'It failed' }).click()
    await page.locator('.inbox-row', { hasText: 'payout-2' }).waitFor({ state: 'detached' })
    await expect.poll(async () => (await client.thread('payout-2').state()).run?.status).toBe('failed')

    await choose('permit-1')
    await card.getByText('Permission').waitFor()
    await card.getByRole('button', { name: 'Deny' }).click()
    ;(await world.next()).say('Then not.').end()
    await page.locator('.inbox-row', { hasText: 'permit-1' }).waitFor({ state: 'detached' })
    await page.getByText('Nothing is in doubt').waitFor()
  })

  it.skipIf(missing)('verifies, replays and exports without a call', async () => {
    const page = await open('thread/bf-1?tab=checks')
    await page.getByRole('button', { name: 'Verify the chain' }).click()
    await page.getByText(/All \d+ entries verified\./).waitFor()
    await page.getByRole('button', { name: 'Replay the last run' }).click()
    await page.getByText(/Identical: \d+ steps? gone through/).waitFor()
    await shoot(page, 'checks')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save a fixture' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('bf-1.holdfast.jsonl')
    await page.getByText('The fixture is saved.').waitFor()

    // Recorded by a version that went another way.
    const before = graph({
      name: 'planner',
      version: '1.0.0',
      state: { goal: last<string>(undefined, { initial: '' }), done: append<string>() },
    })
      .node('plan', (state) => ({ done: [`plan ${state.goal}`] }))
      .edge(START, 'plan')
    await world.hf.thread(before, 'replay-1').run({ input: { goal: 'ship' } })
    await page.goto(`${world.url}/studio/thread/replay-1?tab=checks`)
    await page.getByRole('button', { name: 'Replay the last run' }).click()
    await page
      .locator('.verdict[data-tone=bad]')
      .getByText(/^Differs at .*plan/)
      .waitFor()
  })

  it.skipIf(missing)('shows who holds what and what waits, the figures over time, and the store', async () => {
    const held = client.thread('held-1').run({ program: 'returns', input: 'Hello?' })
    const call = await world.next()
    await world.hf
      .tenant('default')
      .store.scope({ user: 'maya' })
      .collection('preferences')
      .put('shoes', { size: 39, width: 'wide' })
    const page = await open('workers')
    await page.getByRole('region', { name: 'Held now' }).getByRole('link', { name: 'held-1' }).waitFor()
    await page.locator('.workers .card').getByText('1 thread').waitFor()
    const figure = (label: string) => page.locator('.chart', { hasText: label })
    await expect.poll(() => figure('Runs started').locator('rect').count()).toBeGreaterThan(0)
    await expect.poll(() => figure('Tokens').first().locator('.chart-value').textContent()).not.toBe('0')
    await shoot(page, 'workers')
    call.say('Hello!').end()
    await held

    await page.goto(`${world.url}/studio/store`)
    await page.getByRole('link', { name: 'preferences' }).click()
    await page.getByRole('button', { name: /shoes/ }).click()
    await page.getByText('wide', { exact: true }).waitFor()
    await shoot(page, 'store')
  })

  it.skipIf(missing)('asked for nothing from elsewhere, and nothing went wrong in any page', () => {
    expect(
      [...new Set(browser.asked.map((url) => new URL(url).origin))].filter((origin) => !origin.startsWith('blob')),
    ).toEqual([world.url])
    expect(browser.errors.filter((text) => !text.includes('422') && !text.includes('40'))).toEqual([])
  })
})
