// @module-tag drill
// What each view tells, in a real browser on the real server.
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { MARKET_QUOTES } from '../../src/schema/quote.ts'
import { LOW_COVERAGE_COUNT } from '../../src/schema/xp.ts'
import { submission, submit } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { changeAnswers, describeInBrowser, openPage, overflowPx } from './browser.ts'

const [RICH, POOR, LIVE, COVERED] = ['rich', 'poor', 'live', 'covered'].map(mintOfSymbol)
const MINUTE_MS = 60_000

describeInBrowser('views of the console', () => {
  let server: TestServer

  beforeAll(async () => {
    server = await openTestServer()
    const nowMs = Date.now()
    const token = (mint: string, name: string) => ({ type: 'token', mint, ts: nowMs, name, symbol: name })
    const trade = (mint: string, priceUsd: number, minutesAgo: number) => ({
      ...{
        type: 'trade',
        mint,
        ts: nowMs - minutesAgo * MINUTE_MS,
        side: 'sell',
        wallet: 'wallet of a trader',
      },
      ...{ tokenAmount: 1_000, priceUsd },
    })
    const fields = {
      marketCap: 2_000_000,
      has_freeze_authority: true,
      has_mint_authority: false,
      topHolders: [{ address: 'largest holder of all', amount: 125, pct: 12.5 }],
      totalSupply: 1_000,
      enriched_source: 'chain',
    }
    await server.client.push(
      ...[token(RICH, 'Rich'), token(POOR, 'Poor'), token(LIVE, 'Onair')],
      ...[trade(RICH, 1, 12), trade(RICH, 3, 6), trade(RICH, 2, 0), trade(POOR, 0.000_000_001_5, 0)],
      { type: 'patch', mint: RICH, ts: nowMs, fields },
      { type: 'live', mint: LIVE, ts: nowMs, isLive: true },
    )
    const key = await server.client.register('judge')
    const answer = await submit(server.client, key, submission(RICH))
    expect(answer.status, answer.text).toBe(201)
  })
  afterAll(() => server.remove())

  const open = async (hash: string): Promise<Page> => (await openPage(server.url, hash)).page
  const rows = (page: Page) => page.locator('.rows .row')

  test('the market: tabs, sorts, filters, a sparkline, prices of 1e-9', async () => {
    const page = await open('')
    await expect.poll(() => rows(page).count()).toBe(3)
    await rows(page).filter({ hasText: 'Poor' }).getByText('$0.0₈15').waitFor()
    await rows(page).filter({ hasText: 'Rich' }).locator('svg.spark polyline').waitFor()
    const price = page.getByRole('columnheader', { name: 'Price' })
    await price.getByRole('button').click()
    await expect.poll(() => price.getAttribute('aria-sort')).toBe('descending')
    await rows(page).first().filter({ hasText: 'Rich' }).waitFor()
    await price.getByRole('button').click()
    await expect.poll(() => price.getAttribute('aria-sort')).toBe('ascending')
    await rows(page).first().filter({ hasText: 'Poor' }).waitFor()
    expect(page.url()).toContain('sort=price&order=asc')
    await page.getByRole('link', { name: 'graduated' }).click()
    await page.getByRole('heading', { name: 'No token matches' }).waitFor()
    await page.getByRole('link', { name: 'live', exact: true }).click()
    await expect.poll(() => rows(page).count()).toBe(1)
  })

  test('an empty market says so in each list; a list without tokens speaks of filters only where there are some', async () => {
    const empty = await openTestServer()
    for (const tab of ['', '?tab=new', '?tab=live', '?tab=graduated']) {
      const { page } = await openPage(empty.url, `#/market${tab}`)
      await page.getByRole('heading', { name: 'No tokens yet' }).waitFor()
    }
    await empty.remove()
    const page = await open('#/market?tab=graduated')
    await page.getByRole('heading', { name: 'No token matches' }).waitFor()
    expect(await page.getByText(/take the filters away/).count()).toBe(0)
    await page.getByLabel('Search tokens').fill('nosuch')
    await page.getByText(/take the filters away/).waitFor()
  }, 60_000)

  test('the low coverage box leaves the tokens whose analysis earns the bonus', async () => {
    const others = await openTestServer()
    const { client } = others
    const token = (mint: string, name: string) => ({
      type: 'token',
      mint,
      ts: Date.now(),
      name,
      symbol: name,
    })
    await client.push(token(RICH, 'Rich'), token(COVERED, 'Covered'), {
      ...{ type: 'trade', mint: COVERED, ts: Date.now(), side: 'buy' },
      ...{ tokenAmount: 1_000, priceUsd: 1 },
    })
    for (let at = 0; at < LOW_COVERAGE_COUNT; at++) {
      const key = await client.register(`covers ${at}`)
      const answer = await submit(client, key, submission(COVERED))
      expect(answer.status, answer.text).toBe(201)
    }
    const { page } = await openPage(others.url)
    const covered = rows(page).filter({ hasText: 'Covered' })
    await covered.waitFor()
    const box = page.getByRole('checkbox', { name: 'low coverage' })
    await box.check()
    await covered.waitFor({ state: 'detached' })
    expect(await rows(page).count()).toBe(1)
    await page.getByText('1 token', { exact: true }).waitFor()
    expect(page.url()).toContain('coverage=low')
    await page.reload()
    await rows(page).filter({ hasText: 'Rich' }).waitFor()
    expect(await rows(page).count()).toBe(1)
    expect(await box.isChecked()).toBe(true)
    await box.uncheck()
    await covered.waitFor()
    expect(page.url()).not.toContain('coverage')
    await others.remove()
  })

  test('a token: its chart moves, its DataPoint, flags, holders, trades', async () => {
    const page = await open(`#/token/${RICH}?tf=5m`)
    const chart = page.locator('.chart')
    await chart.locator('canvas').first().waitFor()
    await expect.poll(() => chart.getAttribute('aria-label')).toContain('3 bars of 5m; the last closed at $2')
    await page.getByText('⚠ Can be frozen').waitFor()
    await page.getByText('✓ Supply is fixed').waitFor()
    await page.getByText('? Transfer fee: unknown').waitFor()
    await page.getByTitle('largest holder of all').waitFor()
    for (const name of [/^Largest holders chain, \d+s ago$/, /^Total supply1.00K \(chain, \d+s ago\)$/])
      await page
        .getByText(name)
        .or(page.locator('dl div').filter({ hasText: name }))
        .first()
        .waitFor()
    await page.getByRole('region', { name: 'Latest trades' }).getByText('▼ sell').first().waitFor()
    await page.getByText(/^as of \d+s ago/).waitFor()
    const drawn = () => page.evaluate<string>(`document.querySelector('.chart canvas').toDataURL()`)
    const before = await drawn()
    await server.client.push({
      ...{ type: 'trade', mint: RICH, ts: Date.now(), side: 'buy' },
      ...{ tokenAmount: 1_000, priceUsd: 2.5 },
    })
    await expect.poll(() => chart.getAttribute('aria-label')).toContain('the last closed at $2.50')
    await expect.poll(drawn).not.toBe(before)
  })

  test('a token that is not paid in SOL says in what, beside its trades too', async () => {
    const [mint, sol] = ['paid in dollars', 'paid in sol'].map(mintOfSymbol)
    const usdc = MARKET_QUOTES.usdc
    const trade = { type: 'trade', ts: Date.now(), side: 'buy', tokenAmount: 1_000 }
    await server.client.push(
      {
        type: 'token',
        mint,
        ts: Date.now(),
        name: 'Dollars',
        symbol: 'USDQ',
        quoteMint: usdc,
        isMayhem: true,
      },
      { ...trade, mint, quoteMint: usdc, quoteAmount: 1_234.5 },
      { type: 'token', mint: sol, ts: Date.now(), name: 'Sol', symbol: 'SOLQ', isMayhem: false },
      { ...trade, mint: sol, solAmount: 2, priceUsd: 0.3, quoteMint: MARKET_QUOTES.sol, quoteAmount: 2 },
    )
    const shownOf = (page: Page, term: string) =>
      page.locator(`dl > div:has(dt:text-is("${term}")) > dd`).textContent()
    const dollars = await open(`#/token/${mint}`)
    await dollars.getByRole('heading', { name: 'Latest trades paid in USDC, not in SOL' }).waitFor()
    expect([await shownOf(dollars, 'Paid in'), await shownOf(dollars, 'Mayhem mode')]).toEqual([
      'USDC',
      'yes',
    ])
    const other = await open(`#/token/${sol}`)
    await other.getByRole('heading', { name: 'Latest trades', exact: true }).waitFor()
    expect([await shownOf(other, 'Paid in'), await shownOf(other, 'Mayhem mode')]).toEqual(['SOL', 'no'])
  })

  test('a token’s analyses: verdict, deviation, and what became of the price', async () => {
    const { page } = await openPage('about:blank')
    // Outcomes are known after an hour: here the server's answer is given them.
    await changeAnswers(page, '**/api/v1/analysis?*', (answer) => {
      for (const analysis of answer.data)
        Object.assign(analysis.outcomes, { fwd_ret_5m: 0.04, fwd_ret_1h: 0.25, fwd_ret_24h: -0.9 })
      return answer
    })
    await page.goto(`${server.url}/#/token/${RICH}`)
    const analysis = page.locator('table.analyses').getByRole('row').nth(1)
    await analysis.filter({ hasText: '✓ validated' }).waitFor()
    expect((await analysis.getByRole('cell').allTextContents()).slice(1)).toEqual([
      'judge',
      '▲ bullish',
      '70',
      '✓ validated',
      expect.stringMatching(/^\d+\.\d\d%$/),
      expect.stringMatching(/^\d+$/),
      '▲ 4.00%',
      '–',
      '▲ 25.0%',
      '▼ 90.0%',
    ])
  })

  test('the leaderboard leads to an agent’s record, and a submission appears while it is judged', async () => {
    const page = await open('#/agents')
    await page.getByRole('link', { name: 'judge' }).click()
    await page.getByRole('heading', { name: 'judge' }).waitFor()
    await page.getByText(/^rank 1 · \d+ XP · 1 analyses$/).waitFor()
    await page.getByRole('row').filter({ hasText: 'bullish' }).waitFor()
    const live = await open('#/submissions')
    await live.getByText('1 shown').waitFor()
    await submit(server.client, await server.client.register('second'), submission(POOR))
    await live.getByRole('row').filter({ hasText: 'second' }).filter({ hasText: 'Poor' }).waitFor()
  })

  test('a record that is refused says why, and comes by itself later', async () => {
    const leaders = await server.client.get('/api/v1/agents/leaderboard')
    const { page } = await openPage('about:blank')
    const refusal = {
      ok: false,
      code: 'read_rate_limited',
      error: 'The limit of 30 reads a minute is used up.',
    }
    await page.route('**/api/v1/analysis?*', (route) => route.fulfill({ status: 429, json: refusal }))
    await page.clock.install()
    await page.goto(`${server.url}/#/agents/${leaders.body.data[0].agentId}`)
    await page.getByRole('heading', { name: 'Too many reads' }).waitFor()
    await page.getByText('is used up. This page tries again by itself.').waitFor()
    await page.unroute('**/api/v1/analysis?*')
    await page.clock.fastForward(MINUTE_MS)
    await page.getByRole('row').filter({ hasText: 'validated' }).waitFor()
  })

  test.each([
    {
      part: 'a token’s analyses',
      hash: `#/token/${RICH}`,
      path: '**/api/v1/analysis?*',
      shown: '.analyses-room table',
      refusal: { status: 401, code: 'revoked_key', error: 'This key was revoked.' },
      told: /^This key was revoked. Forget the key in “Try it”, or take another. The list of analyses was true \S+ ago.$/,
    },
    {
      part: 'the totals of the market',
      hash: '#/market',
      path: '**/api/v1/market/totals',
      shown: '.totals .up',
      refusal: { status: 429, code: 'read_rate_limited', error: 'The reads are used up.' },
      told: /^The reads are used up.\s+The totals were true \S+ ago.$/,
    },
  ])('$part look old while they cannot be read again', async ({ hash, path, shown, refusal, told }) => {
    const { page } = await openPage('about:blank')
    await page.clock.install()
    await page.goto(`${server.url}/${hash}`)
    await page.locator(shown).waitFor()
    const old = page.locator('.old')
    expect(await old.count()).toBe(0)
    const { status, ...json } = refusal
    await page.route(path, (route) => route.fulfill({ status, json: { ok: false, ...json } }))
    await page.clock.fastForward(MINUTE_MS)
    await page.getByRole('alert').filter({ hasText: told }).waitFor()
    expect(await old.count()).toBe(1)
    await page.unroute(path)
    await page.clock.fastForward(MINUTE_MS)
    await old.waitFor({ state: 'detached' })
    expect(await page.getByRole('alert').filter({ hasText: told }).count()).toBe(0)
  })

  test('an empty view has a command, which is copied', async () => {
    const empty = await openTestServer()
    const { page } = await openPage(empty.url, '#/agents', {
      permissions: ['clipboard-write', 'clipboard-read'],
    })
    await page.getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    // It is for this server, which is not where the agent looks by itself.
    const command = `npm run agent -- --url ${empty.url}`
    expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe(command)
    await page.getByRole('button', { name: 'Copy', exact: true }).waitFor()
    await empty.remove()
  })

  test('a page that is not there, and a token that is not, fit a phone and lead back', async () => {
    const options = { viewport: { width: 360, height: 740 } }
    const { page } = await openPage(server.url, `#/token/${mintOfSymbol('nowhere to be found')}`, options)
    await page.getByRole('heading', { name: 'This token is not here' }).waitFor()
    expect(await overflowPx(page)).toBe(0)
    await page.evaluate(`location.hash = '#/token/abc'`)
    await page.getByText('Mint is not a base58 address of 32 bytes.').waitFor()
    await page.evaluate(`location.hash = '#/nowhere'`)
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor()
    await page.getByRole('link', { name: 'To the market' }).click()
    await page.getByRole('heading', { name: 'Market' }).waitFor()
  })

  test('calibration: groups with their interval, by the time that passed', async () => {
    const group = (label: string, horizon: string, meanPct: number) => ({
      ...{ label, horizon, count: 12, tokens: 5 },
      ...{ meanPct, lowPct: meanPct - 3, highPct: meanPct + 3 },
    })
    const { page } = await openPage('about:blank')
    await page.route('**/api/v1/calibration', (route) =>
      route.fulfill({
        json: {
          ok: true,
          data: {
            asOfMs: Date.now(),
            sentiments: [group('bullish', '1h', 2.5), group('bullish', '24h', -8)],
            scores: [group('60–79', '1h', 1)],
          },
        },
      }),
    )
    await page.goto(`${server.url}/#/calibration`)
    await page.getByRole('row').filter({ hasText: '▲ 2.50%' }).filter({ hasText: '−0.5 to 5.5%' }).waitFor()
    expect(await page.locator('svg.intervals .interval').count()).toBe(2)
    expect(await page.locator('.tabs [aria-current]').allTextContents()).toEqual(['1h'])
    await page.getByRole('link', { name: '24h' }).click()
    await page.getByRole('row').filter({ hasText: '▼ 8.00%' }).waitFor()
    expect(page.url()).toContain('horizon=24h')
  })
})
