// @module-tag drill
// Gaps in the console: feeds that are away, bars that may be incomplete, and a server that is not there yet.
import type { Page } from 'playwright-core'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { accessibilityFaults, describeInBrowser, openPage, overflowPx } from './browser.ts'

const MINT = mintOfSymbol('gaps')
const MINUTE_MS = 60_000
const PHONE = { viewport: { width: 360, height: 740 } }

describeInBrowser('gaps in the console', () => {
  let server: TestServer

  beforeEach(async () => {
    server = await openTestServer({ 'sol-price': '150' })
    const trade = (minutesAgo: number) => ({
      type: 'trade',
      mint: MINT,
      ts: Date.now() - minutesAgo * MINUTE_MS,
      side: 'buy',
      tokenAmount: 1_000,
      priceUsd: 0.5,
    })
    await server.client.push(
      { type: 'token', mint: MINT, ts: Date.now() - 9 * MINUTE_MS, name: 'Gappy', symbol: 'GAPPY' },
      ...[9, 6, 3, 0].map(trade),
    )
  })
  afterEach(() => server.remove())

  const disconnect = (sinceMs = server.market.timeMs) =>
    server.market.apply(
      { type: 'disconnect', feed: 'pumpportal', ts: server.market.timeMs, sinceMs },
      server.market.timeMs,
    )
  const reconnect = () =>
    server.market.apply(
      { type: 'reconnect', feed: 'pumpportal', ts: server.market.timeMs },
      server.market.timeMs,
    )
  const away = (page: Page) => page.getByRole('link', { name: '⚠ pumpportal away' })
  const drawn = (page: Page) =>
    page.evaluate<string>(
      `[...document.querySelectorAll('.chart canvas')].map((canvas) => canvas.toDataURL()).join()`,
    )

  test('a feed that goes away is told in an open view and in a new one, until it is back', async () => {
    const open = await openPage(server.url)
    await open.page.getByRole('row').filter({ hasText: 'Gappy' }).waitFor()
    expect(await away(open.page).count()).toBe(0)
    disconnect()
    await away(open.page).waitFor()
    expect(await away(open.page).getAttribute('title')).toMatch(
      /^The feed pumpportal has been without its source since/,
    )
    const opened = await openPage(server.url, `#/token/${MINT}`, PHONE)
    await away(opened.page).waitFor()
    expect(await overflowPx(opened.page)).toBe(0)
    reconnect()
    await away(open.page).waitFor({ state: 'detached' })
    await away(opened.page).waitFor({ state: 'detached' })
    expect([...open.faults, ...opened.faults]).toEqual([])
  })

  test('the chart marks the bars that a gap touches, and says when and why', async () => {
    const { page, faults } = await openPage(server.url, `#/token/${MINT}`)
    await page.locator('.chart canvas').first().waitFor()
    expect(await page.getByText('Hatched: trades may be missing').count()).toBe(0)
    const before = await drawn(page)
    disconnect(server.market.timeMs - 4 * MINUTE_MS)
    await page
      .getByText(/Hatched: trades may be missing. The feed pumpportal has been without its source since/)
      .waitFor()
    await expect.poll(() => drawn(page)).not.toBe(before)
    const marked = await drawn(page)
    reconnect()
    await page.getByText(/The feed pumpportal was without its source from .* to .* \(4m\)/).waitFor()
    expect(marked).not.toBe(before)
    // A page that was not there meanwhile asks for the bars' gaps.
    const late = await openPage(server.url, `#/token/${MINT}`)
    const asked = late.page.waitForResponse(/\/api\/v1\/ohlc\?/)
    await late.page.getByText(/The feed pumpportal was without its source from .* to .* \(4m\)/).waitFor()
    expect((await (await asked).json()).meta.incomplete).toHaveLength(1)
    expect([...faults, ...late.faults]).toEqual([])
  })

  test('the system view tells feeds with their state, what is wrong, and the latest gaps', async () => {
    disconnect()
    const { page } = await openPage(server.url, '#/system', { bypassCSP: true })
    await page
      .getByText(/The feed pumpportal has been without its source since .* events are missing/)
      .waitFor()
    await page.getByText(/^running for \d+s, \d+ events/).waitFor()
    expect(
      await page
        .getByRole('term')
        .filter({ hasText: /^push$/i })
        .count(),
    ).toBe(1)
    const gap = page.getByRole('row').filter({ hasText: 'The feed pumpportal' })
    await gap.filter({ hasText: 'has been without its source' }).waitFor()
    expect(await accessibilityFaults(page)).toEqual([])
    reconnect()
    await gap.filter({ hasText: /was without its source.*from .* to/ }).waitFor()
    await page.getByText('Nothing is wrong.').waitFor()
  })

  test('a server that is away, and then warming up, is told where rows would be', async () => {
    const { page } = await openPage(server.url, '#/agents')
    await page.locator('.connection.live').waitFor()
    await server.stop()
    await page.evaluate(`location.hash = '#/market'`)
    await page.getByRole('heading', { name: 'The server cannot be reached' }).waitFor()
    const error = 'The server is warming up.'
    await page.route('**/api/v1/stream', (route) =>
      route.fulfill({ status: 503, json: { ok: false, code: 'warming_up', error } }),
    )
    await page.getByRole('heading', { name: 'The server is warming up' }).waitFor()
    await page.getByText(/^warming up, again in \d+s$/).waitFor()
    await page
      .getByRole('alert')
      .getByText(/^The server is warming up\. What you see was true/)
      .waitFor({ timeout: 5_000 })
  })

  test('a reader whose reads are used up learns it, and the page goes on by itself', async () => {
    const limited = await openTestServer({ 'read-limit-anonymous': '1', 'read-limit-keyed': '1' })
    await openPage(limited.url)
    const { page } = await openPage(limited.url)
    await page.getByRole('heading', { name: 'The market cannot be followed now' }).waitFor()
    // A browser is not told why a handshake was refused: the page asks, and is told where a key comes from too.
    await page.getByText(/^The limit of 1 .* is used up/).waitFor()
    await page.locator('.command').getByText(`curl ${limited.url}/api/v1/keys/register`).waitFor()
    await page.getByText(/tries again by itself, in \d+ s/).waitFor()
    await page.getByText('refused; waiting').waitFor()
    await limited.remove()
  })

  test('where all streams are in use the page says so, and offers no key, which would not help', async () => {
    const full = await openTestServer({}, { tuning: { follow: { followersMax: 1 } } })
    await openPage(full.url).then(({ page }) => page.locator('.connection.live').waitFor())
    const { page } = await openPage(full.url)
    await page
      .getByText('All 1 streams are in use; try again later. This page tries again by itself')
      .waitFor()
    expect(await page.locator('.command').count()).toBe(0)
    await full.remove()
  })

  test('a proxy that lets no WebSocket through is told as one', async () => {
    const { page } = await openPage('about:blank')
    await page.addInitScript(`window.WebSocket = class extends WebSocket {
      constructor(url, protocols) { super(url.replace('/stream', '/nowhere'), protocols) }
    }`)
    await page.goto(server.url)
    await page.getByText('no WebSocket to it opens').waitFor()
  })
})
