// Opens the console in Chromium and watches for what must not happen: errors, and requests to other servers.
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import {
  type APIResponse,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core'
import { afterAll, beforeAll, describe } from 'vitest'

const CHROMIUM = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium'
export const hasBrowser = existsSync(CHROMIUM)
/** For the titles of tests. */
export const skipped = hasBrowser ? '' : ` (skipped: there is no ${CHROMIUM}; CHROMIUM_PATH may name another)`

export const openBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] })

/** Closes a session. A request that a test answers itself may be under way: that it cannot be answered any more is no fault. */
export async function closeSession(session: BrowserContext): Promise<void> {
  const options = { behavior: 'ignoreErrors' } as const
  await Promise.all([session, ...session.pages()].map((routed) => routed.unrouteAll(options)))
  await session.close()
}

let browser: Browser

/** Tests in a browser of their own. They are skipped where there is none. */
export function describeInBrowser(name: string, tests: () => void): void {
  describe.skipIf(!hasBrowser)(`${name}${skipped}`, () => {
    beforeAll(async () => {
      browser = await openBrowser()
    })
    tests()
    // What is to be done last is done first: pages are closed before the servers of the tests.
    afterAll(async () => {
      await Promise.all(browser.contexts().map(closeSession))
      await browser.close()
    })
  })
}

/** What an answer's text says, of any type. */
export type AnswerJson = Awaited<ReturnType<APIResponse['json']>>

/**
 * Has the page get the server's answers as `change` makes them. The page asks on its own while a test ends, and its server may be
 * gone by then: what cannot be fetched is an answer that does not come, as it is without this.
 */
export async function changeAnswers(
  page: Page,
  url: string,
  change: (answer: AnswerJson) => object,
): Promise<void> {
  await page.route(url, async (route) => {
    const response = await route.fetch().catch(() => undefined)
    if (response === undefined) return route.abort()
    await route.fulfill({ response, json: change(await response.json()) })
  })
}

export interface WatchedPage {
  page: Page
  /** Errors of the console and of scripts, and addresses of other servers that were asked for. */
  faults: string[]
}

/** A page of its own session. `origin`: the only server that it may speak to. */
export async function openPage(
  origin: string,
  hash = '',
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
  const page = await context.newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => void faults.push(error.message))
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text())
  })
  page.on('request', (request) => {
    const url = new URL(request.url())
    const isOwn = url.host === new URL(origin).host || url.protocol === 'blob:' || url.protocol === 'data:'
    if (!isOwn) faults.push(`asked ${url.host}`)
  })
  await page.goto(`${origin}/${hash}`)
  return { page, faults }
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** The rules that look at colours, which are all that a theme changes. */
const OF_COLOURS = ['color-contrast', 'link-in-text-block']

/** Accessibility faults of a page that was opened with `bypassCSP`: all in light, those of colours in dark too. */
export async function accessibilityFaults(page: Page): Promise<string[]> {
  await page.evaluate(AXE)
  const faults: string[] = []
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const { violations } = await page.evaluate<{
      violations: { id: string; nodes: { html: string }[] }[]
    }>(colorScheme === 'light' ? 'axe.run()' : `axe.run({ runOnly: ${JSON.stringify(OF_COLOURS)} })`)
    faults.push(...violations.map(({ id, nodes }) => `${colorScheme} ${id}: ${nodes[0]?.html.slice(0, 120)}`))
  }
  return faults
}

/** By how much the page is wider than the window. */
export const overflowPx = (page: Page): Promise<number> =>
  page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
