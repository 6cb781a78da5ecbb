import type { Browser, BrowserContext, Page } from 'playwright-core'
import { type Holdfast, openHoldfast } from 'holdfast'
import { createServer, listen, type ServerOptions } from 'holdfast/server'
import { openBrowser } from '../support/browser.js'
import { type PacedCall, pacedModel } from '../server/paced-model.js'
import { demoProgram, makePrograms, playDemo } from './world.js'

export const TOKEN = 'token-of-the-studio-0000'

/** How long a page may take for anything, on a machine that has other things to do. */
const PATIENCE_MS = Number(process.env['HOLDFAST_STUDIO_PATIENCE'] ?? 30_000)

/** A served store that the studio looks at, and the model of its agent in the hands of the test. */
export interface World {
  readonly hf: Holdfast
  readonly url: string
  readonly next: () => Promise<PacedCall>
  close(): Promise<void>
}

/** Serves a store with the studio's programs. */
async function serveStudio(hf: Holdfast, options: Partial<ServerOptions> = {}): Promise<Omit<World, 'hf'>> {
  const { model, next } = pacedModel()
  const { returns, payout, survey, nightly, planner } = makePrograms(model)
  const server = createServer(hf, {
    programs: [returns, payout, survey, nightly, planner, await demoProgram()],
    studio: true,
    tokens: [{ token: TOKEN, subject: 'ada@example.com', tenants: '*' }],
    worker: { pollMs: 50, graceMs: 100 },
    ...options,
  })
  const listening = await listen(server, { port: 0 })
  return { url: listening.url, next, close: () => listening.close() }
}

/** A store with the demo's conversations and one thread for each thing that the studio does something about. */
export async function makeWorld(store: string, sessions = 6): Promise<World> {
  const hf = await openHoldfast(store, { telemetry: { flushEveryMs: 200 } })
  await playDemo(hf, sessions, 6)
  const served = await serveStudio(hf)
  return {
    hf,
    ...served,
    async close() {
      await served.close()
      await hf.close()
    },
  }
}

/** One browser for all tests of a file, and what went wrong in any of its pages. */
export class StudioBrowser {
  readonly errors: string[] = []
  /** Every address that a page asked for. */
  readonly asked: string[] = []
  readonly #browser: Browser
  readonly #contexts: BrowserContext[] = []

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  static async open(path: string): Promise<StudioBrowser> {
    return new StudioBrowser((await openBrowser(path)).browser)
  }

  /** A page that is signed in, at a view of the studio. */
  async page(url: string, view = '', options: Parameters<Browser['newContext']>[0] = {}, token = TOKEN): Promise<Page> {
    const context = await this.#browser.newContext({
      viewport: { width: 1440, height: 900 },
      locale: 'en-US',
      timezoneId: 'UTC',
      reducedMotion: 'reduce',
      ...options,
    })
    context.setDefaultTimeout(PATIENCE_MS)
    this.#contexts.push(context)
    const page = await context.newPage()
    page.on('pageerror', (error) => this.errors.push(error.message))
    page.on('console', (message) => {
      if (message.type() === 'error') this.errors.push(message.text())
    })
    page.on('request', (request) => this.asked.push(request.url()))
    await page.goto(`${url}/studio/${view}#token=${token}`)
    return page
  }

  /** Ends the pages: each follows what it shows, which keeps the server at work. */
  async clear(): Promise<void> {
    for (const context of this.#contexts.splice(0)) await context.close()
  }

  async close(): Promise<void> {
    await this.clear()
    await this.#browser.close()
  }
}
