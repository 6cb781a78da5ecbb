import { type Browser, chromium, type Page } from 'playwright-core'
import { findChromium } from '../../scripts/services/index.mjs'
import { orUndefined } from './servers.js'

/** The path of a Chromium. Undefined where there is none; with CI=true that is an error. */
export async function chromiumPath(): Promise<string | undefined> {
  const given = process.env['HOLDFAST_TEST_CHROMIUM']
  return given || orUndefined(async () => (await findChromium()).path)
}

/** A browser of the test's own. What goes wrong in its pages fails the test that looks at `errors`. */
export async function openBrowser(
  path: string,
): Promise<{ browser: Browser; open: (url: string) => Promise<OpenPage> }> {
  const browser = await chromium.launch({ executablePath: path, args: ['--no-sandbox', '--disable-gpu'] })
  return {
    browser,
    async open(url) {
      const page = await (await browser.newContext()).newPage()
      const errors: string[] = []
      page.on('pageerror', (error) => errors.push(error.message))
      await page.goto(url)
      return { page, errors }
    },
  }
}

export interface OpenPage {
  readonly page: Page
  readonly errors: readonly string[]
}
