// @module-tag drill
// The console in a real browser, on the real server.
import type { Page } from 'playwright-core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { freePort } from '../support/free-port.ts'
import { SUMMARY, submission, submit } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import {
  type AnswerJson,
  accessibilityFaults,
  changeAnswers,
  closeSession,
  describeInBrowser,
  openPage,
  overflowPx,
} from './browser.ts'

const MINT = mintOfSymbol('console')
const VIEWS = ['market', `token/${MINT}`, 'submissions', 'agents', 'calibration', 'system', 'query', 'try']

const token = (mint: string, name: string, more: object = {}) => ({
  type: 'token',
  mint,
  ts: Date.now(),
  name,
  symbol: name.slice(0, 8).toUpperCase(),
  ...more,
})
const trade = (priceUsd: number, mint = MINT) => ({
  type: 'trade',
  mint,
  ts: Date.now(),
  side: 'buy',
  tokenAmount: 1_000,
  priceUsd,
})

const rowOf = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name })

/** The chart, once its newest price is this. */
const chartAt = (page: Page, price: string) =>
  page.locator(`.chart[aria-label*="the last closed at ${price}"]`)

describeInBrowser('the console', () => {
  let server: TestServer

  beforeEach(async () => {
    server = await openTestServer()
    await server.client.push(token(MINT, 'Console'), trade(0.5), token(mintOfSymbol('other'), 'Other'))
  })
  afterEach(() => server.remove())

  test('every view opens by its address without an error or a request elsewhere', async () => {
    for (const view of VIEWS) {
      const { page, faults } = await openPage(server.url, `#/${view}`)
      await page.locator('#view-title').waitFor()
      await page.waitForLoadState('networkidle')
      expect({ view, faults }).toEqual({ view, faults: [] })
      await closeSession(page.context())
    }
  })

  test('a trade moves the row that it belongs to, and the token’s page', async () => {
    const list = await openPage(server.url)
    const detail = await openPage(server.url, `#/token/${MINT}`)
    await rowOf(list.page, 'Console').getByText('$0.5').waitFor()
    await detail.page.locator('.price-now').getByText('$0.5').waitFor()
    await server.client.push(trade(0.75))
    await rowOf(list.page, 'Console').getByText('$0.75').waitFor()
    await detail.page.locator('.price-now').getByText('$0.75').waitFor()
    await detail.page.getByText('▲ buy').first().waitFor()
  })

  test('back, forward and a shared address lead to the same view', async () => {
    const { page } = await openPage(server.url)
    await rowOf(page, 'Console').getByRole('link').click()
    await page.getByRole('heading', { name: 'CONSOLE' }).waitFor()
    expect(page.url()).toContain(`#/token/${MINT}`)
    await page.goBack()
    await rowOf(page, 'Other').waitFor()
    await page.goForward()
    await page.getByRole('heading', { name: 'CONSOLE' }).waitFor()
    const shared = await openPage(server.url, new URL(page.url()).hash)
    await shared.page.getByRole('heading', { name: 'CONSOLE' }).waitFor()
  })

  test('search and filters narrow the list, and stand in the address', async () => {
    const { page } = await openPage(server.url)
    await rowOf(page, 'Other').waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('cons')
    await rowOf(page, 'Other').waitFor({ state: 'detached' })
    await rowOf(page, 'Console').waitFor()
    expect(page.url()).toContain('search=cons')
    await page.goto(`${server.url}/#/agents`)
    await page.getByRole('heading', { name: 'Agents' }).waitFor()
    await page.keyboard.press('/')
    await page.locator('#search:focus').waitFor()
  })

  test('rows keep their order under the pointer, and say how many moved', async () => {
    const { page } = await openPage(server.url)
    const first = page.getByRole('row').nth(1)
    await first.getByText('Console').first().waitFor()
    await page.locator('.rows').hover({ position: { x: 300, y: 20 } })
    await server.client.push(trade(9, mintOfSymbol('other')), trade(9, mintOfSymbol('other')))
    await page.getByText(/order held, \d+ moved/).waitFor()
    expect(await first.textContent()).toContain('Console')
    await page.mouse.move(2, 2)
    await first.getByText('Other').first().waitFor()
  })

  test('it survives a restart of the server, and shows that it was away', {
    timeout: 60_000,
  }, async () => {
    // A port that the system chose cannot be used again at once while connections to it linger.
    await server.remove()
    server = await openTestServer({ port: `${await freePort()}` })
    await server.client.push(token(MINT, 'Console'), trade(0.5))
    const { page } = await openPage(server.url)
    await rowOf(page, 'Console').waitFor()
    await server.stop()
    await page.getByText(/disconnected, again in/).waitFor()
    server = await server.restart()
    await server.client.push(token(MINT, 'Reborn'), trade(0.9))
    await rowOf(page, 'Reborn').waitFor({ timeout: 30_000 })
    await page.locator('.connection.live').waitFor()
  })

  test('a token that a restarted server does not hold is told to be gone, until it is there again', {
    timeout: 60_000,
  }, async () => {
    await server.remove()
    const port = `${await freePort()}`
    server = await openTestServer({ port })
    await server.client.push(token(MINT, 'Console'), trade(0.5), token(mintOfSymbol('other'), 'Other'))
    const { page } = await openPage(server.url, `#/token/${MINT}`)
    const list = await openPage(server.url)
    await rowOf(list.page, 'Other').getByRole('link').focus()
    const price = page.locator('.price-now')
    await price.getByText('$0.5').waitFor()
    const gone = page.getByText('The market holds this token no longer')
    expect(await gone.count()).toBe(0)
    await server.remove()
    server = await openTestServer({ port })
    await gone.waitFor({ timeout: 30_000 })
    expect(await price.textContent()).toContain('$0.5')
    await server.client.push(token(MINT, 'Console'), trade(0.9))
    await price.getByText('$0.9').waitFor()
    await gone.waitFor({ state: 'detached' })
    await chartAt(page, '$0.90').waitFor()
    // The list has become shorter than where the keyboard was: that goes on at its last row.
    await rowOf(list.page, 'Console').locator('a:focus').waitFor()
  })

  test('a token’s page that was opened before its launch shows it by itself', async () => {
    const mint = mintOfSymbol('late')
    const { page } = await openPage(server.url, `#/token/${mint}`)
    await page.getByText('It appears here as soon as the market has it.').waitFor()
    await server.client.push(token(mint, 'Late'), trade(0.25, mint))
    await page.getByRole('heading', { name: 'LATE', exact: true }).waitFor()
    await chartAt(page, '$0.25').waitFor()
    await server.client.push(trade(0.75, mint))
    await page.locator('.price-now').getByText('$0.75').waitFor()
    await chartAt(page, '$0.75').waitFor()
  })

  test('texts of strangers stay texts, and their links lead to http(s) alone', async () => {
    const mint = mintOfSymbol('hostile')
    const name = '<img src=x onerror="document.title=\'owned\'">'
    await server.client.push(
      token(mint, name, {
        description: '</p><script>document.title="owned"</script>',
        website: 'javascript:alert(1)',
        twitter: 'https://example.com/x?"><b>',
      }),
      trade(1, mint),
    )
    const { page, faults } = await openPage(server.url, `#/token/${mint}`)
    await page.getByText(name, { exact: true }).first().waitFor()
    expect(await page.title()).not.toBe('owned')
    expect(await page.getByRole('link', { name: 'Website' }).count()).toBe(0)
    const link = page.getByRole('link', { name: 'X ↗' })
    expect(await link.getAttribute('rel')).toBe('noopener noreferrer nofollow')
    expect(faults).toEqual([])
  })

  test('an agent tries it: a key, a verdict by dry run, XP', async () => {
    const { page, faults } = await openPage(server.url, `#/try/${MINT}`)
    // In any order: the form may be complete before the key is there.
    await page.getByLabel('bonding_curve_risk').check()
    await page.getByLabel(/Summary/).fill(`${submission(MINT).summary}`)
    await page.getByLabel("Your agent's name").fill('console-tester')
    await page.getByRole('button', { name: 'Get a key' }).click()
    await page.getByText('if you submit this now').waitFor()
    await page.getByRole('button', { name: 'Submit' }).click()
    await page.getByText('✓ validated').waitFor()
    await page.getByText('Your XP').waitFor()
    // The key lives in the tab: what outlives it has none.
    expect(await page.evaluate<string>('JSON.stringify(localStorage)')).toBe('{}')
    expect(await page.context().cookies()).toEqual([])
    await page.goto(`${server.url}/#/submissions`)
    await page.getByRole('row').filter({ hasText: 'validated' }).waitFor()
    expect(faults).toEqual([])
  })

  test.each([
    { name: 'a desktop', viewport: { width: 1280, height: 800 } },
    { name: 'the narrowest phone', viewport: { width: 320, height: 568 } },
  ])(
    'no view has an accessibility fault on $name, light or dark, nor a sideways scroll',
    { timeout: 120_000 },
    async ({ viewport }) => {
      const key = await server.client.register('contrarian')
      expect((await submit(server.client, key, submission(MINT))).status).toBe(201)
      for (const view of VIEWS) {
        const { page } = await openPage('about:blank', '', { bypassCSP: true, viewport })
        await changeAnswers(page, '**/health', fillLake)
        await page.goto(`${server.url}/#/${view}`)
        await page.locator('#view-title').waitFor()
        await page.waitForLoadState('networkidle')
        expect({ view, overflow: await overflowPx(page) }).toEqual({ view, overflow: 0 })
        expect({ view, faults: await accessibilityFaults(page) }).toEqual({ view, faults: [] })
        await closeSession(page.context())
      }
    },
  )

  test('the theme follows the system until one is chosen, and the chart follows the theme', async () => {
    const { page, faults } = await openPage(server.url, `#/token/${MINT}`, { colorScheme: 'light' })
    const theme = () => page.evaluate<string>('document.documentElement.dataset.theme')
    const drawn = () =>
      page.evaluate<string>(
        `[...document.querySelectorAll('.chart canvas')].map((canvas) => canvas.toDataURL()).join()`,
      )
    await page.locator('.chart canvas').first().waitFor()
    expect(await theme()).toBe('light')
    const light = await drawn()
    await page.emulateMedia({ colorScheme: 'dark' })
    await expect.poll(theme).toBe('dark')
    await expect.poll(drawn).not.toBe(light)
    await page.getByRole('button', { name: 'Switch between light and dark' }).click()
    expect(await theme()).toBe('light')
    await page.reload()
    expect(await theme()).toBe('light')
    // The choice is forgotten where it is what the system prefers.
    await page.getByRole('button', { name: 'Switch between light and dark' }).click()
    await page.emulateMedia({ colorScheme: 'light' })
    await expect.poll(theme).toBe('light')
    expect(faults).toEqual([])
  })

  test('the keyboard alone leads from the market to a submission', async () => {
    const { page } = await openPage(server.url)
    await rowOf(page, 'Console').waitFor()
    await focusByTab(page, /CONSOLE/)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'CONSOLE' }).waitFor()
    await focusByTab(page, /submit an analysis/)
    await page.keyboard.press('Enter')
    await page.getByLabel("Your agent's name").waitFor()
    await focusByTab(page, /^$/, 'name')
    await page.keyboard.type('keys-only')
    await page.keyboard.press('Enter')
    await page.getByText('Your key').waitFor()
    await focusByTab(page, /^$/, 'bonding_curve_risk')
    await page.keyboard.press('Space')
    await focusByTab(page, /^$/, 'summary')
    await page.keyboard.type(SUMMARY)
    await page.getByText('if you submit this now').waitFor()
    await focusByTab(page, /^Submit$/)
    await page.keyboard.press('Enter')
    await page.getByText('Your XP').waitFor()
  })
})

/** Gives /health a lake as large as years make it: the table of its tables is at its widest. */
function fillLake(health: AnswerJson): object {
  const counts = { rows: 12_345_678_901, files: 123_456, bytes: 123e12, backlog: 1_234_567 }
  return { ...health, store: { ...health.store, lake: [{ table: 'submissions', ...counts }] } }
}

/** Presses Tab until an element with that text, or that name, has the focus. */
async function focusByTab(page: Page, text: RegExp, name = ''): Promise<void> {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press('Tab')
    const focused = await page.evaluate<{ text: string; name: string }>(
      '({ text: document.activeElement?.textContent ?? "", name: document.activeElement?.getAttribute("name") ?? "" })',
    )
    if (name === '' ? text.test(focused.text.trim()) && focused.text.length < 200 : focused.name === name)
      return
  }
  throw new Error(`Tab does not reach ${text} ${name}`)
}
