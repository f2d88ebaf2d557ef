// @module-tag drill
// Sparklines keep to their budget of reads: rows without one stay calm, and get theirs as soon as the budget allows.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { describeInBrowser, openPage } from './browser.ts'

const TOKENS = 100
/** Eight reads of ten tokens a minute. */
const [READS_A_MINUTE, FIRST] = [8, 80]
const MINUTE_MS = 60_000

describeInBrowser('sparklines of the market', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await openTestServer()
    const nowMs = Date.now()
    const mints = Array.from({ length: TOKENS }, (_, at) => mintOfSymbol(`spark ${at}`))
    const trades = (mint: string) =>
      [12, 6, 0].map((minutesAgo) => ({
        ...{ type: 'trade', mint, ts: nowMs - minutesAgo * MINUTE_MS, side: 'buy' },
        ...{ tokenAmount: 1_000, priceUsd: 1 + minutesAgo },
      }))
    await server.client.push(
      ...mints.map((mint, at) => ({ type: 'token', mint, ts: nowMs, name: `Spark ${at}`, symbol: `S${at}` })),
      ...mints.flatMap(trades),
    )
  })
  afterAll(() => server.remove())

  const lines = (page: Page) => page.locator('.rows svg.spark polyline')
  const toCome = (page: Page) => page.locator('.rows svg.spark.to-come')
  const countReads = (page: Page) => {
    const reads = { count: 0 }
    page.on('request', (request) => {
      if (new URL(request.url()).pathname === '/api/v1/datapoint/batch') reads.count++
    })
    return reads
  }

  test('beyond the budget rows hold a quiet place of the same size, and fill in once it allows', async () => {
    const { page, faults } = await openPage('about:blank', '', {
      viewport: { width: 1280, height: 48 * (TOKENS + 5) },
    })
    const reads = countReads(page)
    const hold = Promise.withResolvers<void>()
    await page.route('**/api/v1/datapoint/batch', async (route) => {
      await hold.promise
      await route.continue()
    })
    await page.clock.install()
    await page.goto(`${server.url}/`)
    await expect.poll(() => toCome(page).count(), { timeout: 20_000 }).toBe(TOKENS)
    const place = await toCome(page).first().boundingBox()
    hold.resolve()
    await expect.poll(() => lines(page).count(), { timeout: 20_000 }).toBe(FIRST)
    expect(await toCome(page).count()).toBe(TOKENS - FIRST)
    expect(await lines(page).first().locator('..').boundingBox()).toEqual(place)
    expect(reads.count).toBe(READS_A_MINUTE)
    await page.clock.fastForward(MINUTE_MS)
    await expect.poll(() => lines(page).count(), { timeout: 20_000 }).toBe(TOKENS)
    expect(await toCome(page).count()).toBe(0)
    expect(faults.filter((fault) => !fault.startsWith('asked'))).toEqual([])
  }, 60_000)

  test('tabs share what is known: going through them asks for nothing twice', async () => {
    const { page } = await openPage('about:blank')
    const reads = countReads(page)
    await page.goto(`${server.url}/`)
    await lines(page).first().waitFor()
    await expect.poll(() => toCome(page).count(), { timeout: 20_000 }).toBe(0)
    const before = reads.count
    expect(before).toBeGreaterThan(0)
    await page.getByRole('link', { name: 'graduated' }).click()
    await page.getByRole('heading', { name: 'No token matches' }).waitFor()
    await page.getByRole('link', { name: 'all', exact: true }).click()
    await lines(page).first().waitFor()
    expect(await toCome(page).count()).toBe(0)
    expect(reads.count).toBe(before)
  })

  test('those of rows that stay where they are are renewed too', async () => {
    const { page } = await openPage('about:blank')
    await page.clock.install()
    await page.goto(`${server.url}/#/market?search=S99`)
    await lines(page).first().waitFor()
    const before = await lines(page).getAttribute('points')
    await server.client.push({
      ...{ type: 'trade', mint: mintOfSymbol('spark 99'), ts: Date.now(), side: 'buy' },
      ...{ tokenAmount: 1_000, priceUsd: 9 },
    })
    await page.clock.fastForward(5 * MINUTE_MS)
    await expect.poll(() => lines(page).getAttribute('points')).not.toBe(before)
    // Who comes back to a page that slept has what is old read at once.
    const show = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))`)
    await show(true)
    await page.clock.fastForward(MINUTE_MS)
    const read = page.waitForRequest('**/api/v1/market/totals', { timeout: 5_000 })
    await show(false)
    await read
  })
})
