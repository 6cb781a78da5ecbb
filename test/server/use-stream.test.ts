import { openHoldfast } from 'holdfast'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startChat } from '../../examples/chat/chat-server.js'
import { makeSupport } from '../../examples/chat/support-agent.js'
import { chromiumPath, openBrowser } from '../support/browser.js'
import { pacedModel } from './paced-model.js'

const chromium = await chromiumPath()

describe.skipIf(chromium === undefined)('useStream of LangGraph in Chromium, on the page of examples/chat', () => {
  let opened: Awaited<ReturnType<typeof openBrowser>>
  beforeAll(async () => {
    opened = await openBrowser(chromium as string)
  })
  afterAll(() => opened.browser.close())

  it('sends, streams, approves, goes on after a reload in mid-sentence, and branches', async () => {
    await using hf = await openHoldfast('memory:')
    const { model, next } = pacedModel()
    const listening = await startChat(hf, [makeSupport(model)], 0)
    try {
      const { page, errors } = await opened.open(`${listening.url}/stream`)
      const say = async (text: string) => {
        await page.getByLabel('Message').fill(text)
        await page.getByRole('button', { name: 'Send' }).click()
      }
      const answer = page.locator('[data-role=ai]')
      const ready = () => page.locator('[data-status=ready]').waitFor()

      await say('Where is ORD-1?')
      const first = await next()
      first.say('Let me ')
      await answer.getByText('Let me').waitFor()
      first.say('look.').call('getOrder', { orderId: 'ORD-1' }).end()
      ;(await next()).say('It was shipped.').end()
      await answer.getByText('It was shipped.').waitFor()
      await ready()

      await say('Return it, please.')
      ;(await next()).call('returnOrder', { orderId: 'ORD-1' }).end()
      await page.locator('[data-review]').getByText('returnOrder').waitFor()
      await page.getByRole('button', { name: 'Approve' }).click()
      const second = await next()
      second.say('The return ')
      await answer.getByText('The return').waitFor()

      await page.reload()
      second.say('is open.')
      await answer.getByText('The return is open.').waitFor()
      second.end()
      await ready()
      expect(await page.locator('[data-role=human]').count()).toBe(2)

      await page.getByRole('button', { name: 'Answer again' }).last().click()
      ;(await next()).say('On second thought, no.').end()
      await answer.getByText('On second thought, no.').waitFor()
      await ready()
      expect(await page.getByText('The return is open.').count()).toBe(0)
      await page.reload()
      await answer.getByText('On second thought, no.').waitFor()
      await page.getByText('2 branches').first().waitFor()
      expect(errors).toEqual([])
    } finally {
      await listening.close()
    }
  })
})
