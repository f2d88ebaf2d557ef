// @module-tag drill
// The chart of a token: content that fits, the legend at the crosshair, switches, marks, one time zone.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { DAY_MS } from '../../src/lib/time.ts'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { submission, submit } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { changeAnswers, describeInBrowser, openPage } from './browser.ts'

const MINT = mintOfSymbol('chart')
const MINUTE_MS = 60_000

describeInBrowser('charts of the console', () => {
  let server: TestServer
  const nowMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS

  beforeAll(async () => {
    server = await openTestServer()
    const trade = (priceUsd: number, ts: number) => ({
      ...{ type: 'trade', mint: MINT, ts, side: 'buy', tokenAmount: 1_000, priceUsd },
    })
    await server.client.push(
      { type: 'token', mint: MINT, ts: nowMs - DAY_MS, name: 'Chart', symbol: 'CHART' },
      trade(1, nowMs - DAY_MS),
      trade(2, nowMs - 2 * MINUTE_MS),
      trade(1.5, nowMs - MINUTE_MS),
      { type: 'patch', mint: MINT, ts: nowMs, fields: { marketCap: 3_000_000_000, totalSupply: 1e9 } },
    )
    const key = await server.client.register('chartist')
    const answer = await submit(server.client, key, submission(MINT))
    expect(answer.status, answer.text).toBe(201)
  })
  afterAll(() => server.remove())

  const legend = (page: Page) => page.locator('.chart-legend')
  const drawn = (page: Page) =>
    page.evaluate<string>(
      `[...document.querySelectorAll('.chart canvas')].map((canvas) => canvas.toDataURL()).join()`,
    )
  /** Moves the pointer over the chart, to a share of its width. */
  async function point(page: Page, share: number): Promise<void> {
    const box = await page.locator('.chart').boundingBox()
    if (box === null) throw new Error('there is no chart')
    await page.mouse.move(box.x + box.width * share, box.y + box.height / 2)
  }
  /** The times that the legend tells while the pointer goes over the chart from left to right. */
  async function timesUnderPointer(page: Page): Promise<{ share: number; text: string }[]> {
    const times: { share: number; text: string }[] = []
    for (let step = 1; step < 40; step++) {
      await point(page, step / 40)
      await page.waitForFunction('new Promise((resolve) => requestAnimationFrame(() => resolve(true)))')
      times.push({ share: step / 40, text: (await legend(page).locator('span').first().textContent()) ?? '' })
    }
    return times
  }

  test('two days are two broad candles in the middle, with a free margin at the right', async () => {
    const { page, faults } = await openPage(server.url, `#/token/${MINT}?tf=1d`)
    await legend(page).waitFor()
    const [first, second] = [DAY_MS, 0].map((ago) => new Date(nowMs - ago).toISOString().slice(0, 10))
    const times = await timesUnderPointer(page)
    const [older] = times.filter(({ text }) => text === `${first} UTC`)
    // Neither at an edge nor a few pixels wide: the pointer finds the older one in the middle of the chart.
    expect(older?.share).toBeGreaterThan(0.3)
    expect(older?.share).toBeLessThan(0.6)
    expect(times.at(-6)?.text).toBe(`${second} UTC`)
    expect(faults).toEqual([])
  })

  test('a day without a trade is a short hole: what was before it is still in sight', async () => {
    const { page } = await openPage(server.url, `#/token/${MINT}?tf=1m`, { timezoneId: 'UTC' })
    await legend(page).getByText('C $1.50').waitFor()
    const at = (ms: number) => new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
    const times = await timesUnderPointer(page)
    const before = times.find(({ text }) => text === at(nowMs - DAY_MS))
    const after = times.find(({ text }) => text === at(nowMs - 2 * MINUTE_MS))
    expect(before?.share).toBeGreaterThan(0.1)
    expect(after?.share).toBeGreaterThan((before?.share ?? 1) + 0.2)
    expect(after?.share).toBeLessThan(0.8)
  })

  test('a price that rises a thousandfold is drawn, though the steps of its axis are dollars and reach below zero', async () => {
    const mint = mintOfSymbol('steep')
    const trades = [0.01, 0.5, 10, 20].map((priceUsd, at) => ({
      ...{ type: 'trade', mint, ts: nowMs - (8 - 2 * at) * MINUTE_MS },
      ...{ side: 'buy', tokenAmount: 1_000, priceUsd },
    }))
    await server.client.push({ type: 'token', mint, ts: nowMs, name: 'Steep', symbol: 'STEEP' }, ...trades)
    const { page, faults } = await openPage(server.url, `#/token/${mint}?tf=1m`)
    await legend(page).getByText('C $20.00').waitFor()
    const times = await timesUnderPointer(page)
    expect(faults).toEqual([])
    expect(new Set(times.map(({ text }) => text)).size).toBeGreaterThan(3)
  })

  test('a page that stays open keeps the newest bars, not all that there ever were', async () => {
    const mint = mintOfSymbol('long')
    const startMs = nowMs - 3_000_000
    const secondOf = (second: number) => ({
      ...{ type: 'trade', mint, ts: startMs + second * 1_000, side: 'buy', tokenAmount: 1_000 },
      priceUsd: 1 + second / 1_000,
    })
    await server.client.push({ type: 'token', mint, ts: startMs, name: 'Long', symbol: 'LONG' }, secondOf(0))
    const { page, faults } = await openPage(server.url, `#/token/${mint}?tf=1s`)
    const label = () => page.locator('.chart').getAttribute('aria-label')
    await legend(page).getByText('C $1.00').waitFor()
    const counts: number[] = []
    for (let first = 1; first < 2_200; first += 200) {
      await server.client.push(...Array.from({ length: 200 }, (_, at) => secondOf(first + at)))
      await legend(page)
        .getByText(`C $${(1 + (first + 199) / 1_000).toFixed(2)}`)
        .waitFor()
      counts.push(Number(/of (\d+) bars/.exec((await label()) ?? '')?.[1]))
    }
    expect(Math.max(...counts)).toBeGreaterThan(1_500)
    expect(Math.max(...counts)).toBeLessThan(2_000)
    expect(counts.at(-1)).toBeGreaterThanOrEqual(1_000)
    // What is in sight are the newest bars still.
    const times = await timesUnderPointer(page)
    const newest = new Date(startMs + 2_200_000).toISOString().slice(11, 19)
    expect(times.at(-6)?.text).toContain(newest.slice(0, 5))
    expect(faults).toEqual([])
  }, 60_000)

  test('the legend has the values under the crosshair, and of the newest bar otherwise', async () => {
    const { page } = await openPage(server.url, `#/token/${MINT}?tf=1m`)
    await legend(page).getByText('C $1.50').waitFor()
    await legend(page)
      .getByText('▼ 25.0%')
      .or(legend(page).getByText('0.00%', { exact: true }))
      .first()
      .waitFor()
    const times = await timesUnderPointer(page)
    expect(new Set(times.map(({ text }) => text)).size).toBeGreaterThan(1)
    await point(page, 0.45)
    await legend(page).getByText('no trade').waitFor()
    await page.mouse.move(2, 2)
    await legend(page).getByText('C $1.50').waitFor()
  })

  test('an analysis is a mark on its bar, with its verdict and what became of it in the legend', async () => {
    const { page } = await openPage('about:blank')
    await changeAnswers(page, '**/api/v1/analysis?*', (answer) => {
      for (const analysis of answer.data) analysis.outcomes.fwd_ret_5m = 0.031
      return answer
    })
    await page.goto(`${server.url}/#/token/${MINT}?tf=1h`)
    await legend(page).getByText('bullish 70 ✓ +3.1% 5m').waitFor()
    const withMark = await drawn(page)
    await changeAnswers(page, '**/api/v1/analysis?*', (answer) => ({ ...answer, data: [] }))
    await page.reload()
    await page.getByText('None yet: the first one earns a bonus.').waitFor()
    await legend(page).waitFor()
    expect(await drawn(page)).not.toBe(withMark)
  })

  test('log and market cap stand in the address, and outlive a change of the timeframe', async () => {
    const { page, faults } = await openPage(server.url, `#/token/${MINT}`)
    await legend(page).waitFor()
    await page.getByRole('button', { name: 'log' }).click()
    await page.getByRole('button', { name: 'market cap' }).click()
    await legend(page)
      .getByText(/C \$\d\.\d+B/)
      .waitFor()
    expect(new URL(page.url()).hash).toBe(`#/token/${MINT}?scale=log&value=cap`)
    await page.getByRole('link', { name: '5m', exact: true }).click()
    await expect.poll(() => page.locator('.chart').getAttribute('aria-label')).toContain('bars of 5m')
    expect(page.url()).toContain('tf=5m&scale=log&value=cap')
    expect(await page.getByRole('button', { name: 'log' }).getAttribute('aria-pressed')).toBe('true')
    await legend(page)
      .getByText(/C \$\d\.\d+B/)
      .waitFor()
    // An address that somebody has written, or goes back to, is of the same view.
    await page.evaluate(`location.hash = '#/token/${MINT}?tf=5m'`)
    await legend(page).getByText('C $1.50').waitFor()
    expect(await page.getByRole('button', { name: 'log' }).getAttribute('aria-pressed')).toBe('false')
    expect(faults).toEqual([])
  })

  test('where the zone is switched while the library is on its way, there is one chart, and it goes on', async () => {
    const { page } = await openPage('about:blank', '', { timezoneId: 'Europe/Berlin' })
    const { promise: isReleased, resolve: release } = Promise.withResolvers<void>()
    await page.route('**/token-chart.js', async (route) => {
      await isReleased
      await route.continue()
    })
    await page.goto(`${server.url}/#/token/${MINT}?tf=1m`)
    await page.locator('.token-head').waitFor()
    await page.getByRole('button', { name: /^Time zone/ }).click()
    await page.getByText('Times in UTC').waitFor()
    release()
    await legend(page).waitFor()
    await page.waitForLoadState('networkidle')
    expect(await page.locator('.chart > *').count()).toBe(1)
  })

  test('a library that does not come is told, with the way to have it', async () => {
    const { page } = await openPage('about:blank')
    let asked = 0
    await page.route('**/token-chart.js', (route) => (asked++ === 0 ? route.abort() : route.continue()))
    await page.goto(`${server.url}/#/token/${MINT}`)
    await page.getByRole('alert').getByText('The chart could not be loaded.').waitFor()
    await page.getByRole('button', { name: 'Reload the page' }).click()
    await legend(page).waitFor()
    expect(await page.getByText('The chart could not be loaded.').count()).toBe(0)
  })

  test('market capitalisation follows the supply, as far as it is known', async () => {
    const { page } = await openPage(server.url, `#/token/${MINT}?tf=1d&value=cap`)
    await legend(page).waitFor()
    for (const [marketCap, text] of [
      [6_000_000_000, 'C $6.00B'],
      [null, 'C $1.50'],
      [3_000_000_000, 'C $3.00B'],
    ] as const) {
      const before = await drawn(page)
      await server.client.push({ type: 'patch', mint: MINT, ts: Date.now(), fields: { marketCap } })
      await legend(page).getByText(text, { exact: true }).waitFor()
      await expect.poll(() => drawn(page)).not.toBe(before)
    }
  })

  test('figures of windows are read again where no trade renews them', async () => {
    const { page } = await openPage('about:blank')
    await page.clock.install()
    await page.goto(`${server.url}/#/token/${MINT}`)
    await legend(page).waitFor()
    await changeAnswers(page, '**/api/v1/datapoint?*', (answer) => ({
      ...answer,
      data: { ...answer.data, volume1m: 4_567 },
    }))
    await page.clock.fastForward(31_000)
    await page.getByText('$4.57K').waitFor()
  })

  test('all times of a page are in one zone, which is named, local or UTC', async () => {
    const { page, faults } = await openPage(server.url, `#/token/${MINT}?tf=1m`, {
      timezoneId: 'Asia/Kolkata',
    })
    const zone = page.getByRole('button', { name: /^Time zone/ })
    await expect.poll(() => zone.textContent()).toMatch(/^(Calcutta|Kolkata) \(UTC\+5:30\)$/)
    await page.getByText(/Times in (Calcutta|Kolkata)/).waitFor()
    const shown = (offsetMs: number) =>
      new Date(nowMs - MINUTE_MS + offsetMs).toISOString().slice(0, 16).replace('T', ' ')
    await legend(page)
      .getByText(shown(5.5 * 3_600_000))
      .waitFor()
    await zone.click()
    await expect.poll(() => zone.textContent()).toBe('UTC')
    await legend(page).getByText(shown(0)).waitFor()
    await page.getByText('Times in UTC').waitFor()
    await page.reload()
    await legend(page).getByText(shown(0)).waitFor()
    expect(faults).toEqual([])
  })
})
