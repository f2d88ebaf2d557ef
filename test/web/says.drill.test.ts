// @module-tag drill
// What agents say, in a real browser: labels as soon as they are shown, filters, pages, records, calibration.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { mintOfSymbol } from '../../src/schema/mint.ts'
import { roundTicks } from '../../src/web/round-ticks.ts'
import { submission, submit } from '../support/submission.ts'
import { openTestServer, type TestServer } from '../support/test-server.ts'
import { changeAnswers, describeInBrowser, openPage } from './browser.ts'

const MINTS = Array.from({ length: 60 }, (_, at) => mintOfSymbol(`says ${at}`))
const DELAY_MS = 3_000

describeInBrowser('what agents say, in the console', () => {
  let server: TestServer
  let key: string

  beforeAll(async () => {
    const settings = { 'labels-delay-ms': `${DELAY_MS}`, 'submit-limits': 'rate=0,cooldown-ms=0' }
    server = await openTestServer(settings)
    await server.client.push(
      ...MINTS.flatMap((mint, at) => [
        { type: 'token', mint, ts: Date.now(), name: `Token ${at}`, symbol: `SYM${at}` },
        { type: 'trade', mint, ts: Date.now(), side: 'buy', tokenAmount: 1_000, priceUsd: 1 },
      ]),
    )
    key = await server.client.register('speaker')
    for (const [at, mint] of MINTS.slice(1).entries()) {
      const sentiment = at % 10 === 0 ? 'bearish' : 'bullish'
      expect((await submit(server.client, key, submission(mint, { sentiment }))).status).toBe(201)
    }
  })
  afterAll(() => server.remove())

  test('a submission appears at once, and its sentiment and score when the delay allows', async () => {
    const { page, faults } = await openPage(server.url, '#/submissions')
    await page.getByText('50 shown, older below').waitFor()
    expect((await submit(server.client, key, submission(MINTS[0] ?? ''))).status).toBe(201)
    const row = page.getByRole('row').filter({ hasText: 'SYM0speaker' })
    await row.getByText(/withheld|shown in/).waitFor()
    await row.getByText('▲ bullish').waitFor({ timeout: 15_000 })
    await row.getByText('70', { exact: true }).waitFor()
    await row.getByRole('link', { name: 'speaker' }).waitFor()
    expect(faults).toEqual([])
  }, 30_000)

  test('at 1 024 px filters and count are one line, and what a phone shows includes the return', async () => {
    const { page } = await openPage(server.url, '#/submissions', {
      viewport: { width: 1_024, height: 800 },
    })
    await page.getByText('50 shown, older below').waitFor()
    expect((await page.locator('.toolbar').boundingBox())?.height).toBeLessThan(50)
    await page.setViewportSize({ width: 390, height: 800 })
    const heading = await page.getByRole('columnheader', { name: '+5m' }).boundingBox()
    expect((heading?.x ?? 0) + (heading?.width ?? 0)).toBeLessThan(390)
    await page.getByRole('columnheader', { name: 'Verdict' }).waitFor({ state: 'attached' })
  })

  test('an agent that is not there is told once, and calibration says how three agents are had', async () => {
    const { page } = await openPage(server.url, '#/agents/ag_nobody')
    await page.getByText('There is no agent ag_nobody.').waitFor()
    expect(await page.locator('.empty h2').allTextContents()).toEqual(['This agent is not here'])
    await page.getByRole('link', { name: 'All agents' }).click()
    await page.getByRole('heading', { name: 'Agents by XP' }).waitFor()
    await page.goto(`${server.url}/#/calibration`)
    await page.getByText('each in a terminal and with a key file of its own').waitFor()
    const commands = await page.locator('.command code').allTextContents()
    expect(commands).toHaveLength(3)
    const files = commands.map((command) => /--key-file (\S+)$/.exec(command)?.[1])
    expect(new Set(files).size).toBe(3)
    expect(files).not.toContain(undefined)
    expect(commands[0]).toContain(`npm run agent -- --url ${server.url} --name one`)
  })

  test('filters ask the server, stand in the address, and older ones come in pages', async () => {
    const { page, faults } = await openPage(server.url, '#/submissions')
    await page.getByText('50 shown, older below').waitFor()
    await page.getByRole('button', { name: 'Older' }).click()
    await page.getByText(/^(59|60) shown$/).waitFor()
    await page.getByRole('link', { name: 'bearish' }).click()
    await page.getByText('6 shown', { exact: true }).waitFor()
    expect(page.url()).toContain('says=bearish')
    expect(await page.getByText('▼ bearish').count()).toBe(6)
    await page.getByRole('link', { name: 'rejected' }).click()
    await page.getByRole('heading', { name: 'No submission matches' }).waitFor()
    await page.getByText('Labels of others are withheld').waitFor()
    await page.getByRole('link', { name: 'any sentiment' }).click()
    await page.getByText('None of them is rejected.').waitFor()
    await page.getByRole('link', { name: 'Show all' }).click()
    await page.getByText('50 shown, older below').waitFor()
    expect(faults).toEqual([])
  })

  test('an agent has its hit rate, mean return, calibration and XP over time', async () => {
    const { body } = await server.client.get('/api/v1/agents/leaderboard')
    const { agentId, xp } = body.data[0]
    const { page, faults } = await openPage('about:blank')
    await changeAnswers(page, '**/api/v1/agents/record?*', (answer) => {
      const group = { label: 'bullish', horizon: '15m', count: 4, tokens: 3 }
      Object.assign(answer.data, {
        horizons: [{ horizon: '15m', count: 4, hits: 3, meanPct: 2.5 }],
        groups: [{ ...group, kind: 'sentiment', meanPct: 2.5, lowPct: 1, highPct: 4 }],
        xp: [
          { atMs: Date.now() - 7_200_000, xp: xp - 100 },
          { atMs: Date.now() - 3_600_000, xp: 100 },
        ],
      })
      return answer
    })
    await page.goto(`${server.url}/#/agents/${agentId}`)
    await page
      .getByRole('row')
      .filter({ hasText: '15m' })
      .filter({ hasText: '75%' })
      .getByText('▲ 2.50%')
      .waitFor()
    await page.getByRole('img', { name: /^XP over time/ }).waitFor()
    expect(await page.locator('.tabs [aria-current]').allTextContents()).toEqual(['15m'])
    await page.locator('svg.intervals .interval').waitFor({ state: 'attached' })
    await page
      .getByRole('cell', { name: /^SYM\d+$/ })
      .first()
      .waitFor()
    // The real record of an agent has XP as soon as the lake has it.
    await server.store.flushLake()
    const record = await server.client.get(`/api/v1/agents/record?agentId=${agentId}`)
    expect(record.body.data.name).toBe('speaker')
    expect(faults.filter((fault) => !fault.startsWith('asked'))).toEqual([])
  })

  test('the leaderboard tells of each agent how often it was right, after the time that the address names', async () => {
    const { page, faults } = await openPage('about:blank')
    await changeAnswers(page, '**/api/v1/agents/leaderboard*', (answer) => {
      answer.data[0].horizons = [
        { horizon: '15m', count: 400, hits: 399, meanPct: 2.5 },
        { horizon: '1h', count: 2, hits: 0, meanPct: -7 },
      ]
      return answer
    })
    await page.goto(`${server.url}/#/agents`)
    const row = page.getByRole('row').filter({ hasText: 'speaker' })
    // It was wrong once.
    await row.getByRole('img', { name: 'right 99 percent' }).waitFor()
    await row.getByText('99%').waitFor()
    expect(await page.locator('.tabs [aria-current]').allTextContents()).toEqual(['15m'])
    await page.getByRole('columnheader', { name: 'Right after 15m' }).waitFor()
    expect(await row.getByText('▲ 2.50%').count()).toBe(1)
    await page.getByRole('link', { name: '1h', exact: true }).click()
    await row.getByText('▼ 7.00%').waitFor()
    await row.getByRole('img', { name: 'right 0 percent' }).waitFor()
    expect(new URL(page.url()).hash).toBe('#/agents?horizon=1h')
    expect(faults.filter((fault) => !fault.startsWith('asked'))).toEqual([])
  })

  test('calibration opens on the shortest time that has rows', async () => {
    const group = (horizon: string) => ({
      ...{ label: 'bullish', horizon, count: 12, tokens: 5, meanPct: 2.5, lowPct: -3.7, highPct: 8.2 },
    })
    const { page } = await openPage('about:blank')
    const data = { asOfMs: Date.now(), sinceMs: 0, sentiments: [group('1h'), group('15m')], scores: [] }
    await page.route('**/api/v1/calibration', (route) => route.fulfill({ json: { ok: true, data } }))
    await page.goto(`${server.url}/#/calibration`)
    await expect.poll(() => page.locator('.tabs [aria-current]').allTextContents()).toEqual(['15m'])
    expect(await page.locator('svg.intervals .tick').allTextContents()).toEqual(['−5%', '0%', '+5%', '+10%'])
  })
})

test.each([
  [-3.7, 8.2, [-5, 0, 5, 10]],
  [0, 0.37, [0, 0.1, 0.2, 0.3, 0.4]],
  [-120, 0, [-150, -100, -50, 0]],
  [0, 0, [0, 0.25, 0.5, 0.75, 1]],
])('the ticks from %d to %d are round', (low, high, ticks) => {
  expect(roundTicks(low, high)).toEqual(ticks)
})
